// Floating-point values in states that arithmetic can tell nothing new: all flags are set, as those
// of PTX are, and the modes are the usual ones, but that subnormals may be flushed, and that
// results may be rounded to either side or to zero, which the machine does, too. Then only NaNs and
// what is flushed differ from the machine's own results: zeros and subnormals do not need the cold
// path, which the common semantics give them for their flags.
#pragma once
#include <bit>
#include <optional>
#include <type_traits>

#include "device_sim/uir/fp_aux.h"
#include "device_sim/uir/semantics_fp.h"
#include "device_sim/uir/softfloat/format.h"
#include "device_sim/uir/uop.h"

namespace gpusim::simd {

constexpr bool tells_nothing_new(uint64_t fp_state) {
  using namespace softfloat;
  constexpr uint64_t kAll = kFpsrIoc | kFpsrDzc | kFpsrOfc | kFpsrUfc | kFpsrIxc | kFpsrIdc;
  constexpr uint64_t kModes = kFpcrFz | kFpcrFz16 | uint64_t{3} << kFpcrRmodeShift;
  return is_default_mode(fp_state & ~kModes) && (fp_state & kAll) == kAll;
}
// Operations on two or three doubles, and roots.
constexpr bool is_double_arithmetic(Op op) {
  return op == Op::fadd64 || op == Op::fsub64 || op == Op::fmul64 || op == Op::fdiv64 ||
         op == Op::fsqrt64 || op == Op::fma64;
}
// Rounding to integers in a direction that the machine has, whatever the state says.
constexpr bool is_machine_direction(FpRounding r) { return r <= FpRounding::kZero; }
inline constexpr uint8_t kFloatToDouble =
    static_cast<uint8_t>(FpFormat::kF32) | static_cast<uint8_t>(FpFormat::kF64) << 2;
inline constexpr uint8_t kHalfToFloat =
    static_cast<uint8_t>(FpFormat::kF16) | static_cast<uint8_t>(FpFormat::kF32) << 2;
inline constexpr uint8_t kFloatToHalf =
    static_cast<uint8_t>(FpFormat::kF32) | static_cast<uint8_t>(FpFormat::kF16) << 2;
inline constexpr uint8_t kDoubleToFloat =
    static_cast<uint8_t>(FpFormat::kF64) | static_cast<uint8_t>(FpFormat::kF32) << 2;

// Micro-ops that have a value here, whose state may flush and round in any direction.
constexpr bool is_quiet(const Uop& u) {
  const bool is_f16 = static_cast<FpFormat>(u.aux & 3) == FpFormat::kF16;
  if (u.op == Op::fcmp) return true;
  if (u.op == Op::fminmax) {
    const auto kind = static_cast<FpMinMax>(u.aux >> 2);
    return kind != FpMinMax::kMinNum && kind != FpMinMax::kMaxNum;
  }
  if (u.op == Op::fmisc2) return is_f16 && static_cast<FpMisc2>(u.aux >> 2) <= FpMisc2::kMul;
  if (u.op == Op::fmisc3) return is_f16;
  if (u.op == Op::fround)
    return !is_f16 && is_machine_direction(static_cast<FpRounding>(u.aux >> 2));
  if (u.op == Op::f2i)
    return !is_f16 && u.imm == 0 && is_machine_direction(static_cast<FpRounding>(u.aux >> 2 & 7));
  if (u.op == Op::i2f) return !is_f16 && u.imm == 0;
  if (u.op == Op::fconvert)
    return u.aux == kFloatToDouble || u.aux == kDoubleToFloat || u.aux == kHalfToFloat ||
           u.aux == kFloatToHalf;
  return u.op == Op::fadd32 || u.op == Op::fsub32 || u.op == Op::fmul32 || u.op == Op::fdiv32 ||
         u.op == Op::fsqrt32 || u.op == Op::fma32 || is_double_arithmetic(u.op);
}

// Whether in such a state all NaNs that floats become are the same one.
constexpr bool forgets_nans(uint64_t fp_state) {
  return tells_nothing_new(fp_state) && softfloat::has_canonical_nan<softfloat::F32>(fp_state);
}
constexpr bool is_float_arithmetic(Op op) {
  return op == Op::fadd32 || op == Op::fsub32 || op == Op::fmul32 || op == Op::fdiv32 ||
         op == Op::fsqrt32 || op == Op::fma32;
}
// Whether it makes no difference to `u`, in such a state, which NaN a float among its sources is.
constexpr bool takes_any_nan(const Uop& u) {
  const bool is_single = static_cast<FpFormat>(u.aux & 3) == FpFormat::kF32;
  return is_float_arithmetic(u.op) || (u.op == Op::fcmp && is_single);
}

// Of floats T in the domain D.
template <class D, class T>
class QuietFloat {
  using V = typename D::V;
  using M = typename D::M;
  using F = std::conditional_t<sizeof(T) == 4, softfloat::F32, softfloat::F64>;
  static constexpr bool kSingle = sizeof(T) == 4;
  static constexpr Op kAdd = kSingle ? Op::fadd32 : Op::fadd64;
  static constexpr Op kSub = kSingle ? Op::fsub32 : Op::fsub64;
  static constexpr Op kMul = kSingle ? Op::fmul32 : Op::fmul64;
  static constexpr Op kDiv = kSingle ? Op::fdiv32 : Op::fdiv64;
  static constexpr Op kSqrt = kSingle ? Op::fsqrt32 : Op::fsqrt64;
  static constexpr Op kFma = kSingle ? Op::fma32 : Op::fma64;

