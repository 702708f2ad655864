// Arithmetic functions of CUDA. Floating point rounds to nearest; the build must not contract.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulated/language.h"

using std::memcpy;
using std::memset;

__forceinline__ int __clz(int x) { return std::countl_zero(static_cast<uint32_t>(x)); }
__forceinline__ int __clzll(long long x) { return std::countl_zero(static_cast<uint64_t>(x)); }
__forceinline__ int __ffs(int x) { return __builtin_ffs(x); }
__forceinline__ int __ffsll(long long x) { return __builtin_ffsll(x); }
__forceinline__ int __popc(unsigned x) { return std::popcount(x); }
__forceinline__ int __popcll(unsigned long long x) { return std::popcount(x); }
__forceinline__ unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; ++i) y |= (x >> i & 1) << (31 - i);
  return y;
}
__forceinline__ unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
__forceinline__ unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}
__forceinline__ unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32);
}
__forceinline__ unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(static_cast<Wide>(x) * y >> 64);
}
__forceinline__ long long __mul64hi(long long x, long long y) {
  __extension__ using Wide = __int128;
  return static_cast<long long>(static_cast<Wide>(x) * y >> 64);
}

#define CUDA_EMULATED_BINARY(f, d, op)                                \
  __forceinline__ float f(float x, float y) { return x op y; }        \
  __forceinline__ double d(double x, double y) { return x op y; }
CUDA_EMULATED_BINARY(__fadd_rn, __dadd_rn, +)
CUDA_EMULATED_BINARY(__fsub_rn, __dsub_rn, -)
CUDA_EMULATED_BINARY(__fmul_rn, __dmul_rn, *)
CUDA_EMULATED_BINARY(__fdiv_rn, __ddiv_rn, /)
#undef CUDA_EMULATED_BINARY
__forceinline__ float __fsqrt_rn(float x) { return std::sqrt(x); }
__forceinline__ double __dsqrt_rn(double x) { return std::sqrt(x); }
__forceinline__ float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
__forceinline__ double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return std::min(static_cast<T>(a), static_cast<T>(b));
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return std::max(static_cast<T>(a), static_cast<T>(b));
}

// Loads and stores with hints for caches, of which there are none.
#define CUDA_EMULATED_LOAD(name) \
  template <class T>             \
  __forceinline__ T name(const T* p) { return *p; }
CUDA_EMULATED_LOAD(__ldg)
CUDA_EMULATED_LOAD(__ldca)
CUDA_EMULATED_LOAD(__ldcg)
CUDA_EMULATED_LOAD(__ldcs)
CUDA_EMULATED_LOAD(__ldcv)
CUDA_EMULATED_LOAD(__ldlu)
#undef CUDA_EMULATED_LOAD
#define CUDA_EMULATED_STORE(name) \
  template <class T>              \
  __forceinline__ void name(T* p, std::type_identity_t<T> value) { *p = value; }
CUDA_EMULATED_STORE(__stcg)
CUDA_EMULATED_STORE(__stcs)
CUDA_EMULATED_STORE(__stwb)
CUDA_EMULATED_STORE(__stwt)
#undef CUDA_EMULATED_STORE

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
__forceinline__ uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
__forceinline__ uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
__forceinline__ ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) {
  return {x, y};
}
#define __builtin_assume(condition) static_cast<void>(0)
