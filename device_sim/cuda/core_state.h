// A simulated core between slices, as the CUDA backend keeps it on the device.
#pragma once
#include "device_sim/core/backend.h"
#include "device_sim/core/effects.h"
#include "device_sim/core/wait.h"

namespace gpusim::cuda {

inline constexpr uint32_t kWarpSize = 32;
inline constexpr uint32_t kLanesShift = 5;  // windows are interleaved by warp

// The part of a core's state that is not in slots.
struct CoreState {
  uint32_t pc = 0;         // next micro-op
  uint32_t depth = 0;      // call depth, a hint for reconvergence
  uint64_t instructions = 0;
  uint64_t slice_end = 0;
  CoreStatus status = CoreStatus::kIdle;
  bool waits = false;        // for an event, until it has come or the slice `until` begins
  uint32_t events_seen = 0;  // of those signalled
  uint32_t rounds = 0;       // of waiting, in vain
  uint32_t until = 0;
  uint32_t passed = 0;       // slices in which it could run, but others of its warp did all the time
  Watch watch;
};

// What stopped a core; the fields of Event that are not implied by its status.
struct StopRecord {
  uint32_t uop = 0;
  Service service = Service::kSyscall;
  Slot slot = 0;
  StopInfo why{};
};

// What CoreState::status is on the device alone, of threads of CTAs: one that waits at a row of
// warps; one that has ended. Both have a StopRecord.
inline constexpr CoreStatus kAtRow{64}, kEnded{65};

// A warp of a module with warps at the beginning of a slice, by its lanes.
struct WarpStart {
  uint32_t first_core = 0;
  uint32_t runnable = 0, alive = 0;
};

// Of each core: also its places in the backend's lists.
inline constexpr size_t kSchedulingBytes =
    sizeof(CoreState) + sizeof(StopRecord) + 6 * sizeof(uint32_t);

// Whether the core waits for an event that has not come.
GPUSIM_HD_INLINE bool sleeps(const MemoryView& memory, const CoreState& s, uint32_t slice) {
  return s.waits && static_cast<int32_t>(slice - s.until) < 0 && !s.watch.has_event(memory);
}

// The core gives way until an event comes. `monitor`: the first of the monitor's two slots.
template <class Ctx>
GPUSIM_HD_INLINE void wait_for_event(const MemoryView& memory, uint32_t core, uint32_t slice,
                                     CoreState& s, const Ctx& ctx, Slot monitor) {
  s.waits = start_watch(memory, core, ctx.get(monitor), ctx.get(static_cast<Slot>(monitor + 1)),
                        s.events_seen, s.watch);
  s.until = slice + slices_to_sleep(s.rounds++);
  if (!s.watch.word) s.events_seen = Watch::read(memory.events);
}

inline Event make_event(uint32_t core, const CoreState& s, const StopRecord& r) {
  return {.core = core, .status = s.status, .service = r.service, .slot = r.slot,
          .fault = r.why.fault, .uop = r.uop, .address = r.why.address};
}

}  // namespace gpusim::cuda
