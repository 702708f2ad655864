// Add and subtract: immediate, shifted, extended, with carry (C4.1.86, C4.1.89).
//
// Flags come before the result, which may overwrite a source. ADDS and SUBS into XZR are CMN and
// CMP and count as comparisons.
#include "translator/a64/visitor.h"

namespace gpusim::a64 {
namespace {

constexpr InsnClass flag_setting_class(Reg d) {
  return d == 31 ? InsnClass::kIntegerComparison : InsnClass::kIntegerArithmetic;
}
constexpr uint32_t imm12(bool sh, uint32_t i) { return sh ? i << 12 : i; }

}  // namespace

bool Visitor::ADR(Imm<2> l, Imm<19> i, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  write_konst(d, pc_ + static_cast<uint64_t>(concat(i, l).sign_extend()));
  return true;
}

bool Visitor::ADRP(Imm<2> l, Imm<19> i, Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  write_konst(d,
              (pc_ & ~uint64_t{0xfff}) + (static_cast<uint64_t>(concat(i, l).sign_extend()) << 12));
  return true;
}

// --- immediate

bool Visitor::add_imm(bool sf, Slot d, Slot n, int64_t imm) {
  set_class(InsnClass::kIntegerArithmetic);
  const uint64_t value = static_cast<uint64_t>(imm);
  if (imm == 0) {
    move(sf, d, n);
  } else if (const uint64_t* known = sf ? last_konst(n) : nullptr) {
    b_.konst(d, *known + value);  // ADRP and ADD
  } else {
    b_.emit(sf ? MicroOp::addi64 : MicroOp::addi32, d, n, 0, 0, value);
  }
  return true;
}

// n + imm has the flags of n - -imm, unless imm is 0; the latter form fuses with branches.
void Visitor::flags_add_imm(bool sf, Slot flags, Slot n, uint32_t imm) {
  if (imm == 0) {
    b_.emit(sf ? MicroOp::fl_nz64 : MicroOp::fl_nz32, flags, n);
  } else {
    b_.emit(sf ? MicroOp::fl_sub64 : MicroOp::fl_sub32, flags, n, konst(-uint64_t{imm}));
  }
}

void Visitor::flags_sub_imm(bool sf, Slot flags, Slot n, uint32_t imm) {
  b_.emit(sf ? MicroOp::fl_sub64 : MicroOp::fl_sub32, flags, n, konst(imm));
}

bool Visitor::ADD_imm(bool sf, bool sh, Imm<12> i, Reg n, Reg d) {
  return add_imm(sf, x_or_sp(d), x_or_sp(n), imm12(sh, i));
}

bool Visitor::SUB_imm(bool sf, bool sh, Imm<12> i, Reg n, Reg d) {
  return add_imm(sf, x_or_sp(d), x_or_sp(n), -int64_t{imm12(sh, i)});
}

bool Visitor::ADDS_imm(bool sf, bool sh, Imm<12> i, Reg n, Reg d) {
  flags_add_imm(sf, kNzcv, x_or_sp(n), imm12(sh, i));
  if (d != 31) add_imm(sf, x_dst(d), x_or_sp(n), imm12(sh, i));
  set_class(flag_setting_class(d));
  return true;
}

bool Visitor::SUBS_imm(bool sf, bool sh, Imm<12> i, Reg n, Reg d) {
  flags_sub_imm(sf, kNzcv, x_or_sp(n), imm12(sh, i));
  if (d != 31) add_imm(sf, x_dst(d), x_or_sp(n), -int64_t{imm12(sh, i)});
  set_class(flag_setting_class(d));
  return true;
}

// --- shifted register

bool Visitor::add_reg(bool sf, bool subtract, Slot d, Slot n, Slot m) {
  set_class(InsnClass::kIntegerArithmetic);
  if (subtract) {
    b_.emit(sf ? MicroOp::sub64 : MicroOp::sub32, d, n, m);
  } else {
    b_.emit(sf ? MicroOp::add64 : MicroOp::add32, d, n, m);
  }
  return true;
}

bool Visitor::set_flags_reg(bool sf, bool subtract, Reg d, Slot n, Slot m) {
  if (subtract) {
    b_.emit(sf ? MicroOp::fl_sub64 : MicroOp::fl_sub32, kNzcv, n, m);
  } else {
    b_.emit(sf ? MicroOp::fl_add64 : MicroOp::fl_add32, kNzcv, n, m);
  }
  if (d != 31) add_reg(sf, subtract, x_dst(d), n, m);
  set_class(flag_setting_class(d));
  return true;
}

bool Visitor::add_shift(bool sf, bool subtract, uint32_t shift, Reg m, uint32_t amount, Reg n,
                        Reg d) {
  if (d == 31) {
    set_class(InsnClass::kIntegerArithmetic);
    return true;
  }
  if (shift != 0 || amount == 0)
    return add_reg(sf, subtract, x_dst(d), x_src(n), shifted(sf, m, shift, amount));
  set_class(InsnClass::kIntegerArithmetic);
  if (subtract) {
    b_.emit(sf ? MicroOp::sub_lsl64 : MicroOp::sub_lsl32, x_dst(d), x_src(n), x_src(m), 0, amount);
  } else {
    b_.emit(sf ? MicroOp::add_lsl64 : MicroOp::add_lsl32, x_dst(d), x_src(n), x_src(m), 0, amount);
  }
  return true;
}

bool Visitor::ADD_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  return add_shift(sf, false, shift, m, i, n, d);
}
bool Visitor::SUB_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  return add_shift(sf, true, shift, m, i, n, d);
}
bool Visitor::ADDS_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  return set_flags_reg(sf, false, d, x_src(n), shifted(sf, m, shift, i));
}
bool Visitor::SUBS_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d) {
  return set_flags_reg(sf, true, d, x_src(n), shifted(sf, m, shift, i));
}

