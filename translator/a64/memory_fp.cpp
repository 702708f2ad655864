// Loads and stores of scalar FP/SIMD registers: 1 to 16 bytes (C4.1.88).
#include "translator/a64/visitor.h"

namespace gpusim::a64 {
namespace {

constexpr unsigned log2_bytes(Imm<2> size, Imm<1> q) { return q ? 4 : size; }

}  // namespace

// A load clears the rest of the register.
void Visitor::load_v(unsigned log2_size, Reg t, const Address& where) {
  set_class(InsnClass::kOffChipMemory);
  if (log2_size < 4) {
    load(log2_size, Extend::kUnsigned, v_low(t), where);
    b_.konst(v_high(t), 0);
    return;
  }
  Address a = flat(where);
  load(3, Extend::kUnsigned, v_low(t), a);
  a.offset += 8;
  load(3, Extend::kUnsigned, v_high(t), a);
}

void Visitor::store_v(unsigned log2_size, Reg t, const Address& where) {
  set_class(InsnClass::kOffChipMemory);
  if (log2_size < 4) return store(log2_size, v_low(t), where);
  Address a = flat(where);
  store(3, v_low(t), a);
  a.offset += 8;
  store(3, v_high(t), a);
}

bool Visitor::STR_fp_uimm(Imm<2> size, Imm<1> q, Imm<12> i, Reg n, Reg t) {
  const unsigned log2_size = log2_bytes(size, q);
  store_v(log2_size, t, at(x_or_sp(n), int64_t{i} << log2_size));
  return true;
}
bool Visitor::LDR_fp_uimm(Imm<2> size, Imm<1> q, Imm<12> i, Reg n, Reg t) {
  const unsigned log2_size = log2_bytes(size, q);
  load_v(log2_size, t, at(x_or_sp(n), int64_t{i} << log2_size));
  return true;
}

bool Visitor::STUR_fp(Imm<2> size, Imm<1> q, Imm<9> i, Reg n, Reg t) {
  store_v(log2_bytes(size, q), t, at(x_or_sp(n), i.sign_extend()));
  return true;
}
bool Visitor::LDUR_fp(Imm<2> size, Imm<1> q, Imm<9> i, Reg n, Reg t) {
  load_v(log2_bytes(size, q), t, at(x_or_sp(n), i.sign_extend()));
  return true;
}

bool Visitor::STR_fp_prepost(Imm<2> size, Imm<1> q, Imm<9> i, bool pre, Reg n, Reg t) {
  const Slot base = x_or_sp(n);
  store_v(log2_bytes(size, q), t, at(base, pre ? i.sign_extend() : 0));
  b_.addi64(base, base, static_cast<uint64_t>(i.sign_extend()));
  return true;
}
bool Visitor::LDR_fp_prepost(Imm<2> size, Imm<1> q, Imm<9> i, bool pre, Reg n, Reg t) {
  const Slot base = x_or_sp(n);
  load_v(log2_bytes(size, q), t, at(base, pre ? i.sign_extend() : 0));
  b_.addi64(base, base, static_cast<uint64_t>(i.sign_extend()));
  return true;
}

bool Visitor::STR_fp_reg(Imm<2> size, Imm<1> q, Reg m, Imm<3> option, bool scaled, Reg n, Reg t) {
  const unsigned log2_size = log2_bytes(size, q);
  store_v(log2_size, t, register_offset(n, m, option, scaled ? log2_size : 0));
  return true;
}
bool Visitor::LDR_fp_reg(Imm<2> size, Imm<1> q, Reg m, Imm<3> option, bool scaled, Reg n, Reg t) {
  const unsigned log2_size = log2_bytes(size, q);
  load_v(log2_size, t, register_offset(n, m, option, scaled ? log2_size : 0));
  return true;
}

// Size here and in pairs: 0 S, 1 D, 2 Q.
bool Visitor::LDR_fp_lit(Imm<2> size, Imm<19> i, Reg t) {
  load_v(size + 2, t, at(kZero, static_cast<int64_t>(label(i.sign_extend()))));
  return true;
}

bool Visitor::STP_fp(Imm<2> size, Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t) {
  const Slot base = x_or_sp(n);
  const unsigned log2_size = size + 2;
  const int64_t offset = i.sign_extend() * (int64_t{1} << log2_size);
  const int64_t first = mode == 1 ? 0 : offset;
  store_v(log2_size, t, at(base, first));
  store_v(log2_size, u, at(base, first + (int64_t{1} << log2_size)));
  if (mode != 2) b_.addi64(base, base, static_cast<uint64_t>(offset));
  return true;
}
bool Visitor::LDP_fp(Imm<2> size, Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t) {
  const Slot base = x_or_sp(n);
  const unsigned log2_size = size + 2;
  const int64_t offset = i.sign_extend() * (int64_t{1} << log2_size);
  const int64_t first = mode == 1 ? 0 : offset;
  load_v(log2_size, t, at(base, first));
  load_v(log2_size, u, at(base, first + (int64_t{1} << log2_size)));
  if (mode != 2) b_.addi64(base, base, static_cast<uint64_t>(offset));
  return true;
}
bool Visitor::STNP_fp(Imm<2> size, Imm<7> i, Reg u, Reg n, Reg t) {
  return STP_fp(size, {2}, i, u, n, t);
}
bool Visitor::LDNP_fp(Imm<2> size, Imm<7> i, Reg u, Reg n, Reg t) {
  return LDP_fp(size, {2}, i, u, n, t);
}

}  // namespace gpusim::a64
