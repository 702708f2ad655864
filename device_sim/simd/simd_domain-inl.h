// The execution domain of one vector of lanes: a value is a Highway vector of 64-bit words.
// Same primitives as uir/scalar_domain.h. Included once per SIMD target.
#if defined(GPUSIM_SIMD_DOMAIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SIMD_DOMAIN_INL_H_
#undef GPUSIM_SIMD_DOMAIN_INL_H_
#else
#define GPUSIM_SIMD_DOMAIN_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What vectors of 64-bit and of 32-bit words have in common.
template <class WordType>
struct WordLanes {
  using Word = WordType;
  using Tag = hn::ScalableTag<Word>;
  using Signed = hn::ScalableTag<hwy::MakeSigned<Word>>;
  using V = hn::Vec<Tag>;
  using M = hn::Mask<Tag>;
  static constexpr size_t kLanes = HWY_LANES(Word);
  static constexpr int kBits = 8 * static_cast<int>(sizeof(Word));

  static HWY_INLINE V konst(uint64_t x) { return hn::Set(Tag(), static_cast<Word>(x)); }
  static HWY_INLINE V add(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V sub(V a, V b) { return hn::Sub(a, b); }
  static HWY_INLINE V mul(V a, V b) { return hn::Mul(a, b); }
  static HWY_INLINE V and_(V a, V b) { return hn::And(a, b); }
  static HWY_INLINE V or_(V a, V b) { return hn::Or(a, b); }
  static HWY_INLINE V xor_(V a, V b) { return hn::Xor(a, b); }
  static HWY_INLINE V andnot(V a, V b) { return hn::AndNot(b, a); }
  static HWY_INLINE V not_(V a) { return hn::Not(a); }

  static HWY_INLINE V shl(V a, int n) { return hn::ShiftLeftSame(a, n & (kBits - 1)); }
  static HWY_INLINE V shr(V a, int n) { return hn::ShiftRightSame(a, n & (kBits - 1)); }
  static HWY_INLINE V sar(V a, int n) {
    return hn::BitCast(Tag(), hn::ShiftRightSame(hn::BitCast(Signed(), a), n & (kBits - 1)));
  }
  static HWY_INLINE V count(V n) { return hn::And(n, konst(kBits - 1)); }
  static HWY_INLINE V shl_v(V a, V n) { return hn::Shl(a, count(n)); }
  static HWY_INLINE V shr_v(V a, V n) { return hn::Shr(a, count(n)); }
  static HWY_INLINE V sar_v(V a, V n) {
    const Signed ds;
    return hn::BitCast(Tag(), hn::Shr(hn::BitCast(ds, a), hn::BitCast(ds, count(n))));
  }

  static HWY_INLINE M eq(V a, V b) { return hn::Eq(a, b); }
  static HWY_INLINE M lt_u(V a, V b) { return hn::Lt(a, b); }
  static HWY_INLINE M lt_s(V a, V b) {
    return hn::RebindMask(Tag(), hn::Lt(hn::BitCast(Signed(), a), hn::BitCast(Signed(), b)));
  }
  static HWY_INLINE M m_not(M m) { return hn::Not(m); }
  static HWY_INLINE M m_and(M a, M b) { return hn::And(a, b); }
  static HWY_INLINE M m_or(M a, M b) { return hn::Or(a, b); }
  static constexpr bool always(M) { return false; }
  static HWY_INLINE bool all(M m) { return hn::AllTrue(Tag(), m); }
  static HWY_INLINE V select(M m, V a, V b) { return hn::IfThenElse(m, a, b); }
  static HWY_INLINE uint64_t mask_bits(M m) {
    uint8_t bytes[8] = {};
    hn::StoreMaskBits(Tag(), m, bytes);
    return kLanes <= 8 ? bytes[0] : bytes[0] | uint64_t{bytes[1]} << 8;
  }
};

struct SimdDomain : WordLanes<uint64_t> {
  using Array = uint64_t[kLanes];

  static HWY_INLINE V mul_u32(V a, V b) {
    const hn::Repartition<uint32_t, Tag> d32;
    return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
  }
  static HWY_INLINE V mul_s32(V a, V b) {
    const hn::Repartition<int32_t, Tag> d32;
    return hn::BitCast(Tag(), hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b)));
  }
#if HWY_TARGET == HWY_AVX2
  // AVX2 has no arithmetic shift of 64-bit words: the upper halves become copies of the sign.
  static HWY_INLINE V sext32(V a) {
    const hn::Repartition<int32_t, Tag> d32;
    const auto words = hn::BitCast(d32, a);
    return hn::BitCast(Tag(), hn::OddEven(hn::ShiftRight<31>(hn::DupEven(words)), words));
  }