// --- extended register

bool Visitor::add_ext(bool sf, bool subtract, Reg m, uint32_t option, uint32_t amount, Reg n,
                      Reg d) {
  set_class(InsnClass::kIntegerArithmetic);
  const bool whole = (option & 3) == 3 || (!sf && (option & 3) == 2);
  if (whole && amount != 0) {
    const MicroOp op64 = subtract ? MicroOp::sub_lsl64 : MicroOp::add_lsl64;
    const MicroOp op32 = subtract ? MicroOp::sub_lsl32 : MicroOp::add_lsl32;
    b_.emit(sf ? op64 : op32, x_or_sp(d), x_or_sp(n), x_src(m), 0, amount);
    return true;
  }
  if (sf && !subtract && option == 6) {  // SXTW
    b_.add_sxtw64(x_or_sp(d), x_or_sp(n), x_src(m), amount);
    return true;
  }
  return add_reg(sf, subtract, x_or_sp(d), x_or_sp(n), extended(sf, m, option, amount));
}

bool Visitor::ADD_ext(bool sf, Reg m, Imm<3> option, Imm<3> i, Reg n, Reg d) {
  return add_ext(sf, false, m, option, i, n, d);
}
bool Visitor::SUB_ext(bool sf, Reg m, Imm<3> option, Imm<3> i, Reg n, Reg d) {
  return add_ext(sf, true, m, option, i, n, d);
}
bool Visitor::ADDS_ext(bool sf, Reg m, Imm<3> option, Imm<3> i, Reg n, Reg d) {
  return set_flags_reg(sf, false, d, x_or_sp(n), extended(sf, m, option, i));
}
bool Visitor::SUBS_ext(bool sf, Reg m, Imm<3> option, Imm<3> i, Reg n, Reg d) {
  return set_flags_reg(sf, true, d, x_or_sp(n), extended(sf, m, option, i));
}

// --- with carry. n - m - !C is n + ~m + C.

Slot Visitor::inverted(Slot m) {
  const Slot t = b_.temp();
  b_.xori64(t, m, ~uint64_t{0});
  return t;
}

// The flags depend on the old carry and the sources, both of which the instruction may overwrite.
bool Visitor::adc(bool sf, Flags flags, Slot d, Slot n, Slot m) {
  set_class(InsnClass::kIntegerArithmetic);
  const MicroOp sum = sf ? MicroOp::adc64 : MicroOp::adc32;
  const MicroOp sum_flags = sf ? MicroOp::fl_adc64 : MicroOp::fl_adc32;
  if (flags == Flags::kKeep || d == kSink) {
    if (flags == Flags::kSet)
      b_.emit(sum_flags, kNzcv, n, m, kNzcv);
    else
      b_.emit(sum, d, n, m, kNzcv);
    return true;
  }
  const Slot result = d == n || d == m ? b_.temp() : d;
  b_.emit(sum, result, n, m, kNzcv);
  b_.emit(sum_flags, kNzcv, n, m, kNzcv);
  if (result != d) b_.mov(d, result);
  return true;
}

bool Visitor::ADC(bool sf, Reg m, Reg n, Reg d) {
  return adc(sf, Flags::kKeep, x_dst(d), x_src(n), x_src(m));
}
bool Visitor::ADCS(bool sf, Reg m, Reg n, Reg d) {
  return adc(sf, Flags::kSet, x_dst(d), x_src(n), x_src(m));
}
bool Visitor::SBC(bool sf, Reg m, Reg n, Reg d) {
  return adc(sf, Flags::kKeep, x_dst(d), x_src(n), inverted(x_src(m)));
}
bool Visitor::SBCS(bool sf, Reg m, Reg n, Reg d) {
  return adc(sf, Flags::kSet, x_dst(d), x_src(n), inverted(x_src(m)));
}

}  // namespace gpusim::a64
