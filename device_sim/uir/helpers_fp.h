// The floating-point micro-ops on one value, exactly, through the softfloat. Semantics call these
// where native arithmetic might differ; they are out of line, so that fast paths stay small.
//
// Sources are cut to their format, results zero-extended. `fp` is FPCR << 32 | FPSR.
#pragma once
#include <cstdint>
#include <cstring>

#include "device_sim/uir/fp_aux.h"
#include "device_sim/uir/hd.h"
#include "device_sim/uir/softfloat/softfloat.h"
#include "device_sim/uir/uop.h"

namespace gpusim::helpers {

using softfloat::F16;
using softfloat::F32;
using softfloat::F64;

template <class F>
GPUSIM_HD constexpr uint64_t cut(uint64_t a) {
  return a & softfloat::low_mask(F::kBits);
}

// --- arithmetic
#define GPUSIM_FP_BINARY(name, function)                                               \
  template <class F>                                                                   \
  struct name {                                                                        \
    static GPUSIM_HD_NOINLINE uint64_t run(uint64_t a, uint64_t b, uint64_t& fp) {     \
      return softfloat::function<F>(cut<F>(a), cut<F>(b), fp);                         \
    }                                                                                  \
    GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t& fp) const { \
      return run(a, b, fp);                                                            \
    }                                                                                  \
  };
GPUSIM_FP_BINARY(Add, fp_add)
GPUSIM_FP_BINARY(Sub, fp_sub)
GPUSIM_FP_BINARY(Mul, fp_mul)
GPUSIM_FP_BINARY(Div, fp_div)
#undef GPUSIM_FP_BINARY

template <class F>
struct Sqrt {
  static GPUSIM_HD_NOINLINE uint64_t run(uint64_t a, uint64_t& fp) {
    return softfloat::fp_sqrt<F>(cut<F>(a), fp);
  }
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t& fp) const { return run(a, fp); }
};

// c + a * b
template <class F>
struct MulAdd {
  static GPUSIM_HD_NOINLINE uint64_t run(uint64_t a, uint64_t b, uint64_t c, uint64_t& fp) {
    return softfloat::fp_muladd<F>(cut<F>(c), cut<F>(a), cut<F>(b), fp);
  }
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t c, uint64_t& fp) const {
    return run(a, b, c, fp);
  }
};

// An operation on floats, applied to both halves of the words.
template <class Operation>
struct OnPair {
  template <class... A>
  static GPUSIM_HD_NOINLINE uint64_t run(uint64_t& fp, A... a) {
    const uint64_t low = Operation::run(a..., fp);
    const uint64_t high = Operation::run((a >> 32)..., fp);
    return low | high << 32;
  }
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t& fp) const {
    return run(fp, a, b);
  }
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t c, uint64_t& fp) const {
    return run(fp, a, b, c);
  }
};

// --- operations of several formats, told apart by `aux` (uir/fp_aux.h)

// Calls f.operator()<Format>().
template <class Fn>
GPUSIM_HD uint64_t with_format(uint32_t aux, Fn f) {
  switch (static_cast<FpFormat>(aux & 3)) {
    case FpFormat::kF16:
      return f.template operator()<F16>();
    case FpFormat::kF32:
      return f.template operator()<F32>();
    default:
      return f.template operator()<F64>();
  }
}

GPUSIM_HD constexpr softfloat::Rounding rounding_of(FpRounding r, uint64_t fp) {
  if (r >= FpRounding::kFpcr) return softfloat::rounding_mode(fp);
  return static_cast<softfloat::Rounding>(r);
}
static_assert(static_cast<int>(FpRounding::kNearestAway) ==
              static_cast<int>(softfloat::Rounding::kTieAway));

