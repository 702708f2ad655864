// The execution domain of one core: a value is one 64-bit word. Serves the scalar backend, CUDA
// threads, and values that are the same in all lanes of a SIMD group.
//
// A domain's primitives are total: every input has one defined result, the same on every host.
#include "device_sim/uir/hd.h"
#include "device_sim/uir/semantics_namespace.h"

#if defined(GPUSIM_SCALAR_DOMAIN_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SCALAR_DOMAIN_H_
#undef GPUSIM_SCALAR_DOMAIN_H_
#else
#define GPUSIM_SCALAR_DOMAIN_H_
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

GPUSIM_SEM_BEGIN

struct ScalarDomain {
  using V = uint64_t;
  using M = bool;
  static constexpr int kBits = 64;  // of a value

  GPUSIM_HD_INLINE static V konst(uint64_t x) { return x; }
  GPUSIM_HD_INLINE static V add(V a, V b) { return a + b; }
  GPUSIM_HD_INLINE static V sub(V a, V b) { return a - b; }
  GPUSIM_HD_INLINE static V mul(V a, V b) { return a * b; }
  // Full products of the low 32 bits.
  GPUSIM_HD_INLINE static V mul_u32(V a, V b) { return uint64_t{static_cast<uint32_t>(a)} * static_cast<uint32_t>(b); }
  GPUSIM_HD_INLINE static V mul_s32(V a, V b) {
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b));
  }
  GPUSIM_HD_INLINE static V mulhi_u(V a, V b) {
#ifdef __CUDA_ARCH__
    return __umul64hi(a, b);
#else
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(a) * b) >> 64);
#endif
  }
  GPUSIM_HD_INLINE static V mulhi_s(V a, V b) {
#ifdef __CUDA_ARCH__
    return static_cast<uint64_t>(__mul64hi(static_cast<int64_t>(a), static_cast<int64_t>(b)));
#else
    __extension__ using Wide = __int128;
    return static_cast<uint64_t>(
        (static_cast<Wide>(static_cast<int64_t>(a)) * static_cast<int64_t>(b)) >> 64);
#endif
  }
  GPUSIM_HD_INLINE static V and_(V a, V b) { return a & b; }
  GPUSIM_HD_INLINE static V or_(V a, V b) { return a | b; }
  GPUSIM_HD_INLINE static V xor_(V a, V b) { return a ^ b; }
  GPUSIM_HD_INLINE static V andnot(V a, V b) { return a & ~b; }
  GPUSIM_HD_INLINE static V not_(V a) { return ~a; }

  // Shifts by a count that all lanes share, 0 .. 63.
  GPUSIM_HD_INLINE static V shl(V a, int n) { return a << (n & 63); }
  GPUSIM_HD_INLINE static V shr(V a, int n) { return a >> (n & 63); }
  GPUSIM_HD_INLINE static V sar(V a, int n) {
    return static_cast<uint64_t>(static_cast<int64_t>(a) >> (n & 63));
  }
  // Shifts by a count per lane, taken modulo 64.
  GPUSIM_HD_INLINE static V shl_v(V a, V n) { return a << (n & 63); }
  GPUSIM_HD_INLINE static V shr_v(V a, V n) { return a >> (n & 63); }
  GPUSIM_HD_INLINE static V sar_v(V a, V n) {
    return static_cast<uint64_t>(static_cast<int64_t>(a) >> (n & 63));
  }

  // a / b, signed and truncated, of values that fit 33 bits; 0 if b is 0.
  GPUSIM_HD_INLINE static V quotient33(V a, V b) {
    return b == 0 ? 0 : static_cast<uint64_t>(static_cast<int64_t>(a) / static_cast<int64_t>(b));
  }

  GPUSIM_HD_INLINE static M eq(V a, V b) { return a == b; }
  GPUSIM_HD_INLINE static M lt_u(V a, V b) { return a < b; }
  GPUSIM_HD_INLINE static M lt_s(V a, V b) {
    return static_cast<int64_t>(a) < static_cast<int64_t>(b);
  }
  GPUSIM_HD_INLINE static M m_not(M m) { return !m; }
  GPUSIM_HD_INLINE static M m_and(M a, M b) { return a & b; }
  GPUSIM_HD_INLINE static M m_or(M a, M b) { return a | b; }
  GPUSIM_HD_INLINE static bool all(M m) { return m; }
  // Whether m is known to hold, whatever the data.
  GPUSIM_HD_INLINE static constexpr bool always(M) { return false; }
  GPUSIM_HD_INLINE static V select(M m, V a, V b) { return m ? a : b; }

  // The general slow path: a scalar function lane by lane.
  template <class F> GPUSIM_HD_INLINE static V map(F f, V a) { return f(a); }
  template <class F> GPUSIM_HD_INLINE static V map(F f, V a, V b) { return f(a, b); }
  template <class F> GPUSIM_HD_INLINE static V map(F f, V a, V b, V c) { return f(a, b, c); }
  // The same with a state word that f may update, only in lanes where `where` holds; the result is
  // `otherwise` elsewhere.
  template <class F, class... A>
  GPUSIM_HD_INLINE static V map_state(M where, V otherwise, F f, V& state, A... a) {
    return where ? f(a..., state) : otherwise;
  }

  // Native IEEE arithmetic on the low 32 bits (float) or all 64 (double), rounding to nearest even,
  // result zero-extended. What a NaN result looks like is the machine's business.
  template <class T> GPUSIM_HD_INLINE static T to(V a) {
    T t;
    memcpy(&t, &a, sizeof t);
    return t;
  }
  template <class T> GPUSIM_HD_INLINE static V from(T t) {
    V a = 0;
    memcpy(&a, &t, sizeof t);
    return a;
  }
