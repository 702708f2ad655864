// The kernel of compiled regions alone, for slices whose cores all stand where one is entered: a
// thread needs far fewer registers than beside the interpreter, and slots stay where they are
// between slices. A core that leaves its region is done for this slice.
#pragma once
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

// A core's context in device memory.
class StoredContext {
 public:
  __device__ __forceinline__ StoredContext(const Launch& launch, uint32_t core)
      : first_(launch.slots + core), pitch_(launch.core_count) {}
  __device__ __forceinline__ uint64_t get(Slot s) const { return first_[size_t{s} * pitch_]; }
  __device__ __forceinline__ void set(Slot s, uint64_t value) const {
    first_[size_t{s} * pitch_] = value;
  }
  __device__ __forceinline__ uint64_t* first() const { return first_; }
  __device__ __forceinline__ size_t pitch() const { return pitch_; }

 private:
  uint64_t* const first_;
  const size_t pitch_;
};

// Counts blocks for the regions of a core.
class BlockCounter {
 public:
  __device__ __forceinline__ BlockCounter(const Launch& launch, uint32_t core)
      : launch_(launch), core_(core) {}
  __device__ __forceinline__ void count(uint32_t block, uint32_t times) const {
    count_block(launch_, core_, block, times);
  }
  __device__ __forceinline__ const void* region_code() const { return launch_.machine.region_code; }

 private:
  const Launch& launch_;
  const uint32_t core_;
};

// Cores that are in `order` stand where a region is entered. There is no limit of instructions.
template <class View, class Regions>
__device__ __forceinline__ void run_regions(const Launch& launch) {
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= launch.runnable) return;
  const uint32_t core = launch.order[index];
  CoreState& state = launch.states[core];
  if (state.waits) {
    if (state.watch.has_event(launch.machine.memory)) state.rounds = 0;
    state.waits = false;
  }
  const auto most = static_cast<int32_t>(launch.instructions < kLongestSlice ? launch.instructions
                                                                             : kLongestSlice);
  int32_t left = most;
  uint32_t depth = state.depth;
  StoredContext slots(launch, core);
  BlockCounter counter(launch, core);
  const View& memory = launch.machine.memory;
  state.pc = Regions::run(launch.machine.region_at[state.pc], state.pc, slots, memory, core, left,
                          depth, counter);
  state.depth = depth;
  state.instructions += static_cast<uint64_t>(int64_t{most} - left);
  state.passed = 0;
  if (left > 0) atomicAdd(&launch.left_regions[left > most / 2], 1u);
}

}  // namespace gpusim::cuda
