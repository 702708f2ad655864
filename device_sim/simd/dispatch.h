// Which of the targets (simd/targets.h) that a function was compiled for is called. Highway's own
// choice needs its library, which measures the processor's clock for 2.4 ms when a program starts.
// To be included behind hwy/highway.h.
#pragma once
#include <hwy/highway.h>

#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_AVX3) && HWY_STATIC_TARGET != HWY_AVX3
namespace gpusim::simd {
inline const bool kHasAvx3 =
    __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
    __builtin_cpu_supports("avx512cd");
}
#define GPUSIM_ON_TARGET(f) (gpusim::simd::kHasAvx3 ? N_AVX3::f : HWY_STATIC_DISPATCH(f))
#else
#define GPUSIM_ON_TARGET(f) HWY_STATIC_DISPATCH(f)
#endif
