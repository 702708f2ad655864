// Barriers, broadcasts and reductions, of the chip and of groups, on as many cores as there are.
#include "check.h"

enum { kMaxCores = 65536, kMaxGroups = 8, kRounds = 10 };

static uint32_t generation[kMaxCores];
static gpusim_group_t groups[kMaxGroups];
static uint32_t last_ones[kMaxGroups];

// ---- Barriers

// Group g has the cores whose number leaves the remainder g: none adjacent, sizes that differ.
static uint32_t members_of(uint32_t g, uint32_t count, uint32_t n) {
  return (count - g + n - 1) / n;
}

static void test_group_barriers(uint32_t id, uint32_t count) {
  const uint32_t n = count < kMaxGroups ? count : kMaxGroups;
  if (id < n) gpusim_group_init(&groups[id], members_of(id, count, n));
  gpusim_barrier();
  gpusim_group_t* const group = &groups[id % n];
  const uint32_t neighbour = id + n < count ? id + n : id % n;
  // The groups go different numbers of rounds, so they cannot run in step.
  const uint32_t rounds = kRounds + id % n;
  for (uint32_t round = 1; round <= rounds; ++round) {
    generation[id] = round;  // plain: the barrier must make it visible
    uint32_t was_last = 0;
    if (round % 2 == 0) {
      was_last = (uint32_t)gpusim_group_barrier(group);
    } else {
      const uint32_t ticket = gpusim_group_arrive(group);
      gpusim_group_depart(group, ticket);
    }
    CHECK(generation[neighbour] == round, "a group's barrier let a core through");
    if (was_last) ++last_ones[id % n];  // plain: one core, and barriers in between
    gpusim_group_barrier(group);
  }
  gpusim_barrier();
  CHECK(last_ones[id % n] == rounds / 2, "not one core was the last one at a barrier");
  gpusim_barrier();
}

static void test_chip_barrier(uint32_t id, uint32_t count) {
  for (uint32_t round = 100; round < 100 + kRounds; ++round) {
    generation[id] = round;
    gpusim_barrier();
    CHECK(generation[(id + 1) % count] == round, "a barrier let a core through");
    CHECK(generation[(id + count / 2) % count] == round, "a barrier let a core through");
    gpusim_barrier();
  }
}

// ---- Integers

static void test_integers(uint32_t id, uint32_t count) {
  const uint64_t n = count;
  const int64_t last = (int64_t)count - 1;
  for (uint32_t round = 0; round < 3; ++round) {
    CHECK(gpusim_sum_u64(id) == n * (n - 1) / 2, "sum_u64");
    CHECK(gpusim_sum_u64(UINT64_C(1) << 63) == (n % 2) << 63, "sum_u64 that wraps");
    CHECK(gpusim_sum_i64(-(int64_t)id) == -(last * (last + 1) / 2), "sum_i64");
    CHECK(gpusim_min_u64(n + id) == n, "min_u64");
    CHECK(gpusim_max_u64(n + id) == n + n - 1, "max_u64");
    CHECK(gpusim_min_i64(5 - (int64_t)id) == 5 - last, "min_i64");
    CHECK(gpusim_max_i64(-5 - (int64_t)id) == -5, "max_i64");
    CHECK(gpusim_min_i64(INT64_MAX) == INT64_MAX, "min_i64 of the largest");
    CHECK(gpusim_max_i64(INT64_MIN) == INT64_MIN, "max_i64 of the smallest");
    CHECK(gpusim_and_u64(~(UINT64_C(1) << id % 64)) == (n >= 64 ? 0 : UINT64_MAX << n), "and_u64");
    CHECK(gpusim_or_u64(UINT64_C(1) << id % 64) == ~(n >= 64 ? 0 : UINT64_MAX << n), "or_u64");
    gpusim_barrier();  // barriers and reductions mix
    const uint32_t root = (round * 13 + 5) % count;
    CHECK(gpusim_broadcast(root, id == root ? 1000 + round : 0) == 1000 + round, "broadcast");
  }
}

// ---- Floating point