namespace exact {

GPUSIM_HD_NOINLINE uint64_t fcmp(uint64_t a, uint64_t b, uint32_t aux, uint64_t& fp) {
  return with_format(aux, [&]<class F>() {
    return softfloat::fp_compare<F>(cut<F>(a), cut<F>(b), (aux & 4) != 0, fp);
  });
}

GPUSIM_HD_NOINLINE uint64_t fminmax(uint64_t a, uint64_t b, uint32_t aux, uint64_t& fp) {
  return with_format(aux, [&]<class F>() {
    const uint64_t x = cut<F>(a), y = cut<F>(b);
    switch (static_cast<FpMinMax>(aux >> 2)) {
      case FpMinMax::kMin:
        return softfloat::fp_min<F>(x, y, fp);
      case FpMinMax::kMax:
        return softfloat::fp_max<F>(x, y, fp);
      case FpMinMax::kMinNum:
        return softfloat::fp_minnum<F>(x, y, fp);
      case FpMinMax::kMaxNum:
        return softfloat::fp_maxnum<F>(x, y, fp);
      case FpMinMax::kMinimumNumber:
        return softfloat::fp_minimum_number<F>(x, y, fp);
      default:
        return softfloat::fp_maximum_number<F>(x, y, fp);
    }
  });
}

GPUSIM_HD_NOINLINE uint64_t fround(uint64_t a, uint32_t aux, uint64_t& fp) {
  const auto r = static_cast<FpRounding>(aux >> 2);
  return with_format(aux, [&]<class F>() {
    return softfloat::fp_round_int<F>(cut<F>(a), rounding_of(r, fp), r == FpRounding::kFpcrExact,
                                      fp);
  });
}

GPUSIM_HD_NOINLINE uint64_t fconvert(uint64_t a, uint32_t aux, uint64_t& fp) {
  const auto mode = (aux & 16) != 0 ? softfloat::Rounding::kOdd : softfloat::rounding_mode(fp);
  return with_format(aux, [&]<class From>() {
    return with_format(aux >> 2, [&]<class To>() -> uint64_t {
      if constexpr (From::kBits == To::kBits) {
        return cut<From>(a);
      } else {
        return softfloat::fp_convert<To, From>(cut<From>(a), mode, fp);
      }
    });
  });
}

GPUSIM_HD_NOINLINE uint64_t f2i(uint64_t a, uint32_t aux, int fraction_bits, int int_bits,
                                uint64_t& fp) {
  const auto r = static_cast<FpRounding>((aux >> 2) & 7);
  return with_format(aux, [&]<class F>() {
    return softfloat::fp_to_fixed<F>(cut<F>(a), int_bits, fraction_bits, (aux & 32) == 0,
                                     rounding_of(r, fp), fp);
  });
}

GPUSIM_HD_NOINLINE uint64_t i2f(uint64_t a, uint32_t aux, int fraction_bits, int int_bits,
                                uint64_t& fp) {
  return with_format(aux, [&]<class F>() {
    return softfloat::fixed_to_fp<F>(a, int_bits, fraction_bits, (aux & 32) == 0, fp);
  });
}

}  // namespace exact

// --- the same with the machine's arithmetic where it surely agrees: the mode is the default, no NaN
// is there, and a result is exact, or known to be inexact and far from overflow and underflow

GPUSIM_HD constexpr bool is_plain(uint64_t fp) { return softfloat::is_default_mode(fp); }
GPUSIM_HD constexpr bool is_finite(FpFormat f, uint64_t a) {
  return f == FpFormat::kF32 ? (a & F32::kInf) != F32::kInf : (a & F64::kInf) != F64::kInf;
}
GPUSIM_HD inline double to_double(FpFormat f, uint64_t a) {
  double d = 0;
  if (f == FpFormat::kF32) {
    float x;
    const auto low = static_cast<uint32_t>(a);
    memcpy(&x, &low, sizeof x);
    d = static_cast<double>(x);
  } else {
    memcpy(&d, &a, sizeof d);
  }
  return d;
}
// d rounded to nearest even.
GPUSIM_HD inline uint64_t from_double(FpFormat f, double d) {
  if (f == FpFormat::kF32) {
    const float x = static_cast<float>(d);
    uint32_t low;
    memcpy(&low, &x, sizeof low);
    return low;
  }
  uint64_t a;
  memcpy(&a, &d, sizeof a);
  return a;
}
GPUSIM_HD constexpr void raise_inexact(bool inexact, uint64_t& fp) {
  if (inexact) fp |= softfloat::kFpsrIxc;
}
// x rounded to an integer of less than 2^62, if the mode is a simple one.
GPUSIM_HD inline bool round_to_int(double x, FpRounding mode, int64_t& result) {
  if (!(x > -0x1p62 && x < 0x1p62)) return false;
  int64_t t = static_cast<int64_t>(x);             // towards zero
  const double rest = x - static_cast<double>(t);  // exact
  switch (mode) {
    case FpRounding::kZero:
      break;
    case FpRounding::kMinusInf:
      t -= rest < 0;
      break;
    case FpRounding::kPlusInf:
      t += rest > 0;
      break;
    case FpRounding::kNearestAway:
      t += (rest >= 0.5) - (rest <= -0.5);
      break;
    default:  // to nearest even: the default mode
      t += (rest > 0.5 || (rest == 0.5 && (t & 1))) - (rest < -0.5 || (rest == -0.5 && (t & 1)));
      break;
  }
  result = t;
  return true;
}

