// Conversions and moves of floating-point values (unprivileged manual, 11.7, 12.5, chapter 16;
// Zfa).
#include <array>
#include <bit>

#include "device_sim/uir/softfloat/convert.h"
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {
namespace {

constexpr uint32_t kDynamic = 7, kNearest = 0;

FpRounding rounding(uint32_t r) {
  constexpr FpRounding kModes[] = {FpRounding::kNearestEven, FpRounding::kZero,
                                   FpRounding::kMinusInf, FpRounding::kPlusInf,
                                   FpRounding::kNearestAway};
  return r == kDynamic ? FpRounding::kFpcr : kModes[r];
}

// FLI's values as doubles (Zfa, table "Immediate values for FLI"). The second is the format's
// smallest normal number.
constexpr int kFliMin = 1;
constexpr std::array<double, 32> kFli = {
    -1.0,   0.0, 0x1p-16, 0x1p-15, 0x1p-8, 0x1p-7, 0x1p-4, 0x1p-3, 0.25, 0.3125, 0.375,
    0.4375, 0.5, 0.625,   0.75,    0.875,  1.0,    1.25,   1.5,    1.75, 2.0,    2.5,
    3.0,    4.0, 8.0,     16.0,    128.0,  256.0,  0x1p15, 0x1p16, 0.0,  0.0};

}  // namespace

// --- between formats: to a wider one exactly

bool Visitor::FCVT_F(Imm<2> f, Imm<2> g, Reg n, Imm<3> r, Reg d) {
  set_class(is_double(f) || is_double(g) ? InsnClass::kDoubleArithmetic
                                         : InsnClass::kFloatArithmetic);
  const FpFormat from = format(g), to = format(f);
  const Slot a = unboxed(g, n), result = result_slot(f, d);
  const Slot state = state_for(to > from ? kDynamic : r.value);
  b_.emit(MicroOp::fconvert, result, a, 0, 0, 0,
          static_cast<uint8_t>(static_cast<int>(from) | static_cast<int>(to) << 2))
      .e = state;
  merge_state(state);
  box(f, d, result);
  return true;
}

// --- to integral values

bool Visitor::round_to_integral(bool exact, Imm<2> f, Reg n, Imm<3> r, Reg d) {
  set_float_class(f);
  const Slot a = unboxed(f, n), result = result_slot(f, d);
  const Slot state = state_for(exact ? r.value : kDynamic);
  const FpRounding mode = exact ? FpRounding::kFpcrExact : rounding(r);
  b_.emit(MicroOp::fround, result, a, 0, 0, 0,
          static_cast<uint8_t>(static_cast<int>(format(f)) | static_cast<int>(mode) << 2))
      .e = state;
  merge_state(state);
  box(f, d, result);
  return true;
}
bool Visitor::FROUND(Imm<2> f, Reg n, Imm<3> r, Reg d) {
  return round_to_integral(false, f, n, r, d);
}
bool Visitor::FROUNDNX(Imm<2> f, Reg n, Imm<3> r, Reg d) {
  return round_to_integral(true, f, n, r, d);
}

// --- to and from integers; RV64 sign-extends words, unsigned ones, too

bool Visitor::FCVT_TO_X(Imm<2> f, Imm<2> o, Reg n, Imm<3> r, Reg d) {
  set_float_class(f);
  const bool is_signed = (o & 1) == 0, is_64 = (o & 2) != 0;
  const bool fits = is_64 || is_rv32_;
  const Slot a = unboxed(f, n), result = fits ? x_dst(d) : b_.temp();
  b_.f2i(result, a, f2i_aux(format(f), rounding(r), is_signed, is_64));
  if (!fits) write_word(x_dst(d), result);
  return true;
}
bool Visitor::FCVT_FROM_X(Imm<2> f, Imm<2> o, Reg n, Imm<3> r, Reg d) {
  set_float_class(f);
  const bool is_signed = (o & 1) == 0, is_64 = (o & 2) != 0;
  const bool is_exact = is_double(f) && !is_64;
  const Slot result = result_slot(f, d), state = state_for(is_exact ? kDynamic : r.value);
  b_.emit(MicroOp::i2f, result, x_src(n), 0, 0, 0, i2f_aux(format(f), is_signed, is_64)).e = state;
  merge_state(state);
  box(f, d, result);
  return true;
}
// The low word of the integer, whatever is above it.
bool Visitor::FCVTMOD_W_D(Reg n, Reg d) {
  set_class(InsnClass::kDoubleArithmetic);
  const Slot result = b_.temp();
  b_.fmisc1(result, f_reg(n),
            static_cast<uint8_t>(static_cast<int>(FpFormat::kF64) |
                                 static_cast<int>(FpMisc1::kJscvt) << 2));
  write_word(x_dst(d), result);
  return true;
}

// --- bits as they are

bool Visitor::FMV_TO_X(Imm<2> f, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  if (is_double(f)) {
    b_.mov(x_dst(d), f_reg(n));
  } else if (f == 0) {
    write_word(x_dst(d), f_reg(n));
  } else {
    b_.emit(is_rv32_ ? MicroOp::sbf32 : MicroOp::sbf64, x_dst(d), f_reg(n), 0, 0, 48, 48);
  }
  return true;
}
// RV32's halves of a double.
bool Visitor::FMVH_X_D(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.lsri64(x_dst(d), f_reg(n), 32);
  return true;
}
bool Visitor::FMVP_D_X(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.add_lsl64(f_reg(d), x_src(n), x_src(m), 32);
  return true;
}
bool Visitor::FMV_FROM_X(Imm<2> f, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  if (is_double(f)) {
    b_.mov(f_reg(d), x_src(n));
  } else {
    box(f, d, x_src(n));
  }
  return true;
}
bool Visitor::FLI(Imm<2> f, Imm<5> i, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const FpFormat to = format(f);
  uint64_t bits = 0;
  // Half precision has no 2^16 and 2^-16 as normal numbers: infinity, and a subnormal.
  const auto converted = [&]<class F>(F) {
    if (i == kFliMin) return F::kFracMask + 1;
    if (i == 30) return F::kInf;
    if (i == 31) return F::kDefaultNan;
    uint64_t state = 0;
    const auto wide = std::bit_cast<uint64_t>(kFli[i]);
    if constexpr (F::kBits == 64) {
      return wide;
    } else {
      return softfloat::fp_convert<F, softfloat::F64>(wide, state);
    }
  };
  if (to == FpFormat::kF64) bits = converted(softfloat::F64{});
  if (to == FpFormat::kF32) bits = converted(softfloat::F32{});
  if (to == FpFormat::kF16) bits = converted(softfloat::F16{});
  b_.konst(f_reg(d), bits | box_bits(f));
  return true;
}

}  // namespace gpusim::riscv
