// Floating-point micro-ops. Signatures: name<D>(sources..., V& fp, u), where fp is the state word
// (softfloat/format.h).
//
// The softfloat defines results and flags. The common case takes the machine's own arithmetic
// where that provably gives the same: the mode is nearest even without flushing, the result is
// finite and far enough from underflow, so that no policy matters, and either IXC is set already or
// an error-free transformation tells whether the result was inexact. Lanes that do not qualify go through the softfloat one by one.
#include "device_sim/uir/helpers_fp.h"
#include "device_sim/uir/scalar_domain.h"
#include "device_sim/uir/semantics_int.h"
#include "device_sim/uir/semantics_namespace.h"
#include "device_sim/uir/uop.h"

#if defined(GPUSIM_SEMANTICS_FP_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SEMANTICS_FP_H_
#undef GPUSIM_SEMANTICS_FP_H_
#else
#define GPUSIM_SEMANTICS_FP_H_
#endif

GPUSIM_SEM_BEGIN

#define GPUSIM_FP typename D::V& fp
#define GPUSIM_VALUE GPUSIM_HD_INLINE static V

// --- the native operations of one format, under names that the fast paths below share

template <class D, class T>
struct FpOne {
  using V = typename D::V;
  using Mask = typename D::M;
  static constexpr int kFraction = sizeof(T) == 4 ? 23 : 52;
  static constexpr int kPrecision = kFraction + 1;
  static constexpr int kTopField = sizeof(T) == 4 ? 255 : 2047;  // of infinities and NaNs
  static constexpr uint64_t kSign = uint64_t{1} << (8 * sizeof(T) - 1);
  static constexpr uint64_t kUnit = uint64_t{1} << kFraction;  // of the exponent field

  GPUSIM_VALUE add(V a, V b) { return D::template fadd<T>(a, b); }
  GPUSIM_VALUE sub(V a, V b) { return D::template fsub<T>(a, b); }
  GPUSIM_VALUE mul(V a, V b) { return D::template fmul<T>(a, b); }
  GPUSIM_VALUE div(V a, V b) { return D::template fdiv<T>(a, b); }
  GPUSIM_VALUE sqrt(V a) { return D::template fsqrt<T>(a); }
  GPUSIM_VALUE fma(V a, V b, V c) { return D::template fma<T>(a, b, c); }
  GPUSIM_VALUE neg(V a) { return D::xor_(a, D::konst(kSign)); }
  GPUSIM_VALUE magnitude(V a) { return D::and_(a, D::konst(kSign - 1)); }
  GPUSIM_HD_INLINE static Mask is_zero(V a) { return D::eq(magnitude(a), D::konst(0)); }
  // Exponent field at least `low`, and below the last one of finite numbers, which is left out so
  // that intermediates of the error-free transformations cannot overflow.
  GPUSIM_HD_INLINE static Mask in_range(V a, int low) {
    const uint64_t base = static_cast<uint64_t>(low) * kUnit;
    const uint64_t end = static_cast<uint64_t>(kTopField - 1) * kUnit;
    return D::lt_u(D::sub(magnitude(a), D::konst(base)), D::konst(end - base));
  }
  GPUSIM_HD_INLINE static Mask m_and(Mask a, Mask b) { return D::m_and(a, b); }
  GPUSIM_HD_INLINE static Mask m_or(Mask a, Mask b) { return D::m_or(a, b); }
  GPUSIM_HD_INLINE static typename D::M in_all(Mask m) { return m; }  // in all elements
};

// Two floats in a word. A Mask is all ones in the elements where it holds.
template <class D>
struct FpPair {
  using V = typename D::V;
  using Mask = V;
  static constexpr int kFraction = 23;
  static constexpr int kPrecision = 24;
  static constexpr uint64_t both(uint64_t x) { return x | x << 32; }