#ifdef __CUDA_ARCH__
  GPUSIM_HD_INLINE static float op_add(float a, float b) { return __fadd_rn(a, b); }
  GPUSIM_HD_INLINE static double op_add(double a, double b) { return __dadd_rn(a, b); }
  GPUSIM_HD_INLINE static float op_mul(float a, float b) { return __fmul_rn(a, b); }
  GPUSIM_HD_INLINE static double op_mul(double a, double b) { return __dmul_rn(a, b); }
  GPUSIM_HD_INLINE static float op_div(float a, float b) { return __fdiv_rn(a, b); }
  GPUSIM_HD_INLINE static double op_div(double a, double b) { return __ddiv_rn(a, b); }
  GPUSIM_HD_INLINE static float op_sqrt(float a) { return __fsqrt_rn(a); }
  GPUSIM_HD_INLINE static double op_sqrt(double a) { return __dsqrt_rn(a); }
  GPUSIM_HD_INLINE static float op_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
  GPUSIM_HD_INLINE static double op_fma(double a, double b, double c) { return __fma_rn(a, b, c); }
#else
  template <class T> GPUSIM_HD_INLINE static T op_add(T a, T b) { return a + b; }
  template <class T> GPUSIM_HD_INLINE static T op_mul(T a, T b) { return a * b; }
  template <class T> GPUSIM_HD_INLINE static T op_div(T a, T b) { return a / b; }
  template <class T> GPUSIM_HD_INLINE static T op_sqrt(T a) { return std::sqrt(a); }
  template <class T> GPUSIM_HD_INLINE static T op_fma(T a, T b, T c) { return std::fma(a, b, c); }
