// The simulation kernel: one thread per core, contexts in shared memory, one slice per launch.
#pragma once
#include "device_sim/cuda/warp.cuh"

namespace gpusim::cuda {

// Of a block. More would leave too few registers for a thread.
template <bool has_vectors>
inline constexpr uint32_t kMaxThreads = 512;
// Contexts with the 64 words of vector registers leave shared memory for few more.
template <>
inline constexpr uint32_t kMaxThreads<true> = 256;
// Of kernels with compiled regions, whose slots are in registers.
inline constexpr uint32_t kMaxCompiledThreads = 256;
// Of kernels for modules with warps.
inline constexpr uint32_t kMaxWarpsThreads = 512;

template <bool has_vectors, class View, class Regions = NoRegions>
__device__ __forceinline__ void simulate_slice(const Launch& launch) {
  // When all lanes of a warp make an atomic operation, a chip may always serve the same lane first.
  // Cores move on by a lane with every slice, so that each is that one in its turn.
  const uint32_t lane = (threadIdx.x + launch.slice) % kWarpSize;
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x / kWarpSize * kWarpSize + lane;
  const bool is_present = index < launch.runnable;
  Warp(launch, is_present ? launch.order[index] : 0, is_present)
      .run_slice<has_vectors, View, Regions>();
}

// A kernel, and how many threads its blocks have at most.
struct Kernel {
  void (*entry)(Launch);
  uint32_t max_threads;
};
Kernel kernel_without_vectors();
Kernel kernel_with_vectors();
// Of machines on a caller's memory (core/linear_space.h).
Kernel kernel_in_place_without_vectors();
Kernel kernel_in_place_with_vectors();
// Of modules with warps, likewise.
Kernel kernel_of_warps();
Kernel kernel_of_warps_in_place();

}  // namespace gpusim::cuda