  GPUSIM_VALUE add(V a, V b) { return D::fadd2(a, b); }
  GPUSIM_VALUE sub(V a, V b) { return D::fsub2(a, b); }
  GPUSIM_VALUE mul(V a, V b) { return D::fmul2(a, b); }
  GPUSIM_VALUE div(V a, V b) { return D::fdiv2(a, b); }
  GPUSIM_VALUE fma(V a, V b, V c) { return D::fma2(a, b, c); }
  GPUSIM_VALUE neg(V a) { return D::xor_(a, D::konst(both(0x80000000))); }
  GPUSIM_VALUE magnitude(V a) { return D::and_(a, D::konst(both(0x7fffffff))); }
  GPUSIM_HD_INLINE static Mask is_zero(V a) {
    return D::template veq<uint32_t>(magnitude(a), D::konst(0));
  }
  GPUSIM_HD_INLINE static Mask in_range(V a, int low) {
    const uint64_t base = static_cast<uint64_t>(low) << kFraction;
    const uint64_t end = uint64_t{254} << kFraction;
    const V above_base = D::template vsub<uint32_t>(magnitude(a), D::konst(both(base)));
    return D::template vgt_u<uint32_t>(D::konst(both(end - base)), above_base);
  }
  GPUSIM_HD_INLINE static Mask m_and(Mask a, Mask b) { return D::and_(a, b); }
  GPUSIM_HD_INLINE static Mask m_or(Mask a, Mask b) { return D::or_(a, b); }
  GPUSIM_HD_INLINE static typename D::M in_all(Mask m) { return D::eq(m, D::konst(~uint64_t{0})); }
};

// --- the state word
inline constexpr uint64_t kFpIxc = softfloat::kFpsrIxc;
inline constexpr uint64_t kFpModes = ~(softfloat::kFpFirstMode - 1);

GPUSIM_MASK fp_default(const typename D::V fp) {
  return D::lt_u(fp, D::konst(softfloat::kFpFirstMode));
}
GPUSIM_MASK fp_has_ixc(const typename D::V fp) {
  return D::eq(D::and_(fp, D::konst(kFpIxc)), D::konst(kFpIxc));
}
// Both: nothing more than the result is to be found out.
GPUSIM_MASK fp_settled(const typename D::V fp) {
  return D::eq(D::and_(fp, D::konst(kFpModes | kFpIxc)), D::konst(kFpIxc));
}
template <class D>
GPUSIM_HD_INLINE void fp_raise_ixc(const typename D::M where, GPUSIM_FP) {
  fp = D::select(where, D::or_(fp, D::konst(kFpIxc)), fp);
}

// Where `ok` fails, the result is slow(a..., fp).
template <class D, class Slow, class... A>
GPUSIM_HD_INLINE typename D::V fp_finish(const typename D::M ok, const typename D::V r, Slow slow,
                                         GPUSIM_FP, A... a) {
  if (D::all(ok)) return r;
  return D::map_state(D::m_not(ok), r, slow, fp, a...);
}

// The rounding error of s = a + b (Knuth's TwoSum). Exact in any rounding range, as no step
// overflows when s is in range (Boldo, Graillat, Muller: On the robustness of the 2Sum algorithm).
template <class K, class V>
GPUSIM_HD_INLINE V sum_error(V a, V b, V s) {
  const V b_part = K::sub(s, a);
  const V a_part = K::sub(s, b_part);
  const V b_error = K::sub(b, b_part);
  const V a_error = K::sub(a, a_part);
  return K::add(a_error, b_error);
}

// r = a + b. Sums are never inexact where they are subnormal or zero, so there is no lower bound.
template <class D, class K, class Slow>
GPUSIM_HD_INLINE typename D::V fp_sum(GPUSIM_AB, GPUSIM_FP, const typename D::V r,
                                      const typename D::V minus_or_b, Slow slow) {
  using V = typename D::V;
  using M = typename D::M;
  const M finite = K::in_all(K::in_range(r, 0));
  const M good = D::m_and(finite, fp_settled<D>(fp));
  if (D::all(good)) return r;
  const M ok = D::m_and(finite, fp_default<D>(fp));
  const V error = sum_error<K>(a, minus_or_b, r);
  fp_raise_ixc<D>(D::m_and(ok, D::m_not(K::in_all(K::is_zero(error)))), fp);
  return fp_finish<D>(ok, r, slow, fp, a, b);
}