#endif
  static HWY_INLINE V mulhi_u(V a, V b) {
    return map([](uint64_t x, uint64_t y) { return sem::ScalarDomain::mulhi_u(x, y); }, a, b);
  }
  static HWY_INLINE V mulhi_s(V a, V b) {
    return map([](uint64_t x, uint64_t y) { return sem::ScalarDomain::mulhi_s(x, y); }, a, b);
  }

  template <class F, class... A>
  static HWY_INLINE V map(F f, A... a) {
    return gather_lanes([&](size_t i, const auto*... x) { return f(x[i]...); }, a...);
  }
  template <class F, class... A>
  static HWY_INLINE V map_state(M where, V otherwise, F f, V& state, A... a) {
    HWY_ALIGN Array states;
    HWY_ALIGN Array result;
    hn::Store(state, Tag(), states);
    hn::Store(otherwise, Tag(), result);
    const uint64_t bits = mask_bits(where);
    const V computed = gather_lanes(
        [&](size_t i, const auto*... x) {
          return (bits >> i & 1) ? f(x[i]..., states[i]) : result[i];
        },
        a...);
    state = hn::Load(Tag(), states);
    return computed;
  }
  // Elements narrower than a word.
  template <class E> using Elements = hn::Repartition<E, Tag>;
  template <class E> static HWY_INLINE auto elements(V a) { return hn::BitCast(Elements<E>(), a); }
  template <class X> static HWY_INLINE V words(X x) { return hn::BitCast(Tag(), x); }

  // Of floats, the high halves of sources may be anything; those of results are zero.
  template <class T> static HWY_INLINE V result(V r) {
    return sizeof(T) == 8 ? r : hn::And(r, konst(0xffffffffu));
  }
  template <class T> static HWY_INLINE V fadd(V a, V b) { return result<T>(each_fadd<T>(a, b)); }
  template <class T> static HWY_INLINE V fsub(V a, V b) { return result<T>(each_fsub<T>(a, b)); }
  template <class T> static HWY_INLINE V fmul(V a, V b) { return result<T>(each_fmul<T>(a, b)); }
  template <class T> static HWY_INLINE V fdiv(V a, V b) { return result<T>(each_fdiv<T>(a, b)); }
  template <class T> static HWY_INLINE V fsqrt(V a) {
    return result<T>(words(hn::Sqrt(elements<T>(a))));
  }
  // In double precision: a quotient of 33-bit numbers that is no integer differs from the next one by
  // 2^-33 of its value or more, so rounding does not reach it.
  static HWY_INLINE V quotient33(V a, V b) {
    const hn::RebindToFloat<Tag> df;
    const hn::RebindToSigned<Tag> di;
    const auto q = hn::Div(hn::ConvertTo(df, hn::BitCast(di, a)), hn::ConvertTo(df, hn::BitCast(di, b)));
    return select(eq(b, konst(0)), konst(0), hn::BitCast(Tag(), hn::ConvertTo(di, q)));
  }
  template <class T> static HWY_INLINE V fma(V a, V b, V c) {
#if HWY_NATIVE_FMA
    return result<T>(each_fma<T>(a, b, c));
#else
    return map([](uint64_t x, uint64_t y, uint64_t z) {
      return sem::ScalarDomain::fma<T>(x, y, z);
    }, a, b, c);
#endif
  }
  template <class T> static HWY_INLINE M flt(V a, V b) {
    return low_mask<T>(hn::Lt(elements<T>(a), elements<T>(b)));
  }
  template <class T> static HWY_INLINE M feq(V a, V b) {
    return low_mask<T>(hn::Eq(elements<T>(a), elements<T>(b)));
  }

  // Two floats, one in each half of the word.
  static HWY_INLINE V fadd2(V a, V b) { return each_fadd<float>(a, b); }
  static HWY_INLINE V fsub2(V a, V b) { return each_fsub<float>(a, b); }
  static HWY_INLINE V fmul2(V a, V b) { return each_fmul<float>(a, b); }
  static HWY_INLINE V fdiv2(V a, V b) { return each_fdiv<float>(a, b); }
  static HWY_INLINE V fma2(V a, V b, V c) {
#if HWY_NATIVE_FMA
    return each_fma<float>(a, b, c);
#else
    return map([](uint64_t x, uint64_t y, uint64_t z) {
      return sem::ScalarDomain::fma2(x, y, z);
    }, a, b, c);
#endif
  }

  // Elements E: uint8_t, uint16_t or uint32_t.
  template <class E> using SignedOf = hwy::MakeSigned<E>;
  template <class E> static HWY_INLINE V vadd(V a, V b) {
    return words(hn::Add(elements<E>(a), elements<E>(b)));
  }
  template <class E> static HWY_INLINE V vsub(V a, V b) {
    return words(hn::Sub(elements<E>(a), elements<E>(b)));
  }
  template <class E> static HWY_INLINE V vmul(V a, V b) {
    if constexpr (sizeof(E) == 1) {  // no 8-bit multiply: even and odd bytes as 16-bit elements
      const hn::Repartition<uint16_t, Tag> d16;
      const auto x = hn::BitCast(d16, a), y = hn::BitCast(d16, b);
      const auto even = hn::And(hn::Mul(x, y), hn::Set(d16, 0x00ff));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(x), hn::ShiftRight<8>(y)));
      return words(hn::Or(even, odd));
    } else {
      return words(hn::Mul(elements<E>(a), elements<E>(b)));
    }
  }
  template <class E> static HWY_INLINE V vmin_s(V a, V b) {
    return words(hn::Min(elements<SignedOf<E>>(a), elements<SignedOf<E>>(b)));
  }
  template <class E> static HWY_INLINE V vmax_s(V a, V b) {
    return words(hn::Max(elements<SignedOf<E>>(a), elements<SignedOf<E>>(b)));
  }
  template <class E> static HWY_INLINE V vmin_u(V a, V b) {
    return words(hn::Min(elements<E>(a), elements<E>(b)));
  }
  template <class E> static HWY_INLINE V vmax_u(V a, V b) {
    return words(hn::Max(elements<E>(a), elements<E>(b)));
  }
  template <class E> static HWY_INLINE V veq(V a, V b) {
    return words(hn::VecFromMask(Elements<E>(), hn::Eq(elements<E>(a), elements<E>(b))));
  }
  template <class E> static HWY_INLINE V vgt_s(V a, V b) {
    using S = SignedOf<E>;
    return words(hn::VecFromMask(Elements<S>(), hn::Gt(elements<S>(a), elements<S>(b))));
  }
  template <class E> static HWY_INLINE V vgt_u(V a, V b) {
    return words(hn::VecFromMask(Elements<E>(), hn::Gt(elements<E>(a), elements<E>(b))));
  }
  template <class E> static HWY_INLINE V vshl(V a, int n) {
    return and_(shl(a, n), ones<E>(static_cast<E>(static_cast<E>(-1) << n)));
  }
  template <class E> static HWY_INLINE V vshr(V a, int n) {
    return and_(shr(a, n), ones<E>(static_cast<E>(static_cast<E>(-1) >> n)));
  }
  template <class E> static HWY_INLINE V vsar(V a, int n) {
    const V sign = shr(konst(sem::ScalarDomain::kOnes<E> << (8 * sizeof(E) - 1)), n);
    return vsub<E>(xor_(vshr<E>(a, n), sign), sign);
  }

 private:
  // On all elements T of the words.
  template <class T> static HWY_INLINE V each_fadd(V a, V b) {
    return words(hn::Add(elements<T>(a), elements<T>(b)));
  }
  template <class T> static HWY_INLINE V each_fsub(V a, V b) {
    return words(hn::Sub(elements<T>(a), elements<T>(b)));
  }
  template <class T> static HWY_INLINE V each_fmul(V a, V b) {
    return words(hn::Mul(elements<T>(a), elements<T>(b)));
  }
  template <class T> static HWY_INLINE V each_fdiv(V a, V b) {
    return words(hn::Div(elements<T>(a), elements<T>(b)));
  }
