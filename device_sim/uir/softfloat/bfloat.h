// BFloat16 (Arm ARM, shared/functions/float: BFMulH, BFAdd, BFRound, FPConvertBF).
//
// Sums of products of pairs have an arithmetic of their own, unless FPCR.EBF (FEAT_EBF16) asks for
// the ordinary one: singles rounded to odd, subnormals zero, one NaN, no exceptions, no FPCR.
#pragma once

#include "device_sim/uir/softfloat/format.h"

namespace gpusim::softfloat {

using Bf16 = Format<16, 7>;

/// BFRound: to odd; what is below the normal range becomes zero, what is above it infinity.
GPUSIM_HD constexpr uint64_t bf_round_pack(bool sign, int exp, uint64_t sig) {
  const int field = exp + F32::kBias;
  if (field <= 0) return with_sign<F32>(sign, 0);
  if (field >= F32::kExpOnes) return with_sign<F32>(sign, F32::kInf);
  const uint64_t mantissa = sig >> 40 | ((sig & low_mask(40)) != 0);
  return with_sign<F32>(
      sign, static_cast<uint64_t>(field) << F32::kFracBits | (mantissa & F32::kFracMask));
}

GPUSIM_HD constexpr Unpacked bf_unpack(uint64_t bits) {
  uint64_t no_exceptions = 0;
  return unpack_base<F32>(bits, true, false, no_exceptions);
}

/// BFMulH, on BFloat16 operands in the upper halves of singles.
GPUSIM_HD constexpr uint64_t bf_mul(uint64_t op1, uint64_t op2) {
  const Unpacked a = bf_unpack(op1), b = bf_unpack(op2);
  const bool sign = a.sign != b.sign;
  if (a.is_nan() || b.is_nan() || (a.is_inf() && b.is_zero()) || (a.is_zero() && b.is_inf())) {
    return F32::kDefaultNan;
  }
  if (a.is_inf() || b.is_inf()) return with_sign<F32>(sign, F32::kInf);
  if (a.is_zero() || b.is_zero()) return with_sign<F32>(sign, 0);
  int exp = a.exp + b.exp + 1;
  const uint64_t sig = normalize(multiply_wide(a.sig, b.sig), exp);
  return bf_round_pack(sign, exp, sig);
}

/// BFAdd.
GPUSIM_HD constexpr uint64_t bf_add(uint64_t op1, uint64_t op2) {
  Unpacked a = bf_unpack(op1), b = bf_unpack(op2);
  if (a.is_nan() || b.is_nan() || (a.is_inf() && b.is_inf() && a.sign != b.sign)) {
    return F32::kDefaultNan;
  }
  if (a.is_inf()) return with_sign<F32>(a.sign, F32::kInf);
  if (b.is_inf()) return with_sign<F32>(b.sign, F32::kInf);
  if (a.is_zero() && b.is_zero()) return with_sign<F32>(a.sign && b.sign, 0);
  if (a.is_zero()) return op2;
  if (b.is_zero()) return op1;
  if (a.exp < b.exp) {
    const Unpacked t = a;
    a = b;
    b = t;
  }
  // One bit down for the carry; singles leave enough below for a jam bit.
  const uint64_t x = a.sig >> 1, y = shift_right_jam(b.sig >> 1, a.exp - b.exp);
  int exp = a.exp + 1;
  bool sign = a.sign;
  uint64_t sum = x + y;
  if (a.sign != b.sign) {
    sum = x - y;
    if (x < y) {
      sum = y - x;
      sign = b.sign;
    }
    if (sum == 0) return 0;
  }
  const uint64_t sig = normalize(sum, exp);
  return bf_round_pack(sign, exp, sig);
}

/// addend + the products of the pairs of BFloat16 values in two words of 32 bits (BFDotAdd).
GPUSIM_HD constexpr uint64_t bf_dot_add(uint64_t addend, uint64_t pair1, uint64_t pair2) {
  const uint64_t even = bf_mul(pair1 << 16 & 0xffffffff, pair2 << 16 & 0xffffffff);
  const uint64_t odd = bf_mul(pair1 & 0xffff0000, pair2 & 0xffff0000);
  return bf_add(addend, bf_add(even, odd));
}

/// FPConvertBF, of a single.
GPUSIM_HD constexpr uint64_t fp_convert_bf(uint64_t op, uint64_t& fpst) {
  const Unpacked a = unpack<F32>(op, fpst);
  if (a.is_nan()) {
    if (a.is_snan()) fpst |= kFpsrIoc;
    return has_canonical_nan<Bf16>(fpst) ? default_nan<Bf16>(fpst) : op >> 16 | Bf16::kQuietBit;
  }
  if (a.is_inf()) return with_sign<Bf16>(a.sign, Bf16::kInf);
  if (a.is_zero()) return with_sign<Bf16>(a.sign, 0);
  return round_pack_base<Bf16>(a.sign, a.exp, a.sig, rounding_mode(fpst), (fpst & kFpcrFz) != 0,
                               false, fpst);
}

}  // namespace gpusim::softfloat