// Results that only rounding made differ from the exact ones. `error` is zero where r is exact,
// and is trusted where `measurable` holds; where `zero` holds, r is an exact zero.
template <class D, class K, class Slow, class... A>
GPUSIM_HD_INLINE typename D::V fp_rounded(const typename D::V r, const typename D::V error,
                                          const typename K::Mask measurable,
                                          const typename K::Mask zero, Slow slow, GPUSIM_FP,
                                          A... a) {
  using M = typename D::M;
  const typename K::Mask normal = K::in_range(r, 2);
  const M plain = fp_default<D>(fp);
  const M measured = K::in_all(K::m_or(K::m_and(normal, measurable), zero));
  const M known = D::m_and(fp_has_ixc<D>(fp), K::in_all(K::m_or(normal, zero)));
  const M ok = D::m_and(plain, D::m_or(measured, known));
  const M exact = K::in_all(K::m_or(K::is_zero(error), zero));
  fp_raise_ixc<D>(D::m_and(ok, D::m_not(exact)), fp);
  return fp_finish<D>(ok, r, slow, fp, a...);
}

// The quick way of results that nothing is to be found out about. Where it is known beforehand that
// the flags tell nothing new, exact zeros are settled on the same terms (fp_finish_settled), and the
// question is not asked.
template <class D, class K>
GPUSIM_HD_INLINE bool fp_is_normal(const typename D::V r, const typename D::V fp) {
  if (D::always(fp_settled<D>(fp))) return false;
  return D::all(D::m_and(K::in_all(K::in_range(r, 2)), fp_settled<D>(fp)));
}
template <class D, class K, class Slow, class... A>
GPUSIM_HD_INLINE typename D::V fp_finish_settled(const typename D::V r,
                                                 const typename K::Mask zero, Slow slow, GPUSIM_FP,
                                                 A... a) {
  return fp_finish<D>(K::in_all(K::m_or(K::in_range(r, 2), zero)), r, slow, fp, a...);
}

template <class D, class K, class Slow>
GPUSIM_HD_INLINE typename D::V fp_product(GPUSIM_AB, GPUSIM_FP, Slow slow) {
  using V = typename D::V;
  const V r = K::mul(a, b);
  if (fp_is_normal<D, K>(r, fp)) return r;
  const auto zero = K::m_and(K::is_zero(r), K::m_or(K::is_zero(a), K::is_zero(b)));
  if (D::always(fp_settled<D>(fp))) return fp_finish_settled<D, K>(r, zero, slow, fp, a, b);
  // From there on the error's last bit is not below the smallest subnormal.
  const auto measurable = K::in_range(r, K::kPrecision + 2);
  const V error = K::fma(a, b, K::neg(r));
  return fp_rounded<D, K>(r, error, measurable, zero, slow, fp, a, b);
}

template <class D, class K, class Slow>
GPUSIM_HD_INLINE typename D::V fp_quotient(GPUSIM_AB, GPUSIM_FP, Slow slow) {
  using V = typename D::V;
  const V r = K::div(a, b);
  if (fp_is_normal<D, K>(r, fp)) return r;
  const auto zero = K::m_and(K::is_zero(r), K::is_zero(a));
  if (D::always(fp_settled<D>(fp))) return fp_finish_settled<D, K>(r, zero, slow, fp, a, b);
  const auto measurable = K::in_range(a, K::kPrecision + 3);
  const V error = K::fma(K::neg(r), b, a);
  return fp_rounded<D, K>(r, error, measurable, zero, slow, fp, a, b);
}

template <class D, class K, class Slow>
GPUSIM_HD_INLINE typename D::V fp_root(GPUSIM_A, GPUSIM_FP, Slow slow) {
  using V = typename D::V;
  const V r = K::sqrt(a);
  if (fp_is_normal<D, K>(r, fp)) return r;
  const auto zero = K::m_and(K::is_zero(r), K::is_zero(a));
  if (D::always(fp_settled<D>(fp))) return fp_finish_settled<D, K>(r, zero, slow, fp, a);
  const auto measurable = K::in_range(a, K::kPrecision + 3);
  const V error = K::fma(K::neg(r), r, a);
  return fp_rounded<D, K>(r, error, measurable, zero, slow, fp, a);
}