 public:
  // `any_nan`: where the result is a NaN, it may be any.
  explicit QuietFloat(uint64_t fp_state, bool any_nan = false)
      : state_(fp_state), flushes_(softfloat::flushes_to_zero<F>(fp_state)), any_nan_(any_nan) {}

  // The value of `u`, if it is one of these.
  std::optional<V> value(const Uop& u, const V& x, const V& y, const V& z) const {
    switch (u.op) {
      case kAdd:  // a subnormal sum is exact
      case kSub:
        return with_nan(flushed(of_machine(u.op, flushed(x), flushed(y), z)));
      case kMul:
      case kDiv:
        return rounded(of_machine(u.op, flushed(x), flushed(y), z));
      case kSqrt:
        return with_nan(of_machine(u.op, flushed(x), y, z));
      case kFma:
        return rounded(of_machine(u.op, flushed(x), flushed(y), flushed(z)));
      case Op::fcmp:
        if (!is_format(u)) return halves(u, x, y, z);
        return comparison(flushed(x), flushed(y));
      case Op::fminmax:
        if (!is_format(u)) return halves(u, x, y, z);
        return extreme(static_cast<FpMinMax>(u.aux >> 2), flushed(x), flushed(y));
      case Op::fmisc2:
      case Op::fmisc3:
        return halves(u, x, y, z);
      case Op::fround: {
        const auto direction = static_cast<FpRounding>(u.aux >> 2);
        if (!is_format(u) || !is_machine_direction(direction)) return std::nullopt;
        return with_nan(D::template result<T>(D::template fround<T>(flushed(x), direction)));
      }
      default:
        if constexpr (D::kWide) return converted(u, x);
        return std::nullopt;
    }
  }

  // Of arithmetic that does not flush: with NaNs among its sources and results, but for signalling
  // sources, which the cold path takes. The first that is a NaN is the result, the addend before
  // the factors.
  V value_with_nans(const Uop& u, const V& x, const V& y, const V& z) const {
    const V r = of_machine(u.op, x, y, z);
    V nan = D::konst(softfloat::default_nan<F>(state_));
    const auto prefer = [&](const V& a) {
      const M number = is_number(a);
      const M quiet = D::m_not(D::eq(D::and_(a, D::konst(F::kQuietBit)), D::konst(0)));
      (void)D::all(D::m_or(number, quiet));
      nan = D::select(number, nan, a);
    };
    if (u.op != kSqrt) prefer(y);
    prefer(x);
    if (u.op == kFma) {
      const M known = D::m_or(D::m_or(is_number(D::template fmul<T>(x, y)), is_number(z)),
                              D::m_not(D::m_and(is_number(x), is_number(y))));
      prefer(z);  // but infinity times zero is no operation at all
      nan = D::select(known, nan, D::konst(softfloat::default_nan<F>(state_)));
    }
    return D::select(is_number(r), r, nan);
  }

 private:
  // As the machine computes and rounds it.
  V of_machine(Op op, const V& x, const V& y, const V& z) const {
    const auto mode = softfloat::rounding_mode(state_);
    switch (op) {
      case kAdd:
        return D::in_mode(mode, [&] { return D::template fadd<T>(x, y); });
      case kSub:
        return D::in_mode(mode, [&] { return D::template fsub<T>(x, y); });
      case kMul:
        return D::in_mode(mode, [&] { return D::template fmul<T>(x, y); });
      case kDiv:
        return D::in_mode(mode, [&] { return D::template fdiv<T>(x, y); });
      case kSqrt:
        return D::in_mode(mode, [&] { return D::template fsqrt<T>(x); });
      default:
        return D::in_mode(mode, [&] { return D::template fma<T>(x, y, z); });
    }
  }
  static bool is_format(const Uop& u) {
    return static_cast<FpFormat>(u.aux & 3) == (kSingle ? FpFormat::kF32 : FpFormat::kF64);
  }
  static M is_number(const V& a) { return D::template feq<T>(a, a); }