static double power_of_two(int exponent) {
  double x = 1;
  for (; exponent > 0; --exponent) x *= 2;
  for (; exponent < 0; ++exponent) x /= 2;
  return x;
}

static uint64_t bits_of(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Sums whose exact value is known, with large terms that cancel: added up in any order in double
// precision, most of them would come out wrong.
static void test_sums(uint32_t id, uint32_t count) {
  const double huge = power_of_two(1000);
  const double tiny = power_of_two(-1074);
  const double one_more = 1 + power_of_two(-52);  // the next double after 1
  const uint32_t pairs = count / 2;

  CHECK(gpusim_sum_f64(0.0) == 0, "sum of zeroes");
  CHECK(bits_of(gpusim_sum_f64(-0.0)) == 0, "sum of negative zeroes");
  CHECK(gpusim_sum_f64(tiny) == count * tiny, "sum of the smallest doubles");
  CHECK(gpusim_sum_f64(-one_more) == -(double)count * one_more, "sum that is rounded once");
  CHECK(gpusim_sum_f64((double)id) == (double)count * (count - 1) / 2, "sum of integers");
  // Pairs cancel; what is left is far below.
  double mine = id < 2 * pairs ? (id % 2 == 0 ? huge : -huge) : 0;
  CHECK(gpusim_sum_f64(mine) == 0, "huge numbers that cancel");
  mine = id < 2 * pairs ? (id % 2 == 0 ? huge : -huge) : tiny;
  CHECK(gpusim_sum_f64(mine) == (count % 2) * tiny, "huge numbers that cancel, and the smallest");
  // 1 + 2^-53 + ..., which is half way between two doubles or a bit above.
  mine = id == 0 ? 1 : id == 1 ? power_of_two(-53) : id == 2 ? power_of_two(-1000) : 0;
  CHECK(gpusim_sum_f64(mine) == (count > 2 ? one_more : 1), "rounding to nearest even");
  mine = id == 0 ? one_more : id == 1 ? power_of_two(-53) : 0;
  CHECK(gpusim_sum_f64(mine) == (count > 1 ? 1 + power_of_two(-51) : one_more),
        "rounding to nearest even, upwards");
  // All bits set, and one more: the rounding carries into the exponent.
  mine = id == 0 ? 2 - power_of_two(-52) : id == 1 ? power_of_two(-53) : 0;
  CHECK(gpusim_sum_f64(mine) == (count > 1 ? 2 : 2 - power_of_two(-52)), "rounding that carries");
  // Every exponent, once positive and once negative.
  const double wave = power_of_two((int)(id / 2 % 2000) - 1000);
  mine = id < 2 * pairs ? (id % 2 == 0 ? wave : -wave) : 0;
  CHECK(gpusim_sum_f64(mine) == 0, "all exponents, cancelling");
  const double largest = (2 - power_of_two(-52)) * power_of_two(1023);
  const double infinity = largest * 2;
  CHECK(gpusim_sum_f64(largest) == (count == 1 ? largest : infinity), "overflow");
  CHECK(gpusim_sum_f64(-largest) == (count == 1 ? -largest : -infinity), "overflow below");
  mine = id == 0 ? infinity : 1;
  CHECK(gpusim_sum_f64(mine) == infinity, "infinity");
  CHECK(gpusim_sum_f64(-mine) == -infinity, "negative infinity");
  mine = id % 2 == 0 ? infinity : -infinity;
  const double mixed = gpusim_sum_f64(mine);
  CHECK(count == 1 ? mixed == infinity : mixed != mixed, "infinities of both signs");
  CHECK(gpusim_sum_f64(1.5) == 1.5 * count, "a sum after infinities");

  // float: a double would hold the sum; it must be rounded to float once.
  CHECK(gpusim_sum_f32(0.5f) == 0.5f * (float)count, "sum_f32");
  const float ulp = (float)power_of_two(-23);
  // 1 + ulp / 2 + 2^-60: in double precision the last term is lost and the half is rounded to even.
  float small = id == 0 ? 1.0f : id == 1 ? ulp / 2 : id == 2 ? (float)power_of_two(-60) : 0.0f;
  CHECK(gpusim_sum_f32(small) == (count > 2 ? 1.0f + ulp : 1.0f), "sum_f32 is rounded twice");
  small = (float)power_of_two(-149);
  CHECK(gpusim_sum_f32(small) == (float)count * small, "sum_f32 of the smallest");
}

// Against sums of integers: multiples of 2^-20 that add up to less than 2^53 of them.
static void test_random_sums(uint32_t id) {
  for (uint32_t round = 0; round < 5; ++round) {
    const int64_t mine = (int64_t)(test_random(id * 8 + round) >> (round * 5)) - (1 << 20);
    const double unit = power_of_two(-20);
    const double sum = (double)gpusim_sum_i64(mine) * unit;
    CHECK(gpusim_sum_f64((double)mine * unit) == sum, "random sum_f64");
  }
}

static void test_extremes(uint32_t id, uint32_t count) {
  const double nan = __builtin_nan("");
  const double infinity = __builtin_inf();
  const double mine = (double)id - 3;
  CHECK(gpusim_max_f64(mine) == (double)count - 4, "max_f64");
  CHECK(gpusim_min_f64(mine) == -3, "min_f64");
  CHECK(gpusim_max_f64(-1 - mine) == 2, "max_f64");
  CHECK(gpusim_min_f64(-mine) == 4 - (double)count, "min_f64 of negatives");
  CHECK(gpusim_max_f64(id == 0 ? 2 : nan) == 2, "max_f64 with NaNs");
  CHECK(gpusim_min_f64(id == 0 ? 2 : -nan) == 2, "min_f64 with NaNs");
  const double all_nan = gpusim_max_f64(nan);
  CHECK(all_nan != all_nan, "max_f64 of NaNs only");
  CHECK(gpusim_max_f64(id == 0 ? infinity : 1) == infinity, "max_f64 with infinity");
  CHECK(gpusim_max_f64(-infinity) == -infinity, "max_f64 of -infinity");
  CHECK(bits_of(gpusim_max_f64(id == 0 ? 0.0 : -0.0)) == 0, "max_f64 of zeroes");
  CHECK(bits_of(gpusim_min_f64(id == 0 ? -0.0 : 0.0)) == UINT64_C(1) << 63, "min_f64 of zeroes");
  CHECK(gpusim_max_f32((float)mine) == (float)count - 4, "max_f32");
  CHECK(gpusim_min_f32((float)mine) == -3, "min_f32");
}

// ---- Groups

static void test_group_reductions(uint32_t id, uint32_t count) {
  const uint32_t n = count < kMaxGroups ? count : kMaxGroups;
  gpusim_group_t* const group = &groups[id % n];
  const uint64_t members = members_of(id % n, count, n);
  const uint64_t rank = id / n;
  // As before, each group its own number of rounds.
  for (uint32_t round = 0; round < 3 + id % n; ++round) {
    CHECK(gpusim_group_sum_u64(group, rank) == members * (members - 1) / 2, "group: sum_u64");
    CHECK(gpusim_group_sum_f64(group, 0.1) == 0.1 * (double)members || members > 3,
          "group: sum_f64");
    CHECK(gpusim_group_max_u64(group, id) == (members - 1) * n + id % n, "group: max_u64");
    CHECK(gpusim_group_min_u64(group, id) == id % n, "group: min_u64");
    CHECK(gpusim_group_min_i64(group, -(int64_t)rank) == 1 - (int64_t)members, "group: min_i64");
    CHECK(gpusim_group_broadcast(group, rank == members / 2, id) == members / 2 * n + id % n,
          "group: broadcast");
  }
  gpusim_barrier();
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();
  if (count > kMaxCores) return 2;
  test_chip_barrier(id, count);
  test_group_barriers(id, count);
  test_integers(id, count);
  test_sums(id, count);
  test_random_sums(id);
  test_extremes(id, count);
  test_group_reductions(id, count);
  return test_finish("groups");
}
