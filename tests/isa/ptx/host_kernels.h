// What host_kernels.cu needs where it is not compiled by nvcc, and its kernels.
#pragma once
#include <alloca.h>

#include <cstdint>

struct Pair {
  double a;
  float b;
};

#ifdef __CUDACC__
#define GPUSIM_KERNEL(name) extern "C" __global__ void name
#else
#include <bit>
#include <cmath>

struct Index {
  uint32_t x = 0, y = 0, z = 0;
};
inline thread_local Index blockIdx, blockDim, threadIdx;
#define GPUSIM_KERNEL(name) extern "C" void name
#define __constant__ static const
#define __device__ static
#define __noinline__
inline int __popc(uint32_t x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<uint32_t>(x)); }
inline uint32_t __brev(uint32_t x) {
  uint32_t r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1) << (31 - i);
  return r;
}
inline int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}
inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  uint32_t r = 0;
  for (int i = 0; i < 4; ++i)
    r |= static_cast<uint32_t>(both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return r;
}
inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t shift) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<uint32_t>(both << (shift & 31) >> 32);
}
inline float __uint_as_float(uint32_t x) { return std::bit_cast<float>(x); }
inline uint32_t __float_as_uint(float x) { return std::bit_cast<uint32_t>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
using std::fabs, std::fma, std::sqrt, std::ceil;
#endif

GPUSIM_KERNEL(integers)(uint64_t* out, const uint32_t* in, uint32_t n);
GPUSIM_KERNEL(bits)(uint64_t* out, const uint32_t* in, uint32_t n);
GPUSIM_KERNEL(collatz)(uint64_t* out, const uint32_t* in, uint32_t n);
GPUSIM_KERNEL(small_types)(uint64_t* out, const uint32_t* in, uint32_t n);
GPUSIM_KERNEL(stacks)(uint64_t* out, const uint32_t* in, uint32_t n);
GPUSIM_KERNEL(floats)(uint64_t* out, const uint32_t* in, uint32_t n);
GPUSIM_KERNEL(doubles)(uint64_t* out, Pair scale, const uint32_t* in, uint32_t n);
