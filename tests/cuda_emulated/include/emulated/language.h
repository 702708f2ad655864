// What CUDA adds to C++, for a host compiler that compiles device code (__CUDA_ARCH__ is given).
#pragma once
#include <cstddef>
#include <cstdint>

#define __host__
#define __device__
#define __global__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
// Not `noinline`: libstdc++ has the attribute in this spelling.
#define __noinline__
// Shared memory is the thread-local storage of the program's thread. It is exchanged when another
// block runs. Arrays of unknown size all start at the same place (localise.cmake defines them).
#define __shared__ thread_local
// The threads of the bound become so many NOPs before the kernel's entry, which are found by their
// record: see launch_bound().
#define __launch_bounds__(threads, ...) \
  __attribute__((patchable_function_entry(static_cast<int>(threads), static_cast<int>(threads))))

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
  unsigned x, y, z;
};

// Of the lane that runs.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;