GPUSIM_HD_NOINLINE uint64_t fround(uint64_t a, uint32_t aux, uint64_t& fp) {
  const auto f = static_cast<FpFormat>(aux & 3);
  const auto mode = static_cast<FpRounding>(aux >> 2);
  int64_t whole = 0;
  if (f != FpFormat::kF16 && is_plain(fp) && is_finite(f, a)) {
    const double x = to_double(f, a);
    if (round_to_int(x, mode, whole)) {
      const double r = static_cast<double>(whole);
      raise_inexact(mode == FpRounding::kFpcrExact && r != x, fp);
      const uint64_t sign = f == FpFormat::kF32 ? F32::kSign : F64::kSign;
      return from_double(f, r) | (a & sign);  // a zero keeps the sign
    }
  }
  return exact::fround(a, aux, fp);
}

GPUSIM_HD_NOINLINE uint64_t fconvert(uint64_t a, uint32_t aux, uint64_t& fp) {
  const auto from = static_cast<FpFormat>(aux & 3);
  const auto to = static_cast<FpFormat>(aux >> 2 & 3);
  if (is_plain(fp) && from != FpFormat::kF16 && to != FpFormat::kF16 && !(aux & 16) &&
      is_finite(from, a)) {
    const double x = to_double(from, a);
    if (to == FpFormat::kF64) return from_double(to, x);
    const uint64_t r = from_double(to, x);
    const uint64_t field = r >> 23 & 0xff;
    if ((field >= 2 && field < 255) || x == 0) {
      raise_inexact(to_double(to, r) != x, fp);
      return r;
    }
  }
  return exact::fconvert(a, aux, fp);
}

GPUSIM_HD_NOINLINE uint64_t f2i(uint64_t a, uint32_t aux, int fraction_bits, int int_bits,
                                uint64_t& fp) {
  const auto f = static_cast<FpFormat>(aux & 3);
  int64_t whole = 0;
  if (f != FpFormat::kF16 && fraction_bits == 0 && is_plain(fp) && is_finite(f, a)) {
    const double x = to_double(f, a);
    if (round_to_int(x, static_cast<FpRounding>(aux >> 2 & 7), whole)) {
      const bool is_signed = (aux & 32) != 0;
      const int64_t limit =
          int_bits == 64 ? int64_t{1} << 62 : int64_t{1} << (int_bits - is_signed);
      if (whole < limit && whole >= (is_signed ? -limit : 0)) {
        raise_inexact(static_cast<double>(whole) != x, fp);
        return static_cast<uint64_t>(whole) & softfloat::low_mask(int_bits);
      }
    }
  }
  return exact::f2i(a, aux, fraction_bits, int_bits, fp);
}

GPUSIM_HD_NOINLINE uint64_t i2f(uint64_t a, uint32_t aux, int fraction_bits, int int_bits,
                                uint64_t& fp) {
  const auto f = static_cast<FpFormat>(aux & 3);
  if (f != FpFormat::kF16 && fraction_bits == 0 && is_plain(fp)) {
    const uint64_t cut_off = 64 - static_cast<uint64_t>(int_bits);
    const auto top = static_cast<int64_t>(a << cut_off);
    const int64_t value =
        (aux & 32) ? top >> cut_off : static_cast<int64_t>(static_cast<uint64_t>(top) >> cut_off);
    constexpr int64_t kExact = int64_t{1} << 53;  // doubles hold such integers exactly
    // A negative unsigned value is one above the signed range.
    if (value > ((aux & 32) ? -kExact : -1) && value < kExact) {
      const double x = static_cast<double>(value);
      const uint64_t r = from_double(f, x);
      raise_inexact(f == FpFormat::kF32 && to_double(f, r) != x, fp);
      return r;
    }
  }
  return exact::i2f(a, aux, fraction_bits, int_bits, fp);
}