// c + a * b. Whether a result was inexact is found out only for exact products with an exact sum;
// other lanes go the slow way until their IXC is set.
template <class D, class K, class Slow>
GPUSIM_HD_INLINE typename D::V fp_fused(GPUSIM_ABC, GPUSIM_FP, Slow slow) {
  using V = typename D::V;
  using M = typename D::M;
  const V r = K::fma(a, b, c);
  const auto normal = K::in_range(r, 2);
  if (D::all(D::m_and(K::in_all(normal), fp_settled<D>(fp)))) return r;
  const V product = K::mul(a, b);
  const V product_error = K::fma(a, b, K::neg(product));
  const V error = sum_error<K>(product, c, r);
  const auto zero_product = K::m_or(K::is_zero(a), K::is_zero(b));
  const auto exact_product = K::m_or(
      K::m_and(K::in_range(product, K::kPrecision + 2), K::is_zero(product_error)), zero_product);
  const auto exact = K::m_and(K::in_range(r, 0), K::m_and(exact_product, K::is_zero(error)));
  const M known = D::m_and(fp_has_ixc<D>(fp), K::in_all(K::m_or(normal, exact)));
  const M ok = D::m_and(fp_default<D>(fp), D::m_or(K::in_all(exact), known));
  return fp_finish<D>(ok, r, slow, fp, a, b, c);
}

// --- arithmetic
template <class D>
using FpFloat = FpOne<D, float>;
template <class D>
using FpDouble = FpOne<D, double>;
template <template <class> class Operation>
using SlowFloat = Operation<helpers::F32>;
template <template <class> class Operation>
using SlowDouble = Operation<helpers::F64>;
template <template <class> class Operation>
using SlowPair = helpers::OnPair<Operation<helpers::F32>>;

#define GPUSIM_FP_ROWS(v, bits, K, Slow)                                                   \
  GPUSIM_SEM v##add##bits(GPUSIM_AB, GPUSIM_FP, const Uop&) {                              \
    return fp_sum<D, K<D>>(a, b, fp, K<D>::add(a, b), b, Slow<helpers::Add>{});            \
  }                                                                                        \
  GPUSIM_SEM v##sub##bits(GPUSIM_AB, GPUSIM_FP, const Uop&) {                              \
    return fp_sum<D, K<D>>(a, b, fp, K<D>::sub(a, b), K<D>::neg(b), Slow<helpers::Sub>{}); \
  }                                                                                        \
  GPUSIM_SEM v##mul##bits(GPUSIM_AB, GPUSIM_FP, const Uop&) {                              \
    return fp_product<D, K<D>>(a, b, fp, Slow<helpers::Mul>{});                            \
  }                                                                                        \
  GPUSIM_SEM v##div##bits(GPUSIM_AB, GPUSIM_FP, const Uop&) {                              \
    return fp_quotient<D, K<D>>(a, b, fp, Slow<helpers::Div>{});                           \
  }                                                                                        \
  GPUSIM_SEM v##ma##bits(GPUSIM_ABC, GPUSIM_FP, const Uop&) {                              \
    return fp_fused<D, K<D>>(a, b, c, fp, Slow<helpers::MulAdd>{});                        \
  }
GPUSIM_FP_ROWS(f, 32, FpFloat, SlowFloat)
GPUSIM_FP_ROWS(f, 64, FpDouble, SlowDouble)
GPUSIM_FP_ROWS(vf, 32, FpPair, SlowPair)
#undef GPUSIM_FP_ROWS
GPUSIM_SEM fsqrt32(GPUSIM_A, GPUSIM_FP, const Uop&) {
  return fp_root<D, FpFloat<D>>(a, fp, SlowFloat<helpers::Sqrt>{});
}
GPUSIM_SEM fsqrt64(GPUSIM_A, GPUSIM_FP, const Uop&) {
  return fp_root<D, FpDouble<D>>(a, fp, SlowDouble<helpers::Sqrt>{});
}

// --- comparisons: in the default mode only NaNs are special
template <class D, class K>
GPUSIM_HD_INLINE typename D::M fp_no_nan(GPUSIM_AB, const typename D::V fp) {
  constexpr uint64_t first_nan = static_cast<uint64_t>(K::kTopField) * K::kUnit + 1;
  const typename D::M a_ok = D::lt_u(K::magnitude(a), D::konst(first_nan));
  const typename D::M b_ok = D::lt_u(K::magnitude(b), D::konst(first_nan));
  return D::m_and(fp_default<D>(fp), D::m_and(a_ok, b_ok));
}

