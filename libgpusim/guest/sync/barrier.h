// The two halves of a barrier, for barriers and reductions.
#ifndef GPUSIM_SYNC_BARRIER_H
#define GPUSIM_SYNC_BARRIER_H

#include "gpusim_group.h"

// Whether this member is the last to arrive. Then the others wait, and what it does before
// gpusim_open_barrier() it does alone; all that they wrote before is there for it to see.
static inline int gpusim_arrive_last(gpusim_group_t* group, uint32_t* phase) {
  const uint32_t members = group->members != 0 ? group->members : gpusim_core_count();
  // Read before arriving: once all have arrived the phase may change at any moment. Each phase
  // number is used once per 2^32 barriers, so a core that is slow to look cannot mistake a later
  // phase for its own; a core cannot fall behind by more than one. The load cannot be made after
  // the addition, which releases; nor can it see an old phase: this core left the barrier before
  // only after it had seen the present one.
  *phase = __atomic_load_n(&group->phase, __ATOMIC_RELAXED);
  gpusim_time_release(group, *phase);
  return __atomic_fetch_add(&group->arrived, 1, __ATOMIC_ACQ_REL) + 1 == members;
}

// Lets all go on.
static inline void gpusim_open_barrier(gpusim_group_t* group, uint32_t phase) {
  // Nobody touches the counter until the phase changes, so a plain store is enough.
  __atomic_store_n(&group->arrived, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&group->phase, phase + 1, __ATOMIC_RELEASE);
}

#endif  // GPUSIM_SYNC_BARRIER_H
