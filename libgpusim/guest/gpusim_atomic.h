// Atomic operations on 32- and 64-bit words. Part of gpusim_sync.h.
//
// Any core may call them on any aligned word. Each is sequentially consistent, returns the value
// from before, and is one instruction where the instruction set has one (AArch64 from Armv8.1 on,
// which GPUSIM_GUEST_MARCH asks for). GCC's __atomic built-in functions do the same with a choice
// of weaker orders; gpusim_fetch_add_* and gpusim_count_u32 are in gpusim_guest.h.
#ifndef GPUSIM_ATOMIC_H
#define GPUSIM_ATOMIC_H

#include "gpusim_guest.h"

#define GPUSIM_FETCH(operation, suffix, type)                                       \
  static inline type gpusim_fetch_##operation##_##suffix(type* place, type value) { \
    return __atomic_fetch_##operation(place, value, __ATOMIC_SEQ_CST);              \
  }
// uint32_t gpusim_fetch_sub_u32(uint32_t* place, uint32_t value), and so on
GPUSIM_FETCH(sub, u32, uint32_t)
GPUSIM_FETCH(sub, u64, uint64_t)
GPUSIM_FETCH(and, u32, uint32_t)
GPUSIM_FETCH(and, u64, uint64_t)
GPUSIM_FETCH(or, u32, uint32_t)
GPUSIM_FETCH(or, u64, uint64_t)
GPUSIM_FETCH(xor, u32, uint32_t)
GPUSIM_FETCH(xor, u64, uint64_t)
#undef GPUSIM_FETCH

// gpusim_fetch_min_u32, _i32, _u64, _i64 and gpusim_fetch_max_...: the smaller (or larger) of the
// two values is left in *place.
#define GPUSIM_FETCH_IF(name, type, better)                                         \
  static inline type gpusim_fetch_##name(type* place, type value) {                 \
    type before = __atomic_load_n(place, __ATOMIC_SEQ_CST);                         \
    while (value better before &&                                                   \
           !__atomic_compare_exchange_n(place, &before, value, 0, __ATOMIC_SEQ_CST, \
                                        __ATOMIC_SEQ_CST)) {                        \
    }                                                                               \
    return before;                                                                  \
  }
#ifndef GPUSIM_ISA_HAS_FETCH_MIN_MAX_32
GPUSIM_FETCH_IF(min_u32, uint32_t, <)
GPUSIM_FETCH_IF(max_u32, uint32_t, >)
GPUSIM_FETCH_IF(min_i32, int32_t, <)
GPUSIM_FETCH_IF(max_i32, int32_t, >)
#endif
#ifndef GPUSIM_ISA_HAS_FETCH_MIN_MAX_64
GPUSIM_FETCH_IF(min_u64, uint64_t, <)
GPUSIM_FETCH_IF(max_u64, uint64_t, >)
GPUSIM_FETCH_IF(min_i64, int64_t, <)
GPUSIM_FETCH_IF(max_i64, int64_t, >)
#endif
#undef GPUSIM_FETCH_IF

// Puts `value` into *place.
static inline uint32_t gpusim_exchange_u32(uint32_t* place, uint32_t value) {
  return __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST);
}
static inline uint64_t gpusim_exchange_u64(uint64_t* place, uint64_t value) {
  return __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST);
}

// Puts `desired` into *place if `expected` is there. It did if it returns `expected`.
static inline uint32_t gpusim_compare_and_swap_u32(uint32_t* place, uint32_t expected,
                                                   uint32_t desired) {
  __atomic_compare_exchange_n(place, &expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
static inline uint64_t gpusim_compare_and_swap_u64(uint64_t* place, uint64_t expected,
                                                   uint64_t desired) {
  __atomic_compare_exchange_n(place, &expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

// Sets *flag to 1; returns whether it was set before. One core of many that call it gets 0.
static inline int gpusim_test_and_set(uint32_t* flag) {
  return __atomic_exchange_n(flag, 1, __ATOMIC_SEQ_CST) != 0;
}
static inline void gpusim_clear(uint32_t* flag) { __atomic_store_n(flag, 0, __ATOMIC_SEQ_CST); }

// Loads that acquire and stores that release: what the core that stores wrote before, the core that
// loads the stored value sees after. For flags that tell other cores that data is ready.
static inline uint32_t gpusim_load_u32(const uint32_t* place) {
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}
static inline uint64_t gpusim_load_u64(const uint64_t* place) {
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}
static inline void gpusim_store_u32(uint32_t* place, uint32_t value) {
  __atomic_store_n(place, value, __ATOMIC_RELEASE);
}
static inline void gpusim_store_u64(uint64_t* place, uint64_t value) {
  __atomic_store_n(place, value, __ATOMIC_RELEASE);
}

#endif  // GPUSIM_ATOMIC_H
