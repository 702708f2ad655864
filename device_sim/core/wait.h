// Cores that wait for an event: WFE and its kin. Waiting may end early at any time, so whoever
// waits looks again; what matters is that a core whose event has come does not sleep on for long,
// and that one whose event has not costs next to nothing.
#pragma once
#include <cstdint>

#include "device_sim/core/atomics.h"
#include "device_sim/core/memory_view.h"

namespace gpusim {

// What a waiting core waits for: that the storage word which its monitor marks changes (a store
// there is an event, Arm ARM, "Wait for Event"), or without one, that an event is signalled.
struct Watch {
  const uint64_t* word = nullptr;
  uint64_t seen = 0;  // what the word held, or the number of events signalled before

  template <class T>
  GPUSIM_HD_INLINE static T read(const T* place) {
#ifdef __CUDA_ARCH__
    return atomic_load(place);
#else
    return __atomic_load_n(place, __ATOMIC_ACQUIRE);
#endif
  }
  GPUSIM_HD_INLINE bool has_event(const MemoryView& memory) const {
    return (word ? read(word) : read(memory.events)) != seen;
  }
  bool operator==(const Watch&) const = default;
};

// What a core with this monitor is to wait for. False: its event has come before. `data` is
// zero-extended from a size that nobody noted: it counts as unchanged if any size fits.
// `events_seen`: the number of events signalled when the core had none pending.
GPUSIM_HD_INLINE bool start_watch(const MemoryView& memory, uint32_t core, uint64_t address,
                                  uint64_t data, uint32_t events_seen, Watch& watch) {
  if (address == kLocalEvent) return false;
  const uint8_t* p =
      address == kNoMonitor ? nullptr : memory.byte(core, address & ~uint64_t{7}, kRead);
  if (!p) {
    watch = {nullptr, events_seen};
    return !watch.has_event(memory);
  }
  watch.word = reinterpret_cast<const uint64_t*>(p);
  watch.seen = Watch::read(watch.word);
  const uint64_t at = address & 7, value = watch.seen >> (8 * at);
  bool same = value == data;
  for (uint32_t size = 1; size < 8; size *= 2)
    same |= (at & (size - 1)) == 0 && (value & ~(~uint64_t{0} << (8 * size))) == data;
  return same;
}

// How many slices a core sleeps that has waited in vain this often: it may wait for what is not
// watched.
inline constexpr uint32_t kLongestSleep = 1024;
GPUSIM_HD_INLINE uint32_t slices_to_sleep(uint32_t rounds) {
  return rounds < 10 ? 1u << rounds : kLongestSleep;
}

}  // namespace gpusim