#if HWY_NATIVE_FMA
  template <class T> static HWY_INLINE V each_fma(V a, V b, V c) {
    return words(hn::MulAdd(elements<T>(a), elements<T>(b), elements<T>(c)));
  }
#endif

  // `x` in every element.
  template <class E> static HWY_INLINE V ones(E x) {
    return konst(sem::ScalarDomain::kOnes<E> * x);
  }
  // A mask over words from one over elements: the lowest element of each decides.
  template <class T, class X> static HWY_INLINE M low_mask(X m) {
    const V bits = hn::BitCast(Tag(), hn::VecFromMask(Elements<T>(), m));
    return hn::Ne(hn::And(bits, konst(1)), konst(0));
  }
  template <class F, class... A>
  static HWY_INLINE V gather_lanes(F f, A... a) {
    struct alignas(64) Row { uint64_t x[kLanes]; };
    const auto spill = [](V v) {
      Row r;
      hn::Store(v, Tag(), r.x);
      return r;
    };
    Row out;
    [&](const auto&... rows) {
      for (size_t i = 0; i < kLanes; ++i) out.x[i] = f(i, rows.x...);
    }(spill(a)...);
    return hn::Load(Tag(), out.x);
  }
};

// Half as wide: for micro-ops whose results need only the low 32 bits of their sources
// (simd/narrow.h), twice as many lanes per vector.
struct NarrowDomain : WordLanes<uint32_t> {
  static HWY_INLINE V mul_u32(V a, V b) { return mul(a, b); }
};

}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();
#endif
