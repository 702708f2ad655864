// Vector operations on one element of floating-point numbers.
#pragma once

#include "device_sim/uir/semantics.h"
#include "device_sim/uir/vector.h"

namespace gpusim::vector {

GPUSIM_HD constexpr FpFormat float_format(int log_size) {
  return static_cast<FpFormat>(log_size - 1);
}
GPUSIM_HD constexpr uint32_t format_bits(int log_size) {
  return static_cast<uint32_t>(float_format(log_size));
}
GPUSIM_HD constexpr uint64_t sign_of(int log_size) { return uint64_t{1} << ((8 << log_size) - 1); }

enum class Arithmetic : uint8_t { kAdd, kSub, kMul, kDiv };

// Through the micro-ops' semantics, which are quick where the machine's arithmetic agrees.
GPUSIM_HD inline uint64_t arithmetic(Arithmetic what, int log_size, uint64_t a, uint64_t b,
                                     uint64_t& fp) {
  using SD = sem::ScalarDomain;
  const Uop u{};
  if (log_size == 1) {
    constexpr FpMisc2 kOfHalves[] = {FpMisc2::kAdd, FpMisc2::kSub, FpMisc2::kMul, FpMisc2::kDiv};
    return helpers::fmisc2(a, b, static_cast<uint32_t>(kOfHalves[static_cast<int>(what)]) << 2, fp);
  }
  const bool is_double = log_size == 3;
  switch (what) {
    case Arithmetic::kAdd:
      return is_double ? sem::fadd64<SD>(a, b, fp, u) : sem::fadd32<SD>(a, b, fp, u);
    case Arithmetic::kSub:
      return is_double ? sem::fsub64<SD>(a, b, fp, u) : sem::fsub32<SD>(a, b, fp, u);
    case Arithmetic::kMul:
      return is_double ? sem::fmul64<SD>(a, b, fp, u) : sem::fmul32<SD>(a, b, fp, u);
    default:
      return is_double ? sem::fdiv64<SD>(a, b, fp, u) : sem::fdiv32<SD>(a, b, fp, u);
  }
}

// x * y + z, either part negated. The sign of a NaN does not reach the result.
GPUSIM_HD inline uint64_t fused(int log_size, uint64_t x, uint64_t y, uint64_t z,
                                bool negate_product, bool negate_addend, uint64_t& fp) {
  using SD = sem::ScalarDomain;
  const uint64_t sign = sign_of(log_size);
  if (negate_product) x ^= sign;
  if (negate_addend) z ^= sign;
  const Uop u{};
  if (log_size == 1) return helpers::fmisc3(x, y, z, 0, fp);
  return log_size == 3 ? sem::fma64<SD>(x, y, z, fp, u) : sem::fma32<SD>(x, y, z, fp, u);
}

GPUSIM_HD inline uint64_t converted(uint64_t a, int from, int to, bool to_odd, uint64_t& fp) {
  return helpers::fconvert(a, format_bits(from) | format_bits(to) << 2 | uint32_t{to_odd} << 4, fp);
}
GPUSIM_HD inline uint64_t to_integer(uint64_t a, int from, int to, bool is_signed, bool to_zero,
                                     uint64_t& fp) {
  const FpRounding mode = to_zero ? FpRounding::kZero : FpRounding::kFpcr;
  return helpers::f2i(a, f2i_aux(float_format(from), mode, is_signed, false), 0, 8 << to, fp);
}
GPUSIM_HD inline uint64_t from_integer(uint64_t a, int from, int to, bool is_signed, uint64_t& fp) {
  return helpers::i2f(a, i2f_aux(float_format(to), is_signed, false), 0, 8 << from, fp);
}

GPUSIM_HD inline uint64_t extreme(int log_size, bool minimum, uint64_t a, uint64_t b,
                                  uint64_t& fp) {
  const FpMinMax kind = minimum ? FpMinMax::kMinimumNumber : FpMinMax::kMaximumNumber;
  return helpers::fminmax(a, b, format_bits(log_size) | static_cast<uint32_t>(kind) << 2, fp);
}

// --- estimates of seven bits (14.9 and 14.10). The tables there hold the nearest numbers of seven
// bits to the function of the interval's middle.

// 2^14 / x for x in [2^7, 2^8), from its first seven bits behind the leading one.
GPUSIM_HD constexpr uint64_t reciprocal_bits(uint64_t index) {
  const uint64_t twice = 2 * (128 + index) + 1;
  return ((uint64_t{1} << 17) + twice) / (2 * twice) - 128;
}
// Index: the exponent's lowest bit, then six bits of the fraction. Odd biased exponents are even
// ones.
GPUSIM_HD constexpr uint64_t root_bits(uint64_t index) {
  const uint64_t x = (2 * (64 + (index & 63)) + 1) << (index < 64 ? 1 : 0);  // times 2^-7
  // The nearest r to 2^8 / sqrt(x * 2^-7): (2 r - 1)^2 * x <= 2^25.
  uint64_t r = 128;
  while (r < 255 && (2 * r + 1) * (2 * r + 1) * x <= uint64_t{1} << 25) ++r;
  return r - 128;
}

struct Parts {
  bool sign;
  int exponent;       // biased; of subnormal numbers as if there were more
  uint64_t fraction;  // without the leading one, at the top of 64 bits
};
template <class F>
GPUSIM_HD Parts normal_parts(uint64_t a) {
  Parts p{(a & F::kSign) != 0, static_cast<int>((a & F::kInf) >> F::kFracBits),
          (a & F::kFracMask) << (64 - F::kFracBits)};
  if (p.exponent == 0) {
    const int zeros = softfloat::count_leading_zeros(p.fraction);
    p.exponent = -zeros;
    p.fraction = p.fraction << zeros << 1;
  }
  return p;
}

template <class F>
GPUSIM_HD uint64_t reciprocal_root_estimate(uint64_t a, uint64_t& fp) {
  const uint64_t magnitude = a & ~F::kSign;
  if (magnitude > F::kInf) {
    if ((a & F::kQuietBit) == 0) fp |= softfloat::kFpsrIoc;
    return F::kDefaultNan;
  }
  if (magnitude == 0) {
    fp |= softfloat::kFpsrDzc;
    return F::kInf | (a & F::kSign);
  }
  if (a & F::kSign) {
    fp |= softfloat::kFpsrIoc;
    return F::kDefaultNan;
  }
  if (a == F::kInf) return 0;
  const Parts p = normal_parts<F>(a);
  const uint64_t index = static_cast<uint64_t>(p.exponent & 1) << 6 | p.fraction >> 58;
  const auto exponent = static_cast<uint64_t>((3 * F::kBias - 1 - p.exponent) >> 1);
  return exponent << F::kFracBits | root_bits(index) << (F::kFracBits - 7);
}

template <class F>
GPUSIM_HD uint64_t reciprocal_estimate(uint64_t a, uint64_t& fp) {
  const uint64_t magnitude = a & ~F::kSign, sign = a & F::kSign;
  if (magnitude > F::kInf) {
    if ((a & F::kQuietBit) == 0) fp |= softfloat::kFpsrIoc;
    return F::kDefaultNan;
  }
  if (magnitude == F::kInf) return sign;
  if (magnitude == 0) {
    fp |= softfloat::kFpsrDzc;
    return F::kInf | sign;
  }
  const Parts p = normal_parts<F>(a);
  const int exponent = 2 * F::kBias - 1 - p.exponent;
  if (p.exponent < -1) {  // too large
    fp |= softfloat::kFpsrOfc | softfloat::kFpsrIxc;
    const softfloat::Rounding mode = softfloat::rounding_mode(fp);
    const bool to_finite = mode == softfloat::Rounding::kZero ||
                           (mode == softfloat::Rounding::kNegInf && sign == 0) ||
                           (mode == softfloat::Rounding::kPosInf && sign != 0);
    return sign | (to_finite ? F::kMaxNormal : F::kInf);
  }
  uint64_t fraction = reciprocal_bits(p.fraction >> 57) << (F::kFracBits - 7);
  if (exponent > 0) return sign | static_cast<uint64_t>(exponent) << F::kFracBits | fraction;
  fraction = (fraction | uint64_t{1} << F::kFracBits) >> (1 - exponent);  // subnormal, cut
  return sign | fraction;
}

// a, b and d are as wide as the row says.
GPUSIM_HD inline uint64_t float_element(Work& w, uint64_t a, uint64_t b, uint64_t d) {
  const int size = w.log_size, wide = size + 1;
  uint64_t& fp = w.fp;
  const auto widened = [&](uint64_t x) { return converted(x, size, wide, false, fp); };
  const auto wide_fused = [&](bool negate_product, bool negate_addend) {
    const uint64_t x = widened(b), y = widened(a);
    return fused(wide, x, y, d, negate_product, negate_addend, fp);
  };
  switch (w.insn.op) {
    case VectorOp::vfadd:
    case VectorOp::vfredusum:
    case VectorOp::vfredosum:
      return arithmetic(Arithmetic::kAdd, size, a, b, fp);
    case VectorOp::vfsub:
      return arithmetic(Arithmetic::kSub, size, a, b, fp);
    case VectorOp::vfrsub:
      return arithmetic(Arithmetic::kSub, size, b, a, fp);
    case VectorOp::vfmul:
      return arithmetic(Arithmetic::kMul, size, a, b, fp);
    case VectorOp::vfdiv:
      return arithmetic(Arithmetic::kDiv, size, a, b, fp);
    case VectorOp::vfrdiv:
      return arithmetic(Arithmetic::kDiv, size, b, a, fp);
    case VectorOp::vfmin:
    case VectorOp::vfredmin:
      return extreme(size, true, a, b, fp);
    case VectorOp::vfmax:
    case VectorOp::vfredmax:
      return extreme(size, false, a, b, fp);
    case VectorOp::vfsgnj:
      return (a & ~sign_of(size)) | (b & sign_of(size));
    case VectorOp::vfsgnjn:
      return (a & ~sign_of(size)) | (~b & sign_of(size));
    case VectorOp::vfsgnjx:
      return a ^ (b & sign_of(size));
    case VectorOp::vfmadd:
      return fused(size, b, d, a, false, false, fp);
    case VectorOp::vfnmadd:
      return fused(size, b, d, a, true, true, fp);
    case VectorOp::vfmsub:
      return fused(size, b, d, a, false, true, fp);
    case VectorOp::vfnmsub:
      return fused(size, b, d, a, true, false, fp);
    case VectorOp::vfmacc:
      return fused(size, b, a, d, false, false, fp);
    case VectorOp::vfnmacc:
      return fused(size, b, a, d, true, true, fp);
    case VectorOp::vfmsac:
      return fused(size, b, a, d, false, true, fp);
    case VectorOp::vfnmsac:
      return fused(size, b, a, d, true, false, fp);
    case VectorOp::vfwadd: {
      const uint64_t x = widened(a);
      return arithmetic(Arithmetic::kAdd, wide, x, widened(b), fp);
    }
    case VectorOp::vfwsub: {
      const uint64_t x = widened(a);
      return arithmetic(Arithmetic::kSub, wide, x, widened(b), fp);
    }
    case VectorOp::vfwmul: {
      const uint64_t x = widened(a);
      return arithmetic(Arithmetic::kMul, wide, x, widened(b), fp);
    }
    case VectorOp::vfwadd_w:
    case VectorOp::vfwredusum:
    case VectorOp::vfwredosum:
      return arithmetic(Arithmetic::kAdd, wide, a, widened(b), fp);
    case VectorOp::vfwsub_w:
      return arithmetic(Arithmetic::kSub, wide, a, widened(b), fp);
    case VectorOp::vfwmacc:
      return wide_fused(false, false);
    case VectorOp::vfwnmacc:
      return wide_fused(true, true);
    case VectorOp::vfwmsac:
      return wide_fused(false, true);
    case VectorOp::vfwnmsac:
      return wide_fused(true, false);
    case VectorOp::vfsqrt:
      if (size == 1) return helpers::fmisc1(a, static_cast<uint32_t>(FpMisc1::kSqrt) << 2, fp);
      return size == 3 ? sem::fsqrt64<sem::ScalarDomain>(a, fp, Uop{})
                       : sem::fsqrt32<sem::ScalarDomain>(a, fp, Uop{});
    case VectorOp::vfrsqrt7:
      return helpers::with_format(format_bits(size),
                                  [&]<class F>() { return reciprocal_root_estimate<F>(a, fp); });
    case VectorOp::vfrec7:
      return helpers::with_format(format_bits(size),
                                  [&]<class F>() { return reciprocal_estimate<F>(a, fp); });
    case VectorOp::vfclass: {
      Uop u{};
      u.aux = static_cast<uint8_t>(format_bits(size));
      return helpers::fp_class(a, u);
    }
    case VectorOp::vfcvt_xu_f:
      return to_integer(a, size, size, false, false, fp);
    case VectorOp::vfcvt_x_f:
      return to_integer(a, size, size, true, false, fp);
    case VectorOp::vfcvt_rtz_xu_f:
      return to_integer(a, size, size, false, true, fp);
    case VectorOp::vfcvt_rtz_x_f:
      return to_integer(a, size, size, true, true, fp);
    case VectorOp::vfcvt_f_xu:
      return from_integer(a, size, size, false, fp);
    case VectorOp::vfcvt_f_x:
      return from_integer(a, size, size, true, fp);
    case VectorOp::vfwcvt_xu_f:
      return to_integer(a, size, wide, false, false, fp);
    case VectorOp::vfwcvt_x_f:
      return to_integer(a, size, wide, true, false, fp);
    case VectorOp::vfwcvt_rtz_xu_f:
      return to_integer(a, size, wide, false, true, fp);
    case VectorOp::vfwcvt_rtz_x_f:
      return to_integer(a, size, wide, true, true, fp);
    case VectorOp::vfwcvt_f_xu:
      return from_integer(a, size, wide, false, fp);
    case VectorOp::vfwcvt_f_x:
      return from_integer(a, size, wide, true, fp);
    case VectorOp::vfwcvt_f_f:
      return widened(a);
    case VectorOp::vfncvt_xu_f:
      return to_integer(a, wide, size, false, false, fp);
    case VectorOp::vfncvt_x_f:
      return to_integer(a, wide, size, true, false, fp);
    case VectorOp::vfncvt_rtz_xu_f:
      return to_integer(a, wide, size, false, true, fp);
    case VectorOp::vfncvt_rtz_x_f:
      return to_integer(a, wide, size, true, true, fp);
    case VectorOp::vfncvt_f_xu:
      return from_integer(a, wide, size, false, fp);
    case VectorOp::vfncvt_f_x:
      return from_integer(a, wide, size, true, fp);
    case VectorOp::vfncvt_f_f:
      return converted(a, wide, size, false, fp);
    case VectorOp::vfncvt_rod_f_f:
      return converted(a, wide, size, true, fp);
    default:
      return 0;
  }
}

GPUSIM_HD inline bool float_compare(Work& w, uint64_t a, uint64_t b) {
  const VectorOp op = w.insn.op;
  const bool signalling = op != VectorOp::vmfeq && op != VectorOp::vmfne;
  const uint64_t nzcv =
      helpers::fcmp(a, b, format_bits(w.log_size) | uint32_t{signalling} << 2, w.fp);
  const bool less = nzcv == 0b1000, equal = nzcv == 0b0110, greater = nzcv == 0b0010;
  switch (op) {
    case VectorOp::vmfeq:
      return equal;
    case VectorOp::vmfne:
      return !equal;
    case VectorOp::vmflt:
      return less;
    case VectorOp::vmfle:
      return less || equal;
    case VectorOp::vmfgt:
      return greater;
    default:
      return greater || equal;
  }
}

}  // namespace gpusim::vector
