// Waiting functions of gpusim_guest.h on top of an ISA's load that watches: <isa>/gpusim_guest_isa.h
// includes this.
#ifndef GPUSIM_WATCH_H
#define GPUSIM_WATCH_H

static inline void gpusim_wait_while_equal(const uint32_t* place, uint32_t value) {
  while (gpusim_isa_load_and_watch(place) == value) gpusim_wait_for_event();
}

static inline void gpusim_wait_until_equal(const uint32_t* place, uint32_t value) {
  while (gpusim_isa_load_and_watch(place) != value) gpusim_wait_for_event();
}

static inline void gpusim_wait_while_equal_u64(const uint64_t* place, uint64_t value) {
  while (gpusim_isa_load_and_watch_u64(place) == value) gpusim_wait_for_event();
}

static inline void gpusim_wait_until_equal_u64(const uint64_t* place, uint64_t value) {
  while (gpusim_isa_load_and_watch_u64(place) != value) gpusim_wait_for_event();
}

#endif  // GPUSIM_WATCH_H