struct FpCompareSlow {
  uint32_t aux;
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t& fp) const {
    return helpers::fcmp(a, b, aux, fp);
  }
};
template <class D, class T>
GPUSIM_HD_INLINE typename D::V fcmp_as(GPUSIM_AB, GPUSIM_FP, GPUSIM_U) {
  const typename D::M ok = fp_no_nan<D, FpOne<D, T>>(a, b, fp);
  const typename D::V if_not_less =
      D::select(D::template feq<T>(a, b), D::konst(0b0110), D::konst(0b0010));
  const typename D::V r = D::select(D::template flt<T>(a, b), D::konst(0b1000), if_not_less);
  return fp_finish<D>(ok, r, FpCompareSlow{u.aux}, fp, a, b);
}
GPUSIM_SEM fcmp(GPUSIM_AB, GPUSIM_FP, GPUSIM_U) {
  switch (static_cast<FpFormat>(u.aux & 3)) {
    case FpFormat::kF32:
      return fcmp_as<D, float>(a, b, fp, u);
    case FpFormat::kF64:
      return fcmp_as<D, double>(a, b, fp, u);
    default:
      return D::map_state(D::eq(a, a), a, FpCompareSlow{u.aux}, fp, a, b);
  }
}

struct FpMinMaxSlow {
  uint32_t aux;
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t& fp) const {
    return helpers::fminmax(a, b, aux, fp);
  }
};
// Orders numbers as integers: -0 is below +0, as minimum and maximum want it.
GPUSIM_SEM fp_order_key(GPUSIM_A) { return D::xor_(a, D::shr(D::sar(a, 63), 1)); }
template <class D, class T>
GPUSIM_HD_INLINE typename D::V fminmax_as(GPUSIM_AB, GPUSIM_FP, GPUSIM_U) {
  using V = typename D::V;
  const typename D::M ok = fp_no_nan<D, FpOne<D, T>>(a, b, fp);
  constexpr int up = sizeof(T) == 4 ? 32 : 0;
  const V key_a = fp_order_key<D>(D::shl(a, up));
  const V key_b = fp_order_key<D>(D::shl(b, up));
  const auto kind = static_cast<FpMinMax>(u.aux >> 2);
  const typename D::M a_below = D::lt_s(key_a, key_b);
  const V wide = is_minimum(kind) ? D::select(a_below, a, b) : D::select(a_below, b, a);
  const V r = sizeof(T) == 4 ? low32<D>(wide) : wide;
  return fp_finish<D>(ok, r, FpMinMaxSlow{u.aux}, fp, a, b);
}
GPUSIM_SEM fminmax(GPUSIM_AB, GPUSIM_FP, GPUSIM_U) {
  switch (static_cast<FpFormat>(u.aux & 3)) {
    case FpFormat::kF32:
      return fminmax_as<D, float>(a, b, fp, u);
    case FpFormat::kF64:
      return fminmax_as<D, double>(a, b, fp, u);
    default:
      return D::map_state(D::eq(a, a), a, FpMinMaxSlow{u.aux}, fp, a, b);
  }
}

// --- rounding and conversions. The common conversions are a few operations of every domain; the
// others are one scalar function per lane.
#define GPUSIM_FP_MAPPED1(name)                                            \
  struct FpMapped_##name {                                                 \
    const Uop* u;                                                          \
    GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t& fp) const { \
      return helpers::name(a, u->aux, fp);                                 \
    }                                                                      \
  };
GPUSIM_FP_MAPPED1(fround)
GPUSIM_FP_MAPPED1(fconvert)
GPUSIM_FP_MAPPED1(fmisc1)
#undef GPUSIM_FP_MAPPED1
#define GPUSIM_FP_CONVERT_INT(name)                                                         \
  struct FpMapped_##name {                                                                  \
    const Uop* u;                                                                           \
    GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t& fp) const {                  \
      return helpers::name(a, u->aux, static_cast<int>(u->imm), u->aux & 64 ? 64 : 32, fp); \
    }                                                                                       \
  };
GPUSIM_FP_CONVERT_INT(f2i)
GPUSIM_FP_CONVERT_INT(i2f)
#undef GPUSIM_FP_CONVERT_INT