#endif
  template <class T> GPUSIM_HD_INLINE static V fadd(V a, V b) { return from(op_add(to<T>(a), to<T>(b))); }
  template <class T> GPUSIM_HD_INLINE static V fsub(V a, V b) { return from(op_add(to<T>(a), -to<T>(b))); }
  template <class T> GPUSIM_HD_INLINE static V fmul(V a, V b) { return from(op_mul(to<T>(a), to<T>(b))); }
  template <class T> GPUSIM_HD_INLINE static V fdiv(V a, V b) { return from(op_div(to<T>(a), to<T>(b))); }
  template <class T> GPUSIM_HD_INLINE static V fsqrt(V a) { return from(op_sqrt(to<T>(a))); }
  template <class T> GPUSIM_HD_INLINE static V fma(V a, V b, V c) {
    return from(op_fma(to<T>(a), to<T>(b), to<T>(c)));
  }
  // Ordered comparison: false if either is a NaN.
  template <class T> GPUSIM_HD_INLINE static M flt(V a, V b) { return to<T>(a) < to<T>(b); }
  template <class T> GPUSIM_HD_INLINE static M feq(V a, V b) { return to<T>(a) == to<T>(b); }

  // The same arithmetic on two floats, one in each half of the word.
  GPUSIM_HD_INLINE static V two(V low, V high) { return low | high << 32; }
  GPUSIM_HD_INLINE static V fadd2(V a, V b) {
    return two(fadd<float>(a, b), fadd<float>(a >> 32, b >> 32));
  }
  GPUSIM_HD_INLINE static V fsub2(V a, V b) {
    return two(fsub<float>(a, b), fsub<float>(a >> 32, b >> 32));
  }
  GPUSIM_HD_INLINE static V fmul2(V a, V b) {
    return two(fmul<float>(a, b), fmul<float>(a >> 32, b >> 32));
  }
  GPUSIM_HD_INLINE static V fdiv2(V a, V b) {
    return two(fdiv<float>(a, b), fdiv<float>(a >> 32, b >> 32));
  }
  GPUSIM_HD_INLINE static V fma2(V a, V b, V c) {
    return two(fma<float>(a, b, c), fma<float>(a >> 32, b >> 32, c >> 32));
  }

  // The word as a vector of elements E: uint8_t, uint16_t or uint32_t (64-bit elements are what
  // the primitives above work on). "_s" takes the elements as signed, "_u" as unsigned.
  template <class E> static constexpr int kElementBits = static_cast<int>(8 * sizeof(E));
  // A one in each element.
  template <class E> static constexpr uint64_t kOnes = ~uint64_t{0} / static_cast<E>(-1);
  template <class E, class F> GPUSIM_HD_INLINE static V each(F f, V a, V b) {
    V r = 0;
    for (int i = 0; i < 64; i += kElementBits<E>) {
      const E element = f(static_cast<E>(a >> i), static_cast<E>(b >> i));
      r |= V{element} << i;
    }
    return r;
  }
  template <class E> GPUSIM_HD_INLINE static int64_t sext(E x) {
    return static_cast<int64_t>(uint64_t{x} << (64 - kElementBits<E>)) >> (64 - kElementBits<E>);
  }
  template <class E> GPUSIM_HD_INLINE static E if_true(bool x) {
    return x ? static_cast<E>(-1) : E{0};
  }
  template <class E> GPUSIM_HD_INLINE static V vadd(V a, V b) {
    constexpr uint64_t top = kOnes<E> << (kElementBits<E> - 1);
    return ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top);
  }
  template <class E> GPUSIM_HD_INLINE static V vsub(V a, V b) {
    constexpr uint64_t top = kOnes<E> << (kElementBits<E> - 1);
    return ((a | top) - (b & ~top)) ^ ((a ^ ~b) & top);
  }
  template <class E> GPUSIM_HD_INLINE static V vmul(V a, V b) {
    return each<E>([](E x, E y) { return static_cast<E>(uint64_t{x} * y); }, a, b);
  }
  template <class E> GPUSIM_HD_INLINE static V vmin_s(V a, V b) {
    return each<E>([](E x, E y) { return sext(x) < sext(y) ? x : y; }, a, b);
  }
  template <class E> GPUSIM_HD_INLINE static V vmax_s(V a, V b) {
    return each<E>([](E x, E y) { return sext(x) < sext(y) ? y : x; }, a, b);
  }
  template <class E> GPUSIM_HD_INLINE static V vmin_u(V a, V b) {
    return each<E>([](E x, E y) { return x < y ? x : y; }, a, b);
  }
  template <class E> GPUSIM_HD_INLINE static V vmax_u(V a, V b) {
    return each<E>([](E x, E y) { return x < y ? y : x; }, a, b);
  }
  // Comparisons: all ones where true.
  template <class E> GPUSIM_HD_INLINE static V veq(V a, V b) {
    return each<E>([](E x, E y) { return if_true<E>(x == y); }, a, b);
  }
  template <class E> GPUSIM_HD_INLINE static V vgt_s(V a, V b) {
    return each<E>([](E x, E y) { return if_true<E>(sext(x) > sext(y)); }, a, b);
  }
  template <class E> GPUSIM_HD_INLINE static V vgt_u(V a, V b) {
    return each<E>([](E x, E y) { return if_true<E>(x > y); }, a, b);
  }
  // Shifts of all elements by a count below the element's width.
  template <class E> GPUSIM_HD_INLINE static V vshl(V a, int n) {
    return (a << n) & (kOnes<E> * static_cast<E>(static_cast<E>(-1) << n));
  }
  template <class E> GPUSIM_HD_INLINE static V vshr(V a, int n) {
    return (a >> n) & (kOnes<E> * static_cast<E>(static_cast<E>(-1) >> n));
  }
  template <class E> GPUSIM_HD_INLINE static V vsar(V a, int n) {
    const V sign = kOnes<E> << (kElementBits<E> - 1 - n);  // where the sign bits arrive
    return vsub<E>(vshr<E>(a, n) ^ sign, sign);
  }
};

GPUSIM_SEM_END
#endif
