// Loads and stores of one general-purpose register (C4.1.88).
//
// Write-back follows the access, so that a faulting access leaves the base as it was. Where a
// load's destination is also its written-back base (CONSTRAINED UNPREDICTABLE), the base wins.
#include "translator/a64/visitor.h"

namespace gpusim::a64 {

Visitor::Address Visitor::register_offset(Reg n, Reg m, uint32_t option, unsigned shift) {
  Address a{
      .base = x_or_sp(n), .index = x_src(m), .shift = static_cast<uint8_t>(shift), .indexed = true};
  if (option == 2) {  // UXTW
    a.index = b_.temp();
    b_.mov32(a.index, x_src(m));
  }
  a.signed_word = option == 6;  // SXTW
  return a;
}

Visitor::Address Visitor::flat(const Address& a) {
  if (!a.indexed) return a;
  const Slot t = b_.temp();
  b_.emit(a.signed_word ? MicroOp::add_sxtw64 : MicroOp::add_lsl64, t, a.base, a.index, 0, a.shift);
  return {.base = t};
}

void Visitor::load(unsigned log2_size, Extend extend, Slot d, const Address& a) {
  using enum gpusim::Op;
  // [addressing][extension][size]
  static constexpr MicroOp kOps[3][3][4] = {
      {{ldu8, ldu16, ldu32, ld64}, {lds8x, lds16x, lds32x, ld64}, {lds8w, lds16w, ldu32, ld64}},
      {{ldu8_x, ldu16_x, ldu32_x, ld64_x},
       {lds8x_x, lds16x_x, lds32x_x, ld64_x},
       {lds8w_x, lds16w_x, ldu32_x, ld64_x}},
      {{ldu8_w, ldu16_w, ldu32_w, ld64_w},
       {lds8x_w, lds16x_w, lds32x_w, ld64_w},
       {lds8w_w, lds16w_w, ldu32_w, ld64_w}}};
  const int addressing = !a.indexed ? 0 : a.signed_word ? 2 : 1;
  b_.emit(kOps[addressing][static_cast<int>(extend)][log2_size], d, a.base, a.index, 0,
          a.indexed ? a.shift : a.offset);
}

void Visitor::store(unsigned log2_size, Slot value, const Address& a) {
  using enum gpusim::Op;
  static constexpr MicroOp kOps[3][4] = {
      {st8, st16, st32, st64}, {st8_x, st16_x, st32_x, st64_x}, {st8_w, st16_w, st32_w, st64_w}};
  const int addressing = !a.indexed ? 0 : a.signed_word ? 2 : 1;
  b_.emit(kOps[addressing][log2_size], value, a.base, a.index, 0, a.indexed ? a.shift : a.offset);
}

bool Visitor::load_x(unsigned log2_size, Extend extend, Reg t, const Address& a) {
  set_class(InsnClass::kOffChipMemory);
  load(log2_size, extend, x_dst(t), a);
  return true;
}

bool Visitor::store_x(unsigned log2_size, Reg t, const Address& a) {
  set_class(InsnClass::kOffChipMemory);
  store(log2_size, x_src(t), a);
  return true;
}

// --- unsigned scaled offset

bool Visitor::STR_uimm(Imm<2> size, Imm<12> i, Reg n, Reg t) {
  return store_x(size, t, at(x_or_sp(n), int64_t{i} << size));
}
bool Visitor::LDR_uimm(Imm<2> size, Imm<12> i, Reg n, Reg t) {
  return load_x(size, Extend::kUnsigned, t, at(x_or_sp(n), int64_t{i} << size));
}
bool Visitor::LDRS_uimm(Imm<2> size, bool w, Imm<12> i, Reg n, Reg t) {
  return load_x(size, sign(w), t, at(x_or_sp(n), int64_t{i} << size));
}

// --- unscaled offset, and unprivileged, which is the same at EL0

bool Visitor::STUR(Imm<2> size, Imm<9> i, Reg n, Reg t) {
  return store_x(size, t, at(x_or_sp(n), i.sign_extend()));
}
bool Visitor::LDUR(Imm<2> size, Imm<9> i, Reg n, Reg t) {
  return load_x(size, Extend::kUnsigned, t, at(x_or_sp(n), i.sign_extend()));
}
bool Visitor::LDURS(Imm<2> size, bool w, Imm<9> i, Reg n, Reg t) {
  return load_x(size, sign(w), t, at(x_or_sp(n), i.sign_extend()));
}
bool Visitor::STTR(Imm<2> size, Imm<9> i, Reg n, Reg t) { return STUR(size, i, n, t); }
bool Visitor::LDTR(Imm<2> size, Imm<9> i, Reg n, Reg t) { return LDUR(size, i, n, t); }
bool Visitor::LDTRS(Imm<2> size, bool w, Imm<9> i, Reg n, Reg t) { return LDURS(size, w, i, n, t); }

// --- post- and pre-index

bool Visitor::load_prepost(unsigned log2_size, Extend extend, Reg t, Reg n, int64_t offset,
                           bool pre) {
  set_class(InsnClass::kOffChipMemory);
  const Slot base = x_or_sp(n);
  const Slot to = x_dst(t) == base ? kSink : x_dst(t);
  load(log2_size, extend, to, at(base, pre ? offset : 0));
  b_.addi64(base, base, static_cast<uint64_t>(offset));
  return true;
}

bool Visitor::STR_prepost(Imm<2> size, Imm<9> i, bool pre, Reg n, Reg t) {
  const Slot base = x_or_sp(n);
  store_x(size, t, at(base, pre ? i.sign_extend() : 0));
  b_.addi64(base, base, static_cast<uint64_t>(i.sign_extend()));
  return true;
}
bool Visitor::LDR_prepost(Imm<2> size, Imm<9> i, bool pre, Reg n, Reg t) {
  return load_prepost(size, Extend::kUnsigned, t, n, i.sign_extend(), pre);
}
bool Visitor::LDRS_prepost(Imm<2> size, bool w, Imm<9> i, bool pre, Reg n, Reg t) {
  return load_prepost(size, sign(w), t, n, i.sign_extend(), pre);
}

// --- register offset

bool Visitor::STR_reg(Imm<2> size, Reg m, Imm<3> option, bool scaled, Reg n, Reg t) {
  return store_x(size, t, register_offset(n, m, option, scaled ? size : 0));
}
bool Visitor::LDR_reg(Imm<2> size, Reg m, Imm<3> option, bool scaled, Reg n, Reg t) {
  return load_x(size, Extend::kUnsigned, t, register_offset(n, m, option, scaled ? size : 0));
}
bool Visitor::LDRS_reg(Imm<2> size, bool w, Reg m, Imm<3> option, bool scaled, Reg n, Reg t) {
  return load_x(size, sign(w), t, register_offset(n, m, option, scaled ? size : 0));
}

// --- literal: at a known address

bool Visitor::LDR_lit(bool is_64, Imm<19> i, Reg t) {
  return load_x(is_64 ? 3 : 2, Extend::kUnsigned, t,
                at(kZero, static_cast<int64_t>(label(i.sign_extend()))));
}
bool Visitor::LDRSW_lit(Imm<19> i, Reg t) {
  return load_x(2, Extend::kSign64, t, at(kZero, static_cast<int64_t>(label(i.sign_extend()))));
}

// --- prefetches are memory instructions without an effect

bool Visitor::prefetch() {
  set_class(InsnClass::kOffChipMemory);
  return true;
}
bool Visitor::PRFM_lit(Imm<19>, Reg) { return prefetch(); }
bool Visitor::PRFM_uimm(Imm<12>, Reg, Reg) { return prefetch(); }
bool Visitor::PRFM_reg(Reg, Imm<3>, bool, Reg, Reg) { return prefetch(); }
bool Visitor::PRFUM(Imm<9>, Reg, Reg) { return prefetch(); }

// LDRAA, LDRAB where the keys are disabled (SCTLR_EL1.EnDA = EnDB = 0): the pointer is used as it
// is. See PAC_reg.
bool Visitor::LDRA(Imm<1>, Imm<1> s, Imm<9> i, bool writeback, Reg n, Reg t) {
  const int64_t offset = concat(s, i).sign_extend() * 8;
  if (writeback) return load_prepost(3, Extend::kUnsigned, t, n, offset, true);
  return load_x(3, Extend::kUnsigned, t, at(x_or_sp(n), offset));
}

}  // namespace gpusim::a64