GPUSIM_SEM fround(GPUSIM_A, GPUSIM_FP, GPUSIM_U) {
  return D::map_state(D::eq(a, a), a, FpMapped_fround{&u}, fp, a);
}
GPUSIM_SEM fmisc1(GPUSIM_A, GPUSIM_FP, GPUSIM_U) {
  return D::map_state(D::eq(a, a), a, FpMapped_fmisc1{&u}, fp, a);
}

inline constexpr int kBiasDifference = 1023 - 127;
// A zero or normal float as a double; `ok` says where a is one. What the state says does not matter.
template <class D>
GPUSIM_HD_INLINE typename D::V fp_promoted(GPUSIM_A, typename D::M& ok) {
  using V = typename D::V;
  using M = typename D::M;
  const V magnitude = FpFloat<D>::magnitude(a);
  const M zero = D::eq(magnitude, D::konst(0));
  constexpr uint64_t first_normal = uint64_t{1} << 23, infinity = uint64_t{255} << 23;
  const M normal =
      D::lt_u(D::sub(magnitude, D::konst(first_normal)), D::konst(infinity - first_normal));
  ok = D::m_or(zero, normal);
  const V sign = D::shl(D::shr(D::shl(a, 32), 63), 63);
  const V widened = D::add(D::shl(magnitude, 29), D::konst(uint64_t{kBiasDifference} << 52));
  return D::or_(sign, D::select(zero, D::konst(0), widened));
}
// A double rounded to a float, to nearest even; good where the result is zero by nature or well
// inside the range of normal floats.
template <class D>
GPUSIM_HD_INLINE typename D::V fp_demoted(GPUSIM_A, typename D::M& ok, typename D::M& inexact) {
  using V = typename D::V;
  using M = typename D::M;
  const V magnitude = FpDouble<D>::magnitude(a);
  const M zero = D::eq(magnitude, D::konst(0));
  constexpr uint64_t low = uint64_t{kBiasDifference + 2} << 52;
  constexpr uint64_t high = uint64_t{kBiasDifference + 254} << 52;
  const M inside = D::lt_u(D::sub(magnitude, D::konst(low)), D::konst(high - low));
  ok = D::m_or(zero, inside);
  constexpr uint64_t below = (uint64_t{1} << 29) - 1;
  inexact = D::m_not(D::eq(D::and_(magnitude, D::konst(below)), D::konst(0)));
  const V rebiased = D::sub(magnitude, D::konst(uint64_t{kBiasDifference} << 52));
  const V odd = D::and_(D::shr(rebiased, 29), D::konst(1));
  const V rounded = D::shr(D::add(D::add(rebiased, odd), D::konst(below >> 1)), 29);
  const V sign = D::shl(D::shr(a, 63), 31);
  return D::or_(sign, D::select(zero, D::konst(0), rounded));
}
template <class D, class Slow>
GPUSIM_HD_INLINE typename D::V fp_finish_demoted(const typename D::V exact_double,
                                                 const typename D::M where, GPUSIM_FP, Slow slow,
                                                 GPUSIM_A) {
  typename D::M in_range, inexact;
  const typename D::V r = fp_demoted<D>(exact_double, in_range, inexact);
  const typename D::M ok = D::m_and(fp_default<D>(fp), D::m_and(where, in_range));
  fp_raise_ixc<D>(D::m_and(ok, inexact), fp);
  return fp_finish<D>(ok, r, slow, fp, a);
}

GPUSIM_SEM fconvert(GPUSIM_A, GPUSIM_FP, GPUSIM_U) {
  constexpr int from_float = static_cast<int>(FpFormat::kF32) | static_cast<int>(FpFormat::kF64)
                                                                    << 2;
  constexpr int to_float = static_cast<int>(FpFormat::kF64) | static_cast<int>(FpFormat::kF32) << 2;
  const FpMapped_fconvert slow{&u};
  if (u.aux == from_float) {
    typename D::M ok;
    const typename D::V r = fp_promoted<D>(a, ok);
    return fp_finish<D>(ok, r, slow, fp, a);
  }
  if (u.aux == to_float) return fp_finish_demoted<D>(a, D::eq(a, a), fp, slow, a);
  return D::map_state(D::eq(a, a), a, slow, fp, a);
}

