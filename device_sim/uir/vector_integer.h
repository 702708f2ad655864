// Vector operations on one element of integers and fixed-point numbers.
#pragma once

#include "device_sim/uir/softfloat/bits.h"
#include "device_sim/uir/vector.h"

namespace gpusim::vector {

GPUSIM_HD constexpr int64_t sign_extend(uint64_t a, int bits) {
  return static_cast<int64_t>(a << (64 - bits)) >> (64 - bits);
}
GPUSIM_HD constexpr uint64_t extended(uint64_t a, int bits) {
  return static_cast<uint64_t>(sign_extend(a, bits));
}

// What rounding adds to a number that loses bits: the lowest bit that stays, the highest one that
// goes, and whether one below that is set. `mode` is vxrm: to nearest up, to nearest even, down, to
// odd.
GPUSIM_HD constexpr uint64_t rounding(uint32_t mode, bool lowest, bool half, bool rest) {
  switch (mode) {
    case 0:
      return half;
    case 1:
      return half && (rest || lowest);
    case 2:
      return 0;
    default:
      return !lowest && (half || rest);
  }
}
// a >> shift, rounded; arithmetic if `is_signed`. shift < 64.
GPUSIM_HD constexpr uint64_t rounded_shift(uint64_t a, int shift, bool is_signed, uint32_t mode) {
  if (shift == 0) return a;
  const uint64_t whole =
      is_signed ? static_cast<uint64_t>(static_cast<int64_t>(a) >> shift) : a >> shift;
  const bool half = (a >> (shift - 1) & 1) != 0;
  const bool rest = (a & softfloat::low_mask(shift - 1)) != 0;
  return whole + rounding(mode, (whole & 1) != 0, half, rest);
}

GPUSIM_HD constexpr uint64_t high_product(uint64_t a, uint64_t b, bool a_signed, bool b_signed) {
  uint64_t high = softfloat::multiply_wide(a, b).hi;
  if (a_signed && static_cast<int64_t>(a) < 0) high -= b;
  if (b_signed && static_cast<int64_t>(b) < 0) high -= a;
  return high;
}

// a and b fill `bits` bits, zero above.
GPUSIM_HD constexpr uint64_t saturating_add(uint64_t a, uint64_t b, int bits, bool is_signed,
                                            bool subtract, bool& saturated) {
  const uint64_t ones = softfloat::low_mask(bits), top = uint64_t{1} << (bits - 1);
  const uint64_t sum = (subtract ? a - b : a + b) & ones;
  if (!is_signed) {
    const bool over = subtract ? a < b : sum < a;
    saturated |= over;
    return over ? (subtract ? 0 : ones) : sum;
  }
  const uint64_t other = subtract ? ~b : b;
  const bool over = ((a ^ sum) & (other ^ sum) & top) != 0;
  saturated |= over;
  return over ? ((a & top) != 0 ? top : top - 1) : sum;
}

// (a + b) / 2 or (a - b) / 2 of extended operands.
GPUSIM_HD constexpr uint64_t average(uint64_t a, uint64_t b, bool is_signed, bool subtract,
                                     uint32_t mode) {
  const auto halved = [&](uint64_t x) {
    return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(x) >> 1) : x >> 1;
  };
  const uint64_t whole =
      subtract ? halved(a) - halved(b) - (~a & b & 1) : halved(a) + halved(b) + (a & b & 1);
  return whole + rounding(mode, (whole & 1) != 0, ((a ^ b) & 1) != 0, false);
}

// Signed a * b / 2^(bits - 1) of extended operands.
GPUSIM_HD constexpr uint64_t fraction_product(uint64_t a, uint64_t b, int bits, uint32_t mode,
                                              bool& saturated) {
  const uint64_t least = extended(uint64_t{1} << (bits - 1), bits);
  if (a == least && b == least) {
    saturated = true;
    return ~least;
  }
  if (bits < 64) return rounded_shift(a * b, bits - 1, true, mode);
  const uint64_t low = a * b, whole = high_product(a, b, true, true) << 1 | low >> 63;
  return whole + rounding(mode, (whole & 1) != 0, (low >> 62 & 1) != 0, low << 2 != 0);
}

GPUSIM_HD constexpr uint64_t clipped(uint64_t a, int bits, bool is_signed, bool& saturated) {
  const uint64_t ones = softfloat::low_mask(bits);
  if (!is_signed) {
    saturated |= a > ones;
    return a > ones ? ones : a;
  }
  const auto value = static_cast<int64_t>(a);
  const auto most = static_cast<int64_t>(ones >> 1);
  saturated |= value > most || value < ~most;
  return static_cast<uint64_t>(value > most ? most : value < ~most ? ~most : value);
}

// As the manual's: by zero gives all ones and the dividend.
GPUSIM_HD constexpr uint64_t divided(uint64_t a, uint64_t b, bool is_signed, bool remainder) {
  if (b == 0) return remainder ? a : ~uint64_t{0};
  if (!is_signed) return remainder ? a % b : a / b;
  if (b == ~uint64_t{0}) return remainder ? 0 : 0 - a;
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  return static_cast<uint64_t>(remainder ? x % y : x / y);
}