  static V magnitude(const V& a) { return D::and_(a, D::konst(F::kSign - 1)); }
  static V least_normal() { return D::konst(uint64_t{1} << F::kFracBits); }
  // A zero of its sign in place of a subnormal, where the state wants that.
  V flushed(const V& a) const {
    if (!flushes_) return a;
    const M subnormal = D::template flt<T>(magnitude(a), least_normal());
    return D::select(subnormal, D::and_(a, D::konst(F::kSign)), a);
  }
  // What rounding made the least normal number was flushed before: the cold path tells.
  V rounded(const V& r) const {
    if (flushes_) (void)D::all(D::m_not(D::template feq<T>(magnitude(r), least_normal())));
    return with_nan(flushed(r));
  }
  // r; where it is a NaN, the one that all are, or else what the cold path finds.
  V with_nan(const V& r) const {
    if (any_nan_) return r;
    const M number = is_number(r);
    if (softfloat::has_canonical_nan<F>(state_))
      return D::select(number, r, D::konst(softfloat::default_nan<F>(state_)));
    (void)D::all(number);
    return r;
  }
  std::optional<V> converted(const Uop& u, const V& x) const {
    switch (u.op) {
      case Op::f2i:
        if (!is_format(u) || u.imm != 0 || (state_ & softfloat::kFpNanToLargest) != 0 ||
            !is_machine_direction(static_cast<FpRounding>(u.aux >> 2 & 7)))
          return std::nullopt;
        return integer(u, kSingle ? D::widened(flushed(x)) : flushed(x));
      case Op::i2f:
        if (!is_format(u) || u.imm != 0) return std::nullopt;
        return from_integer(u, x);
      case Op::fconvert:
        if (!kSingle) return std::nullopt;
        if (u.aux == kFloatToDouble) {
          // The machine, too, keeps a NaN's sign and payload, and makes it quiet.
          if (softfloat::has_canonical_nan<softfloat::F64>(state_)) (void)D::all(is_number(x));
          return D::widened(flushed(x));
        }
        if (u.aux == kDoubleToFloat) return rounded(narrowed(x));
        if (!softfloat::flushes_to_zero<softfloat::F16>(state_)) return of_halves(u, x);
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }
  // Of halves, as floats: their sums and products, rounded again, are what one rounding gives, for
  // 24 bits are 2 * 11 + 2. A product and a sum need a double, whose rounding to a half is by way
  // of a float that keeps an odd last bit where something was lost.
  std::optional<V> halves(const Uop& u, const V& x, const V& y, const V& z) const {
    using softfloat::F16;
    if constexpr (!D::kWide || !kSingle) {
      return std::nullopt;
    } else {
      if (static_cast<FpFormat>(u.aux & 3) != FpFormat::kF16 ||
          softfloat::flushes_to_zero<F16>(state_) || !softfloat::has_canonical_nan<F16>(state_))
        return std::nullopt;
      const auto single = [](const V& a) { return D::of_halves(D::and_(a, D::konst(0xffff))); };
      if (u.op == Op::fcmp) return comparison(single(x), single(y));
      if (u.op != Op::fminmax && softfloat::rounding_mode(state_) != softfloat::Rounding::kTieEven)
        return std::nullopt;
      if (u.op == Op::fmisc3) {
        const V sum = D::template fma<double>(D::widened(single(x)), D::widened(single(y)),
                                              D::widened(single(z)));
        const V cut = D::in_mode(softfloat::Rounding::kZero, [&] { return D::narrowed(sum); });
        const V lost =
            D::select(D::template feq<double>(D::widened(cut), sum), D::konst(0), D::konst(1));
        return half(D::or_(cut, lost));
      }
      if (u.op == Op::fminmax) {
        const auto r = extreme(static_cast<FpMinMax>(u.aux >> 2), single(x), single(y));
        return r ? std::optional<V>(half(*r)) : std::nullopt;
      }
      switch (static_cast<FpMisc2>(u.aux >> 2)) {
        case FpMisc2::kAdd:
          return half(D::template fadd<float>(single(x), single(y)));
        case FpMisc2::kSub:
          return half(D::template fsub<float>(single(x), single(y)));
        case FpMisc2::kMul:
          return half(D::template fmul<float>(single(x), single(y)));
        default:
          return std::nullopt;
      }
    }
  }
  V half(const V& r) const {
    return D::select(is_number(r), D::to_halves(r, softfloat::Rounding::kTieEven),
                     D::konst(softfloat::default_nan<softfloat::F16>(state_)));
  }
  std::optional<V> of_halves(const Uop& u, const V& x) const {
    using softfloat::F16;
    if (u.aux == kHalfToFloat) return with_nan(D::of_halves(D::and_(x, D::konst(0xffff))));
    if (u.aux != kFloatToHalf || !softfloat::has_canonical_nan<F16>(state_)) return std::nullopt;
    const V r = D::to_halves(flushed(x), softfloat::rounding_mode(state_));
    return D::select(is_number(x), r, D::konst(softfloat::default_nan<F16>(state_)));
  }
  V narrowed(const V& x) const {
    return D::in_mode(softfloat::rounding_mode(state_), [&] { return D::narrowed(x); });
  }
  // Integers of less than 2^51 in magnitude are a double's last bits, next to 1.5 * 2^52. What does
  // not fit 32 bits becomes the nearest that does, and a NaN zero.
  V integer(const Uop& u, const V& x) const {
    const bool is_signed = u.aux & 32, is_64 = u.aux & 64;
    const auto of = [](double k) { return D::konst(std::bit_cast<uint64_t>(k)); };
    V r = D::template fround<double>(x, static_cast<FpRounding>(u.aux >> 2 & 7));
    const auto at_least = [&](double least) {
      r = D::select(D::template flt<double>(r, of(least)), of(least), r);
    };
    if (is_64) {
      const V size = D::and_(r, D::konst(~uint64_t{0} >> 1));
      (void)D::all(D::template flt<double>(size, of(0x1p51)));
      if (!is_signed) at_least(0);
    } else {
      const double most = is_signed ? 0x7fffffff : 0xffffffff;
      r = D::select(D::template feq<double>(r, r), r, of(0));
      at_least(is_signed ? -0x1p31 : 0);
      r = D::select(D::template flt<double>(of(most), r), of(most), r);
    }
    const V bits =
        D::sub(D::template fadd<double>(r, D::konst(sem::kFpMagic)), D::konst(sem::kFpMagic));
    return is_64 ? bits : D::and_(bits, D::konst(0xffffffff));
  }
  V from_integer(const Uop& u, const V& x) const {
    const bool is_signed = u.aux & 32, is_64 = u.aux & 64;
    const V value = is_64       ? x
                    : is_signed ? D::sar(D::shl(x, 32), 32)
                                : D::and_(x, D::konst(0xffffffff));
    constexpr uint64_t kLimit = uint64_t{1} << 51;
    if (is_64 && is_signed)
      (void)D::all(D::lt_u(D::add(value, D::konst(kLimit - 1)), D::konst(2 * kLimit - 1)));
    else if (is_64)
      (void)D::all(D::lt_u(value, D::konst(kLimit)));
    const V r =
        D::template fsub<double>(D::add(value, D::konst(sem::kFpMagic)), D::konst(sem::kFpMagic));
    return kSingle ? narrowed(r) : r;
  }

  // NZCV. NaNs are unordered.
  static V comparison(const V& a, const V& b) {
    const V not_equal = D::select(D::template flt<T>(b, a), D::konst(0b0010), D::konst(0b0011));
    const V not_less = D::select(D::template feq<T>(a, b), D::konst(0b0110), not_equal);
    return D::select(D::template flt<T>(a, b), D::konst(0b1000), not_less);
  }
  std::optional<V> extreme(FpMinMax kind, const V& a, const V& b) const {
    if (kind == FpMinMax::kMinNum || kind == FpMinMax::kMaxNum) return std::nullopt;
    const bool least = is_minimum(kind);
    const M a_below = D::template flt<T>(a, b);
    const V of_unequal = least ? D::select(a_below, a, b) : D::select(a_below, b, a);
    // Equal numbers differ at most in the sign of a zero.
    const V of_equal = least ? D::or_(a, b) : D::and_(a, b);
    const V of_numbers = D::select(D::template feq<T>(a, b), of_equal, of_unequal);
    // A NaN beside a number loses, or wins.
    const bool loses = kind == FpMinMax::kMinimumNumber || kind == FpMinMax::kMaximumNumber;
    const V r =
        D::select(is_number(a), D::select(is_number(b), of_numbers, loses ? a : b), loses ? b : a);
    return with_nan(D::template result<T>(r));
  }

  uint64_t state_;
  bool flushes_;
  bool any_nan_;
};

}  // namespace gpusim::simd
