// Groups of cores: barriers, broadcasts and reductions. Part of gpusim_sync.h.
//
// What is called gpusim_group_... concerns the cores of one group; the same without `group`
// concerns the whole chip. All members must call the same functions of a group in the same order; a
// call returns once all of them have made it, and what a member wrote before it all see after it.
// Each costs as much as one barrier: an atomic addition per core and a wait that ends for all at
// once; reductions and broadcasts cost one to three atomic operations per core more.
//
// The result of a reduction depends on the values only: not on timing, nor on the order of cores,
// nor, given the same values, on how many cores they came from. That holds for floating point, too:
// sums are exact and rounded once (to nearest, ties to even).
#ifndef GPUSIM_GROUP_H
#define GPUSIM_GROUP_H

#include "gpusim_guest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSIM_LINE __attribute__((aligned(64)))

// Digits of 32 bits that hold any sum of 2^31 doubles, from 2^-1074 on.
#define GPUSIM_EXACT_DIGITS 68

// A group. It knows how many it has, not which: any core may be a member, of several groups, too.
// Arrivals, what waiting cores watch, and values lie in separate cache lines.
typedef struct {
  GPUSIM_LINE uint32_t members;  // 0: all cores of the chip
  GPUSIM_LINE uint32_t arrived;
  GPUSIM_LINE uint32_t phase;
  GPUSIM_LINE uint64_t value;           // collects; 0 between reductions
  uint64_t result;                      // of the last one
  uint32_t special;                     // infinities and NaNs seen by a sum
  uint64_t digit[GPUSIM_EXACT_DIGITS];  // of a sum of doubles, each a signed number
} gpusim_group_t;

// Static groups: gpusim_group_t g = GPUSIM_GROUP_INIT(members). Others: gpusim_group_init, by one
// core, and a barrier (of other kind) before the first use.
#define GPUSIM_GROUP_INIT(members)  \
  {                                 \
    (members), 0, 0, 0, 0, 0, { 0 } \
  }
void gpusim_group_init(gpusim_group_t* group, uint32_t members);

// All cores of the chip. gpusim_barrier() is its barrier.
extern gpusim_group_t gpusim_chip;

// ---- Barrier -------------------------------------------------------------------------------

// Returns 1 on one of the members, the last to arrive, and 0 on the others.
int gpusim_group_barrier(gpusim_group_t* group);

// In two parts, to do something useful in between: arrive() does not wait; what it returns goes to
// depart(), which waits for the others' arrival.
uint32_t gpusim_group_arrive(gpusim_group_t* group);
void gpusim_group_depart(gpusim_group_t* group, uint32_t ticket);

// ---- Broadcast -----------------------------------------------------------------------------

// All get the value of the one member whose `is_root` is not 0.
uint64_t gpusim_group_broadcast(gpusim_group_t* group, int is_root, uint64_t value);

// All get the value of core number `root`.
static inline uint64_t gpusim_broadcast(uint32_t root, uint64_t value) {
  return gpusim_group_broadcast(&gpusim_chip, gpusim_core_id() == root, value);
}

// ---- Reductions ----------------------------------------------------------------------------

// Integers: sums wrap around. Narrower types convert by themselves.
// Floating point: min and max leave NaNs out, unless there is nothing else, and put -0 below +0. A
// sum with a NaN, or with infinities of both signs, is NaN; a sum of nothing but zeroes is +0.
uint64_t gpusim_group_sum_u64(gpusim_group_t* group, uint64_t value);
uint64_t gpusim_group_or_u64(gpusim_group_t* group, uint64_t value);
uint64_t gpusim_group_max_u64(gpusim_group_t* group, uint64_t value);
double gpusim_group_sum_f64(gpusim_group_t* group, double value);
float gpusim_group_sum_f32(gpusim_group_t* group, float value);
double gpusim_group_max_f64(gpusim_group_t* group, double value);

static inline uint64_t gpusim_group_and_u64(gpusim_group_t* group, uint64_t value) {
  return ~gpusim_group_or_u64(group, ~value);
}
static inline uint64_t gpusim_group_min_u64(gpusim_group_t* group, uint64_t value) {
  return ~gpusim_group_max_u64(group, ~value);
}
static inline int64_t gpusim_group_sum_i64(gpusim_group_t* group, int64_t value) {
  return (int64_t)gpusim_group_sum_u64(group, (uint64_t)value);
}
static inline int64_t gpusim_group_max_i64(gpusim_group_t* group, int64_t value) {
  const uint64_t sign = UINT64_C(1) << 63;  // makes the order of signed numbers that of unsigned
  return (int64_t)(gpusim_group_max_u64(group, (uint64_t)value ^ sign) ^ sign);
}
static inline int64_t gpusim_group_min_i64(gpusim_group_t* group, int64_t value) {
  return ~gpusim_group_max_i64(group, ~value);
}
static inline double gpusim_group_min_f64(gpusim_group_t* group, double value) {
  return -gpusim_group_max_f64(group, -value);
}
static inline float gpusim_group_max_f32(gpusim_group_t* group, float value) {
  return (float)gpusim_group_max_f64(group, (double)value);
}
static inline float gpusim_group_min_f32(gpusim_group_t* group, float value) {
  return (float)gpusim_group_min_f64(group, (double)value);
}

#define GPUSIM_CHIP_REDUCTION(operation, suffix, type)               \
  static inline type gpusim_##operation##_##suffix(type value) {     \
    return gpusim_group_##operation##_##suffix(&gpusim_chip, value); \
  }
// uint64_t gpusim_sum_u64(uint64_t value), and so on
GPUSIM_CHIP_REDUCTION(sum, u64, uint64_t)
GPUSIM_CHIP_REDUCTION(min, u64, uint64_t)
GPUSIM_CHIP_REDUCTION(max, u64, uint64_t)
GPUSIM_CHIP_REDUCTION(and, u64, uint64_t)
GPUSIM_CHIP_REDUCTION(or, u64, uint64_t)
GPUSIM_CHIP_REDUCTION(sum, i64, int64_t)
GPUSIM_CHIP_REDUCTION(min, i64, int64_t)
GPUSIM_CHIP_REDUCTION(max, i64, int64_t)
GPUSIM_CHIP_REDUCTION(sum, f64, double)
GPUSIM_CHIP_REDUCTION(min, f64, double)
GPUSIM_CHIP_REDUCTION(max, f64, double)
GPUSIM_CHIP_REDUCTION(sum, f32, float)
GPUSIM_CHIP_REDUCTION(min, f32, float)
GPUSIM_CHIP_REDUCTION(max, f32, float)
#undef GPUSIM_CHIP_REDUCTION

#ifdef __cplusplus
}
#endif

#endif  // GPUSIM_GROUP_H