// An element of the result, maybe with bits above it. a, b and d are zero-extended.
GPUSIM_HD inline uint64_t integer_element(Work& w, uint64_t a, uint64_t b, uint64_t d) {
  const int bits = 8 << w.log_size, a_bits = 8 << w.a_size;
  const uint64_t sa = extended(a, a_bits), sb = extended(b, bits);
  const int shift = static_cast<int>(b & static_cast<uint64_t>(a_bits - 1));
  const auto mode = static_cast<uint32_t>(w.vcsr >> 1 & 3);
  bool saturated = false;
  uint64_t r = 0;
  switch (w.insn.op) {
    case VectorOp::vadd:
    case VectorOp::vredsum:
    case VectorOp::vwaddu:
    case VectorOp::vwaddu_w:
    case VectorOp::vwredsumu:
      return a + b;
    case VectorOp::vwadd:
      return sa + sb;
    case VectorOp::vwadd_w:
    case VectorOp::vwredsum:
      return a + sb;
    case VectorOp::vsub:
    case VectorOp::vwsubu:
    case VectorOp::vwsubu_w:
      return a - b;
    case VectorOp::vwsub:
      return sa - sb;
    case VectorOp::vwsub_w:
      return a - sb;
    case VectorOp::vrsub:
      return b - a;
    case VectorOp::vminu:
    case VectorOp::vredminu:
      return a < b ? a : b;
    case VectorOp::vmin:
    case VectorOp::vredmin:
      return static_cast<int64_t>(sa) < static_cast<int64_t>(sb) ? a : b;
    case VectorOp::vmaxu:
    case VectorOp::vredmaxu:
      return a > b ? a : b;
    case VectorOp::vmax:
    case VectorOp::vredmax:
      return static_cast<int64_t>(sa) > static_cast<int64_t>(sb) ? a : b;
    case VectorOp::vand:
    case VectorOp::vredand:
      return a & b;
    case VectorOp::vor:
    case VectorOp::vredor:
      return a | b;
    case VectorOp::vxor:
    case VectorOp::vredxor:
      return a ^ b;
    case VectorOp::vsll:
      return a << shift;
    case VectorOp::vsrl:
    case VectorOp::vnsrl:
      return a >> shift;
    case VectorOp::vsra:
    case VectorOp::vnsra:
      return static_cast<uint64_t>(static_cast<int64_t>(sa) >> shift);
    case VectorOp::vmul:
    case VectorOp::vwmulu:
      return a * b;
    case VectorOp::vwmul:
      return sa * sb;
    case VectorOp::vwmulsu:
      return sa * b;
    case VectorOp::vmulh:
      return bits < 64 ? (sa * sb) >> bits : high_product(a, b, true, true);
    case VectorOp::vmulhu:
      return bits < 64 ? (a * b) >> bits : high_product(a, b, false, false);
    case VectorOp::vmulhsu:
      return bits < 64 ? (sa * b) >> bits : high_product(a, b, true, false);
    case VectorOp::vdivu:
      return divided(a, b, false, false);
    case VectorOp::vdiv:
      return divided(sa, sb, true, false);
    case VectorOp::vremu:
      return divided(a, b, false, true);
    case VectorOp::vrem:
      return divided(sa, sb, true, true);
    case VectorOp::vmadd:
      return b * d + a;
    case VectorOp::vnmsub:
      return a - b * d;
    case VectorOp::vmacc:
    case VectorOp::vwmaccu:
      return d + b * a;
    case VectorOp::vnmsac:
      return d - b * a;
    case VectorOp::vwmacc:
      return d + sb * sa;
    case VectorOp::vwmaccsu:
      return d + sb * a;
    case VectorOp::vwmaccus:
      return d + b * sa;
    case VectorOp::vzext_vf2:
    case VectorOp::vzext_vf4:
    case VectorOp::vzext_vf8:
      return a;
    case VectorOp::vsext_vf2:
    case VectorOp::vsext_vf4:
    case VectorOp::vsext_vf8:
      return sa;
    case VectorOp::vmv_v:
      return b;
    case VectorOp::vsaddu:
      r = saturating_add(a, b, bits, false, false, saturated);
      break;
    case VectorOp::vsadd:
      r = saturating_add(a, b, bits, true, false, saturated);
      break;
    case VectorOp::vssubu:
      r = saturating_add(a, b, bits, false, true, saturated);
      break;
    case VectorOp::vssub:
      r = saturating_add(a, b, bits, true, true, saturated);
      break;
    case VectorOp::vaaddu:
      return average(a, b, false, false, mode);
    case VectorOp::vaadd:
      return average(sa, sb, true, false, mode);
    case VectorOp::vasubu:
      return average(a, b, false, true, mode);
    case VectorOp::vasub:
      return average(sa, sb, true, true, mode);
    case VectorOp::vsmul:
      r = fraction_product(sa, sb, bits, mode, saturated);
      break;
    case VectorOp::vssrl:
      return rounded_shift(a, shift, false, mode);
    case VectorOp::vssra:
      return rounded_shift(sa, shift, true, mode);
    case VectorOp::vnclipu:
      r = clipped(rounded_shift(a, shift, false, mode), bits, false, saturated);
      break;
    case VectorOp::vnclip:
      r = clipped(rounded_shift(sa, shift, true, mode), bits, true, saturated);
      break;
    default:
      return 0;
  }
  w.vcsr |= saturated;
  return r;
}

GPUSIM_HD inline bool integer_compare(const Work& w, uint64_t a, uint64_t b) {
  const int bits = 8 << w.log_size;
  const int64_t sa = sign_extend(a, bits), sb = sign_extend(b, bits);
  switch (w.insn.op) {
    case VectorOp::vmseq:
      return a == b;
    case VectorOp::vmsne:
      return a != b;
    case VectorOp::vmsltu:
      return a < b;
    case VectorOp::vmslt:
      return sa < sb;
    case VectorOp::vmsleu:
      return a <= b;
    case VectorOp::vmsle:
      return sa <= sb;
    case VectorOp::vmsgtu:
      return a > b;
    default:
      return sa > sb;
  }
}

}  // namespace gpusim::vector
