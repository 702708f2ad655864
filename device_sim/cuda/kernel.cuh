// The simulation kernel: one thread per core, contexts in shared memory, one slice per launch.
#pragma once
#include "device_sim/cuda/thread.h"

namespace gpusim::cuda {

inline constexpr uint32_t kMaxThreads = 1024;
// Copies of the block counters, so that multiprocessors do not contend for the same words.
inline constexpr uint32_t kCounterCopies = 64;

struct Launch {
  Machine machine;
  uint64_t* slots = nullptr;          // [slot][core]
  uint32_t slot_count = 0;
  uint32_t core_count = 0;
  CoreState* states = nullptr;        // [core]
  StopRecord* records = nullptr;      // [core]
  const uint32_t* order = nullptr;    // cores that are runnable and awake, neighbours at the same micro-op
  uint32_t runnable = 0;
  uint64_t instructions = 0;          // per core and slice
  uint32_t slice = 0;
  unsigned long long* block_counts = nullptr;  // [block][kCounterCopies]
  unsigned long long* core_classes = nullptr;  // [class][core], or null
  uint32_t* stopped = nullptr;        // cores that stopped, in no order
  uint32_t* stopped_count = nullptr;
};

// A core's context in shared memory, [slot][thread]: neighbours touch neighbouring banks.
struct SharedContext {
  uint64_t* slots;
  uint32_t stride;
  __device__ __forceinline__ uint64_t get(Slot s) const { return slots[s * stride]; }
  __device__ __forceinline__ void set(Slot s, uint64_t value) { slots[s * stride] = value; }
};

__device__ __forceinline__ uint32_t warp_min(uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(0xffffffffu, x);
#else
  for (int delta = kWarpSize / 2; delta > 0; delta /= 2)
    x = min(x, __shfl_xor_sync(0xffffffffu, x, delta));
  return x;
#endif
}

// Whether this thread is among those that run next: the smallest depth_key, then the smallest pc.
__device__ __forceinline__ bool is_lead(bool running, const CoreState& s) {
  constexpr uint32_t kAll = 0xffffffffu;
  const uint32_t active = __ballot_sync(kAll, running);
  const uint32_t some_pc = __shfl_sync(kAll, s.pc, __ffs(active) - 1);
  if (__all_sync(kAll, !running || s.pc == some_pc)) return running;  // converged
  const uint32_t key = running ? depth_key(s) : 0xffffffffu;
  const bool deepest = running && key == warp_min(key);
  const uint32_t pc = deepest ? s.pc : 0xffffffffu;
  return deepest && pc == warp_min(pc);
}

__device__ __forceinline__ void run_warp(const Launch& launch, uint32_t core, bool running,
                                         CoreState& s, SharedContext& ctx) {
  constexpr uint32_t kAll = 0xffffffffu;
  const uint32_t copy = blockIdx.x % kCounterCopies;
  const uint32_t lane = threadIdx.x % kWarpSize;
  while (__any_sync(kAll, running)) {
    uint32_t completed = kNoBlock;
    if (is_lead(running, s)) {
      StopRecord record;
      const BlockResult r = run_block(launch.machine, core, launch.slice, s, ctx, record);
      completed = r.completed;
      if (s.status != CoreStatus::kRunnable) {
        launch.records[core] = record;
        launch.stopped[atomicAdd(launch.stopped_count, 1u)] = core;
        running = false;
      }
      if (r.gave_way || s.instructions >= s.slice_end) running = false;
      if (launch.core_classes && completed != kNoBlock) {
        const BlockInfo& info = launch.machine.blocks[completed];
        for (uint32_t c = 0; c < kInsnClassCount; ++c)
          if (info.classes[c]) launch.core_classes[c * launch.core_count + core] += info.classes[c];
      }
    }
    // The lead threads ran the same block: one of those that completed it counts for all.
    __syncwarp();
    const uint32_t done = __ballot_sync(kAll, completed != kNoBlock);
    if (done != 0 && lane == static_cast<uint32_t>(__ffs(done)) - 1)
      atomicAdd(&launch.block_counts[size_t{completed} * kCounterCopies + copy],
                static_cast<unsigned long long>(__popc(done)));
  }
}

__global__ void __launch_bounds__(kMaxThreads, 1) simulate(const __grid_constant__ Launch launch) {
  extern __shared__ uint64_t shared_slots[];
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  const bool present = index < launch.runnable;
  const uint32_t core = present ? launch.order[index] : 0;
  SharedContext ctx{shared_slots + threadIdx.x, blockDim.x};
  CoreState s;
  bool running = present;
  if (present) {
    s = launch.states[core];
    StopRecord record;
    running = begin_slice(launch.machine, core, s, launch.slice, launch.instructions, record);
    if (!running) {
      launch.records[core] = record;
      launch.stopped[atomicAdd(launch.stopped_count, 1u)] = core;
    }
    for (uint32_t slot = 0; slot < launch.slot_count; ++slot)
      ctx.set(static_cast<Slot>(slot), launch.slots[size_t{slot} * launch.core_count + core]);
  }
  __syncwarp();
  run_warp(launch, core, running, s, ctx);
  if (present) {
    launch.states[core] = s;
    for (uint32_t slot = 0; slot < launch.slot_count; ++slot)
      launch.slots[size_t{slot} * launch.core_count + core] = ctx.get(static_cast<Slot>(slot));
  }
}

// One write to a slot or to a core's state, made by the host between slices.
struct SlotWrite {
  uint32_t core;
  uint32_t slot;
  uint64_t value;
};
struct StateWrite {
  uint32_t core;
  uint32_t pc;
  CoreStatus status;
};

__global__ void apply_slot_writes(const SlotWrite* writes, uint32_t count, uint64_t* slots,
                                  uint32_t core_count) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) slots[size_t{writes[i].slot} * core_count + writes[i].core] = writes[i].value;
}
__global__ void apply_state_writes(const StateWrite* writes, uint32_t count, CoreState* states) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  states[writes[i].core].pc = writes[i].pc;
  states[writes[i].core].status = writes[i].status;
  states[writes[i].core].waits = false;
}
__global__ void fill_slots(uint64_t* row, uint32_t count, uint64_t value) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) row[i] = value;
}
// Contexts of the cores that stopped, for the host: [slot][stopped core].
__global__ void gather_slots(const uint32_t* cores, uint32_t count, const uint64_t* slots,
                             uint32_t slot_count, uint32_t core_count, uint64_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (uint32_t s = 0; s < slot_count; ++s)
    out[size_t{s} * count + i] = slots[size_t{s} * core_count + cores[i]];
}
__global__ void gather_stops(const uint32_t* cores, uint32_t count, const CoreState* states,
                             const StopRecord* records, CoreState* states_out,
                             StopRecord* records_out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  states_out[i] = states[cores[i]];
  records_out[i] = records[cores[i]];
}
__global__ void read_pcs(const uint32_t* cores, uint32_t count, const CoreState* states,
                         uint32_t* pcs) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) pcs[i] = states[cores[i]].pc;
}

}  // namespace gpusim::cuda
