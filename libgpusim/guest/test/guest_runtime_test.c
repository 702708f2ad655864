// Tests the guest runtime on as many cores as there are: barrier, lock, atomics, arguments, memory
// functions, text. To be run with the arguments: some "two words". Exit status 0 if all is right.
#include "gpusim_guest.h"

enum { kMaxCores = 65536, kRounds = 20 };

static uint32_t failures;
static uint32_t arrivals[kMaxCores];
static uint32_t lock_depth;
static uint32_t locked_total;
static uint32_t signal_place;
static uint32_t cores_seen;
static uint64_t wide_total;
static gpusim_lock_t lock;

static void check(int right, const char* what) {
  if (right) return;
  gpusim_line_t line;
  gpusim_line_start(&line);
  gpusim_line_str(&line, "FAILED on core ");
  gpusim_line_u64(&line, gpusim_core_id());
  gpusim_line_str(&line, ": ");
  gpusim_line_str(&line, what);
  gpusim_line_write(&line, GPUSIM_STDERR);
  gpusim_count_u32(&failures, 1);
}

static int same_text(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

static void test_barrier(uint32_t id, uint32_t count) {
  for (uint32_t round = 1; round <= kRounds; ++round) {
    // Plain stores: the barrier must make them visible.
    arrivals[id] = round;
    gpusim_barrier();
    check(arrivals[(id + 1) % count] == round, "barrier let a core through before its neighbour");
    check(arrivals[(id + count - 1) % count] == round, "barrier let a core through too early");
    gpusim_barrier();
  }
}

static void test_lock(uint32_t count) {
  const uint32_t rounds = count > 64 ? 2 : 8;
  for (uint32_t i = 0; i < rounds; ++i) {
    gpusim_lock(&lock);
    check(lock_depth == 0, "two cores hold the lock");
    lock_depth = 1;
    ++locked_total;
    lock_depth = 0;
    gpusim_unlock(&lock);
  }
  gpusim_barrier();
  check(locked_total == rounds * count, "an addition under the lock was lost");
}

static void test_atomics(uint32_t id, uint32_t count) {
  gpusim_fetch_add_u64(&wide_total, UINT64_C(0x100000000) + id);
  const uint32_t before = gpusim_fetch_add_u32(&cores_seen, 1);
  check(before < count, "fetch_add returned more than the number of cores");
  gpusim_barrier();
  check(cores_seen == count, "a 32-bit atomic addition was lost");
  const uint64_t ids = (uint64_t)count * (count - 1) / 2;
  check(wide_total == UINT64_C(0x100000000) * count + ids, "a 64-bit atomic addition was lost");
}

static void test_wait(uint32_t id, uint32_t count) {
  // The last core wakes the others, one value after another.
  for (uint32_t value = 1; value <= 3; ++value) {
    if (id == count - 1) {
      __atomic_store_n(&signal_place, value, __ATOMIC_RELEASE);
      gpusim_wake_all();
    } else {
      gpusim_wait_while_equal(&signal_place, value - 1);
      check(__atomic_load_n(&signal_place, __ATOMIC_RELAXED) == value, "woke at a wrong value");
    }
    gpusim_barrier();
  }
}

static void test_start(uint32_t id, uint32_t count) {
  check(id < count, "core number out of range");
  check(gpusim_argc() == 3, "argc; run me with the arguments: some \"two words\"");
  if (gpusim_argc() == 3) {
    check(same_text(gpusim_argv()[1], "some"), "argv[1]");
    check(same_text(gpusim_argv()[2], "two words"), "argv[2]");
  }
  check(gpusim_argv()[gpusim_argc()] == 0, "argv has no end");
  const uint64_t at_page_size = 6;
  const uint64_t page_size = gpusim_auxval(at_page_size, 0);
  check(page_size != 0 && (page_size & (page_size - 1)) == 0, "auxv: page size");
  check(gpusim_auxval(UINT64_C(0x123456789), 77) == 77, "auxv: an entry that is not there");
  check(gpusim_auxval(GPUSIM_AT_CORE_ID, id) == id, "auxv: core number");
  check(gpusim_auxval(GPUSIM_AT_CORE_COUNT, count) == count, "auxv: core count");
  // A stack of one's own, large enough for real work.
  volatile uint32_t mine[4096];
  for (uint32_t i = 0; i < 4096; ++i) mine[i] = id + i;
  gpusim_barrier();
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < 4096; ++i) wrong += mine[i] != id + i;
  check(wrong == 0, "another core wrote to this core's stack");
}

static void test_memory(uint32_t id) {
  unsigned char a[64];
  unsigned char b[64];
  // The compiler must not know the sizes, or it would not call the functions under test.
  volatile size_t size = 64;
  for (uint32_t from = 0; from < 9; ++from) {
    for (uint32_t to = 0; to < 9; ++to) {
      for (uint32_t i = 0; i < 64; ++i) a[i] = (unsigned char)(i * 7 + id), b[i] = 0xee;
      size = 41;
      __builtin_memcpy(b + to, a + from, size);
      uint32_t wrong = 0;
      for (uint32_t i = 0; i < 64; ++i) {
        const int copied = i >= to && i < to + 41;
        wrong += b[i] != (copied ? (unsigned char)((i - to + from) * 7 + id) : 0xee);
      }
      check(wrong == 0, "memcpy");
      __builtin_memmove(a + to, a + from, size);
      check(__builtin_memcmp(a + to, b + to, size) == 0, "memmove, memcmp");
      __builtin_memset(b + to, 0x5a, size);
      wrong = 0;
      for (uint32_t i = 0; i < 64; ++i) wrong += (b[i] == 0x5a) != (i >= to && i < to + 41);
      check(wrong == 0, "memset");
    }
  }
  b[3] = 1;
  a[3] = 2;
  size = 4;
  check(__builtin_memcmp(b + 3, a + 3, size) < 0, "memcmp order");
}

static void test_text(void) {
  gpusim_line_t line;
  gpusim_line_start(&line);
  gpusim_line_u64(&line, 0);
  gpusim_line_str(&line, " ");
  gpusim_line_u64(&line, UINT64_MAX);
  gpusim_line_str(&line, " ");
  gpusim_line_i64(&line, INT64_MIN);
  gpusim_line_str(&line, " ");
  gpusim_line_hex(&line, 0xbeef, 6);
  gpusim_line_str(&line, " ");
  gpusim_line_f64(&line, -3.14159, 3);
  gpusim_line_str(&line, " ");
  gpusim_line_f64(&line, 2.999, 1);
  gpusim_line_str(&line, " ");
  gpusim_line_f64(&line, 7.5, 0);
  line.text[line.length] = 0;
  check(same_text(line.text, "0 18446744073709551615 -9223372036854775808 00beef -3.142 3.0 8"),
        "numbers as text");
  for (int i = 0; i < 100; ++i) gpusim_line_str(&line, "long ");
  check(line.length == sizeof line.text - 1, "a line that is too long is not cut off");
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();
  test_start(id, count);
  test_barrier(id, count);
  test_atomics(id, count);
  test_lock(count);
  test_wait(id, count);
  if (id % 61 == 0) test_memory(id);
  test_text();
  gpusim_barrier();
  if (id == 0 && failures == 0) gpusim_puts("guest runtime: ok\n");
  return failures == 0 ? 0 : 1;
}
