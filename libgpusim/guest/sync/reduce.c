// Reductions and broadcasts. Each member adds its value to the group's cells; the last to arrive
// makes the result of them and clears them, while the others wait, and opens the barrier. Cells of
// value 0 are therefore where every reduction starts, so all of them are made of operations whose
// neutral element is 0.
#include "barrier.h"
#include "gpusim_atomic.h"

static uint64_t bits_of(double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double double_of(uint64_t bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// The result stays as it is until all have arrived at the group's next reduction.
static uint64_t finish(gpusim_group_t* group, uint64_t (*conclude)(gpusim_group_t*)) {
  uint32_t phase;
  if (gpusim_arrive_last(group, &phase)) {
    group->result = conclude == 0 ? group->value : conclude(group);
    group->value = 0;
    gpusim_open_barrier(group, phase);
  } else {
    gpusim_wait_while_equal(&group->phase, phase);
  }
  gpusim_time_acquire(group, phase);
  return group->result;
}

uint64_t gpusim_group_broadcast(gpusim_group_t* group, int is_root, uint64_t value) {
  if (is_root) group->value = value;
  return finish(group, 0);
}

// ---- Integers --------------------------------------------------------------------------------

uint64_t gpusim_group_sum_u64(gpusim_group_t* group, uint64_t value) {
  __atomic_fetch_add(&group->value, value, __ATOMIC_RELAXED);
  return finish(group, 0);
}

uint64_t gpusim_group_or_u64(gpusim_group_t* group, uint64_t value) {
  __atomic_fetch_or(&group->value, value, __ATOMIC_RELAXED);
  return finish(group, 0);
}

uint64_t gpusim_group_max_u64(gpusim_group_t* group, uint64_t value) {
  gpusim_fetch_max_u64(&group->value, value);
  return finish(group, 0);
}

// ---- Maximum of doubles ----------------------------------------------------------------------

static const uint64_t kSign = UINT64_C(1) << 63;
static const uint64_t kInfinity = UINT64_C(0x7ff) << 52;
static const uint64_t kNan = UINT64_C(0xfff) << 51;  // the quiet one without sign

double gpusim_group_max_f64(gpusim_group_t* group, double value) {
  // Keys in the order of the numbers; a NaN is 0, below all of them.
  const uint64_t bits = bits_of(value);
  uint64_t key = (bits & kSign) != 0 ? ~bits : bits | kSign;
  if ((bits & ~kSign) > kInfinity) key = 0;
  key = gpusim_group_max_u64(group, key);
  if (key == 0) return double_of(kNan);
  return double_of((key & kSign) != 0 ? key & ~kSign : ~key);
}

// ---- Sum of doubles --------------------------------------------------------------------------
// The sum is kept exactly, as a number with digits of 32 bits, the first worth 2^-1074 (see Kulisch
// and Miranker, "The arithmetic of the digital computer", 1986). A double fills three digits at
// most. A digit is a signed 64-bit number, so 2^31 members can add to it before a carry is due:
// adding is three atomic additions, in any order.

enum { kPlusInfinity = 1, kMinusInfinity = 2, kNotANumber = 4, kFractionBits = 52 };

static void add_exactly(gpusim_group_t* group, double value) {
  const uint64_t bits = bits_of(value);
  const uint32_t exponent = (uint32_t)(bits >> kFractionBits) & 0x7ff;
  const uint64_t fraction = bits & ((UINT64_C(1) << kFractionBits) - 1);
  if (exponent == 0x7ff) {
    const uint32_t what = fraction != 0         ? kNotANumber
                          : (bits & kSign) != 0 ? kMinusInfinity
                                                : kPlusInfinity;
    __atomic_fetch_or(&group->special, what, __ATOMIC_RELAXED);
    return;
  }
  // The value is significand * 2^(place - 1074).
  const uint64_t significand = exponent == 0 ? fraction : fraction | UINT64_C(1) << kFractionBits;
  const uint32_t place = exponent == 0 ? 0 : exponent - 1;
  const uint32_t shift = place % 32;
  const uint64_t low = significand << shift;
  const uint64_t high = significand >> 1 >> (63 - shift);  // what `low` has lost
  const uint64_t digits[3] = {low & UINT32_MAX, low >> 32, high};
  uint64_t* const at = &group->digit[place / 32];
  const uint64_t minus = 0 - (bits >> 63);  // all ones if negative
  for (int i = 0; i < 3; ++i) {
    __atomic_fetch_add(&at[i], (digits[i] ^ minus) - minus, __ATOMIC_RELAXED);
  }
}

// Makes digits of 0 .. 2^32 - 1 and returns the sign, 1 if negative.
static int normalise(uint64_t* digit) {
  uint64_t carry = 0;
  for (int i = 0; i < GPUSIM_EXACT_DIGITS; ++i) {
    const uint64_t sum = digit[i] + carry;
    digit[i] = sum & UINT32_MAX;
    carry = (uint64_t)((int64_t)sum >> 32);
  }
  if (carry == 0) return 0;
  // The number is negative: what is there is its complement.
  carry = 1;
  for (int i = 0; i < GPUSIM_EXACT_DIGITS; ++i) {
    const uint64_t sum = (digit[i] ^ UINT32_MAX) + carry;
    digit[i] = sum & UINT32_MAX;
    carry = sum >> 32;
  }
  return 1;
}

// The exact sum as a double. What does not fit in 53 bits is rounded to nearest or, with `to_odd`,
// cut off and noted in the last bit: so that one more rounding, to fewer bits, comes out as if it
// were the only one (Boldo and Melquiond, "When double rounding is odd", 2005).
static uint64_t round_sum(gpusim_group_t* group, int to_odd) {
  uint64_t* const digit = group->digit;
  const int negative = normalise(digit);
  int top = GPUSIM_EXACT_DIGITS - 1;
  while (top > 0 && digit[top] == 0) --top;
  // The top 64 bits, and whether anything is below them.
  uint64_t bits = digit[top] << 32 | (top >= 1 ? digit[top - 1] : 0);
  uint64_t sticky = 0;
  for (int i = 0; i < top - 2; ++i) sticky |= digit[i];
  uint64_t result;
  // Number of the highest bit; bit 0 is worth 2^-1074.
  const int lead = bits == 0 ? 0 : 63 - __builtin_clzll(bits) + 32 * (top - 1);
  if (lead <= kFractionBits) {
    result = digit[0] | digit[1] << 32;  // exact; its bits are those of the double
  } else {
    const int shift = __builtin_clzll(bits);
    bits <<= shift;
    if (top >= 2) {
      bits |= digit[top - 2] >> (32 - shift);
      sticky |= digit[top - 2] << shift & UINT32_MAX;
    }
    const uint64_t lost = bits << 53;  // 11 bits below the 53 that stay
    uint64_t kept = bits >> 11;
    if (to_odd) {
      kept |= (lost | sticky) != 0;
    } else {
      const uint64_t half = UINT64_C(1) << 63;
      const int up = lost > half || (lost == half && (sticky != 0 || (kept & 1) != 0));
      kept += (uint64_t)up;
    }
    // The exponent counts from 1 at a leading bit number 52; the leading 1 of `kept` adds 1 to it.
    result = ((uint64_t)(lead - kFractionBits) << kFractionBits) + kept;
    if (result > kInfinity) result = kInfinity;
  }
  for (int i = 0; i < GPUSIM_EXACT_DIGITS; ++i) digit[i] = 0;
  const uint32_t special = group->special;
  group->special = 0;
  if (special == kPlusInfinity) return kInfinity;
  if (special == kMinusInfinity) return kInfinity | kSign;
  if (special != 0) return kNan;
  return negative ? result | kSign : result;
}

static uint64_t round_to_nearest(gpusim_group_t* group) { return round_sum(group, 0); }
static uint64_t round_to_odd(gpusim_group_t* group) { return round_sum(group, 1); }

double gpusim_group_sum_f64(gpusim_group_t* group, double value) {
  add_exactly(group, value);
  return double_of(finish(group, round_to_nearest));
}

float gpusim_group_sum_f32(gpusim_group_t* group, float value) {
  add_exactly(group, (double)value);
  return (float)double_of(finish(group, round_to_odd));
}
