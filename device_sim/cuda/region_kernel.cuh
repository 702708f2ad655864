// The kernel of compiled regions alone, for slices whose cores all stand where one is entered: a
// thread needs far fewer registers than beside the interpreter, and slots stay where they are
// between slices. A core that leaves its region is done for this slice.
#pragma once
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

// The same number, of which a compiler does not know what was computed with it: it computes that
// again, rather than keep it in registers while a region runs.
__device__ __forceinline__ uint32_t once_more(uint32_t number) {
  asm volatile("" : "+r"(number));
  return number;
}

// A core's context in device memory.
class StoredContext {
 public:
  __device__ __forceinline__ StoredContext(const Launch& launch, uint32_t core)
      : launch_(launch), core_(core) {}
  __device__ __forceinline__ uint64_t get(Slot s) const { return first()[size_t{s} * pitch()]; }
  __device__ __forceinline__ void set(Slot s, uint64_t value) const {
    first()[size_t{s} * pitch()] = value;
  }
  __device__ __forceinline__ uint64_t* first() const { return launch_.slots + core_; }
  __device__ __forceinline__ size_t pitch() const { return launch_.core_count; }
  // What follows is far from what came before.
  __device__ __forceinline__ void find_again() { core_ = once_more(core_); }

 private:
  const Launch& launch_;
  uint32_t core_;
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
  const uint32_t place = Regions::run(launch.machine.region_at[state.pc], state.pc, slots, memory,
                                      core, left, depth, counter);
  CoreState& after = launch.states[once_more(core)];
  after.pc = place;
  after.depth = depth;
  after.instructions += static_cast<uint64_t>(int64_t{most} - left);
  after.passed = 0;
  if (left > 0) atomicAdd(&launch.left_regions[left > most / 2], 1u);
}

}  // namespace gpusim::cuda