// Whether the comparisons below may look at the bits alone. Formats 32 and 64.
GPUSIM_HD constexpr bool is_ordered(FpFormat f, uint64_t a, uint64_t b) {
  return f == FpFormat::kF32 ? (a & 0x7fffffff) <= F32::kInf && (b & 0x7fffffff) <= F32::kInf
                             : (a & ~F64::kSign) <= F64::kInf && (b & ~F64::kSign) <= F64::kInf;
}
GPUSIM_HD inline uint64_t fcmp(uint64_t a, uint64_t b, uint32_t aux, uint64_t& fp) {
  return exact::fcmp(a, b, aux, fp);
}
GPUSIM_HD_NOINLINE uint64_t fminmax(uint64_t a, uint64_t b, uint32_t aux, uint64_t& fp) {
  const auto f = static_cast<FpFormat>(aux & 3);
  if (f != FpFormat::kF16 && is_plain(fp) && is_ordered(f, a, b)) {
    // As integers, with -0 below +0.
    const int up = f == FpFormat::kF32 ? 32 : 0;
    const auto key = [&](uint64_t x) {
      const auto s = static_cast<int64_t>(x << up);
      return s ^ static_cast<int64_t>(static_cast<uint64_t>(s >> 63) >> 1);
    };
    const auto kind = static_cast<FpMinMax>(aux >> 2);
    const uint64_t r = (key(a) < key(b)) == is_minimum(kind) ? a : b;
    return f == FpFormat::kF32 ? cut<F32>(r) : r;
  }
  return exact::fminmax(a, b, aux, fp);
}

GPUSIM_HD_NOINLINE uint64_t fmisc1(uint64_t a, uint32_t aux, uint64_t& fp) {
  return with_format(aux, [&]<class F>() -> uint64_t {
    const uint64_t x = cut<F>(a);
    switch (static_cast<FpMisc1>(aux >> 2)) {
      case FpMisc1::kRecipEstimate:
        return softfloat::fp_recip_estimate<F>(x, fp);
      case FpMisc1::kRsqrtEstimate:
        return softfloat::fp_rsqrt_estimate<F>(x, fp);
      case FpMisc1::kRecipX:
        return softfloat::fp_recpx<F>(x, fp);
      case FpMisc1::kSqrt:
        return softfloat::fp_sqrt<F>(x, fp);
      case FpMisc1::kJscvt:
        break;
    }
    // Bit 32 is the flag Z.
    bool exact = false;
    const uint64_t integer = softfloat::fp_to_int32_js(a, exact, fp);
    return integer | uint64_t{exact} << 32;
  });
}

GPUSIM_HD_NOINLINE uint64_t fmisc2(uint64_t a, uint64_t b, uint32_t aux, uint64_t& fp) {
  return with_format(aux, [&]<class F>() {
    const uint64_t x = cut<F>(a), y = cut<F>(b);
    switch (static_cast<FpMisc2>(aux >> 2)) {
      case FpMisc2::kAdd:
        return softfloat::fp_add<F>(x, y, fp);
      case FpMisc2::kSub:
        return softfloat::fp_sub<F>(x, y, fp);
      case FpMisc2::kMul:
        return softfloat::fp_mul<F>(x, y, fp);
      case FpMisc2::kDiv:
        return softfloat::fp_div<F>(x, y, fp);
      case FpMisc2::kMulX:
        return softfloat::fp_mulx<F>(x, y, fp);
      case FpMisc2::kRecipStep:
        return softfloat::fp_recip_step<F>(x, y, fp);
      case FpMisc2::kRsqrtStep:
        return softfloat::fp_rsqrt_step<F>(x, y, fp);
      case FpMisc2::kAbsDiff:
        break;
    }
    return softfloat::fp_abs<F>(softfloat::fp_sub<F>(x, y, fp));
  });
}

GPUSIM_HD_NOINLINE uint64_t fmisc3(uint64_t a, uint64_t b, uint64_t c, uint32_t aux, uint64_t& fp) {
  return with_format(aux, [&]<class F>() { return MulAdd<F>::run(a, b, c, fp); });
}

GPUSIM_HD inline uint64_t fp_class(uint64_t a, const Uop& u) {
  return with_format(u.aux, [&]<class F>() -> uint64_t {
    uint64_t state = 0;
    const softfloat::Unpacked x = softfloat::unpack<F>(cut<F>(a), state);
    if (x.is_nan()) return x.is_snan() ? 1u << 8 : 1u << 9;
    const bool is_subnormal = (a & F::kInf) == 0;
    const int magnitude = x.is_zero() ? 0 : x.is_inf() ? 3 : is_subnormal ? 1 : 2;
    return 1u << (x.sign ? 3 - magnitude : 4 + magnitude);
  });
}

}  // namespace gpusim::helpers
