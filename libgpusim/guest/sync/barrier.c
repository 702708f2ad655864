// Barriers of groups, the whole chip being one of them.
#include "barrier.h"

gpusim_group_t gpusim_chip;

void gpusim_group_init(gpusim_group_t* group, uint32_t members) {
  const gpusim_group_t fresh = GPUSIM_GROUP_INIT(members);
  *group = fresh;
}

// The whole chip has a function of its own: constant addresses, the count from a register.
void gpusim_barrier(void) {
  const uint32_t phase = __atomic_load_n(&gpusim_chip.phase, __ATOMIC_RELAXED);
  gpusim_time_release(&gpusim_chip, phase);
  const uint32_t before = __atomic_fetch_add(&gpusim_chip.arrived, 1, __ATOMIC_ACQ_REL);
  if (before + 1 == gpusim_core_count()) {
    gpusim_open_barrier(&gpusim_chip, phase);
  } else {
    gpusim_wait_while_equal(&gpusim_chip.phase, phase);
  }
  gpusim_time_acquire(&gpusim_chip, phase);
}

int gpusim_group_barrier(gpusim_group_t* group) {
  uint32_t phase;
  const int last = gpusim_arrive_last(group, &phase);
  if (last) {
    gpusim_open_barrier(group, phase);
  } else {
    gpusim_wait_while_equal(&group->phase, phase);
  }
  gpusim_time_acquire(group, phase);
  return last;
}

uint32_t gpusim_group_arrive(gpusim_group_t* group) {
  uint32_t phase;
  if (gpusim_arrive_last(group, &phase)) gpusim_open_barrier(group, phase);
  return phase;
}

void gpusim_group_depart(gpusim_group_t* group, uint32_t ticket) {
  gpusim_wait_while_equal(&group->phase, ticket);
  gpusim_time_acquire(group, ticket);
}
