// Marks functions that run on the host and on a CUDA device alike.
#pragma once

#if defined(__CUDACC__)
#define GPUSIM_HD __host__ __device__
#define GPUSIM_HD_INLINE __host__ __device__ __forceinline__
#define GPUSIM_HD_NOINLINE inline __host__ __device__ __noinline__
#else
#define GPUSIM_HD
#define GPUSIM_HD_INLINE inline __attribute__((always_inline))
#define GPUSIM_HD_NOINLINE inline __attribute__((noinline))
#endif