// Integers of less than 2^51 in magnitude, exactly: next to 1.5 * 2^52 a double's last bit is 1.
inline constexpr uint64_t kFpMagic = 0x4338000000000000;
GPUSIM_SEM i2f(GPUSIM_A, GPUSIM_FP, GPUSIM_U) {
  using V = typename D::V;
  using M = typename D::M;
  const FpMapped_i2f slow{&u};
  const auto format = static_cast<FpFormat>(u.aux & 3);
  if (u.imm != 0 || format == FpFormat::kF16) return D::map_state(D::eq(a, a), a, slow, fp, a);
  const bool is_signed = u.aux & 32, is_64 = u.aux & 64;
  const V value = is_64 ? a : is_signed ? sext32<D>(a) : low32<D>(a);
  constexpr uint64_t limit = uint64_t{1} << 51;
  M small = D::eq(a, a);
  if (is_64) {
    small = is_signed ? D::lt_u(D::add(value, D::konst(limit - 1)), D::konst(2 * limit - 1))
                      : D::lt_u(value, D::konst(limit));
  }
  const V r = D::template fsub<double>(D::add(value, D::konst(kFpMagic)), D::konst(kFpMagic));
  if (format == FpFormat::kF32) return fp_finish_demoted<D>(r, small, fp, slow, a);
  return fp_finish<D>(small, r, slow, fp, a);
}

// Towards zero, where the result fits and is below 2^51.
GPUSIM_SEM f2i(GPUSIM_A, GPUSIM_FP, GPUSIM_U) {
  using V = typename D::V;
  using M = typename D::M;
  const FpMapped_f2i slow{&u};
  const auto format = static_cast<FpFormat>(u.aux & 3);
  const auto rounding = static_cast<FpRounding>(u.aux >> 2 & 7);
  if (u.imm != 0 || format == FpFormat::kF16 || rounding != FpRounding::kZero) {
    return D::map_state(D::eq(a, a), a, slow, fp, a);
  }
  const bool is_signed = u.aux & 32, is_64 = u.aux & 64;
  M ok = D::eq(a, a);
  const V x = format == FpFormat::kF32 ? fp_promoted<D>(a, ok) : a;
  // |x| < 2^51, 2^32 or 2^31; an unsigned result needs a clear sign.
  const uint64_t field = 1023u + (is_64 ? 51u : is_signed ? 31u : 32u);
  const V bits = is_signed ? FpDouble<D>::magnitude(x) : x;
  ok = D::m_and(fp_default<D>(fp), D::m_and(ok, D::lt_u(bits, D::konst(field << 52))));
  // The magnitude to nearest, then one down where that was up.
  const V magnitude = FpDouble<D>::magnitude(x);
  const V shifted = D::template fadd<double>(magnitude, D::konst(kFpMagic));
  const V nearest = D::template fsub<double>(shifted, D::konst(kFpMagic));
  const M up = D::template flt<double>(magnitude, nearest);
  const V n = D::sub(shifted, D::konst(kFpMagic));
  const V whole = D::select(up, D::sub(n, D::konst(1)), n);
  const M exact = D::template feq<double>(magnitude, nearest);
  const M negative = D::lt_s(x, D::konst(0));
  const V r = D::select(negative, D::sub(D::konst(0), whole), whole);
  fp_raise_ixc<D>(D::m_and(ok, D::m_not(exact)), fp);
  return fp_finish<D>(ok, is_64 ? r : low32<D>(r), slow, fp, a);
}

struct FpMapped_fmisc2 {
  const Uop* u;
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t& fp) const {
    return helpers::fmisc2(a, b, u->aux, fp);
  }
};
GPUSIM_SEM fmisc2(GPUSIM_AB, GPUSIM_FP, GPUSIM_U) {
  return D::map_state(D::eq(a, a), a, FpMapped_fmisc2{&u}, fp, a, b);
}
struct FpMapped_fmisc3 {
  const Uop* u;
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t c, uint64_t& fp) const {
    return helpers::fmisc3(a, b, c, u->aux, fp);
  }
};
GPUSIM_SEM fmisc3(GPUSIM_ABC, GPUSIM_FP, GPUSIM_U) {
  return D::map_state(D::eq(a, a), a, FpMapped_fmisc3{&u}, fp, a, b, c);
}

#undef GPUSIM_VALUE

GPUSIM_SEM_END
#endif
