// Programs whose accesses are known; the first argument says which, the others how much.
#include "gpusim_sync.h"

enum { kLine = 64, kMostCores = 1024 };

static uint64_t number(int i) {
  uint64_t value = 0;
  if (i >= gpusim_argc()) return 0;
  for (const char* c = gpusim_argv()[i]; *c; ++c) value = 10 * value + (uint64_t)(*c - '0');
  return value;
}
static int is_word(int i, const char* name) {
  const char* word = gpusim_argv()[i];
  while (*word && *word == *name) ++word, ++name;
  return *word == *name;
}
static int is(const char* name) { return is_word(1, name); }

// A ring of pointers, `step` bytes apart: each load needs the one before.
static char* ring[(1 << 23) / sizeof(char*)];
__attribute__((noinline)) static char** chase(char** at, uint64_t loads) {
  for (; loads > 0; --loads) at = (char**)*at;
  return at;
}
static void pointer_chase(uint64_t bytes, uint64_t step, uint64_t loads) {
  if (gpusim_core_id() != 0) return;
  const uint64_t words = bytes / sizeof(char*), by = step / sizeof(char*);
  for (uint64_t i = 0; i < words; i += by) ring[i] = (char*)&ring[(i + by) % words];
  gpusim_roi_begin();
  char** end = chase(ring, loads);
  gpusim_roi_end();
  if (*end == 0) gpusim_exit(1);
}

// Each core reads a part of an array once.
static uint64_t array[1 << 20];
static void stream(uint64_t words) {
  const uint64_t cores = gpusim_core_count(), each = words / cores;
  const volatile uint64_t* mine = array + gpusim_core_id() * each;
  gpusim_barrier();
  gpusim_roi_begin();
  uint64_t sum = 0;
  for (uint64_t i = 0; i < each; i += 8) sum += mine[i];
  gpusim_barrier();
  gpusim_roi_end();
  if (sum != 0) gpusim_exit(1);
}

// The same, and nothing is done with what was read.
static void stream_ahead(uint64_t words) {
  const uint64_t cores = gpusim_core_count(), each = words / cores;
  const uint64_t* mine = array + gpusim_core_id() * each;
  gpusim_barrier();
  gpusim_roi_begin();
  for (uint64_t i = 0; i < each; i += 32)
    __asm__ volatile("ldr x2, [%0]\nldr x3, [%0, #64]\nldr x4, [%0, #128]\nldr x5, [%0, #192]"
                     :
                     : "r"(mine + i)
                     : "x2", "x3", "x4", "x5", "memory");
  gpusim_barrier();
  gpusim_roi_end();
}

// Counters beside each other, or a line apart.
static struct { volatile uint64_t at[kMostCores * 8]; } __attribute__((aligned(64))) counters;
__attribute__((noinline)) static void count_up(volatile uint64_t* mine, uint64_t rounds) {
  for (; rounds > 0; --rounds) *mine += 1;
}
static void count(uint64_t rounds, uint64_t apart) {
  gpusim_barrier();
  gpusim_roi_begin();
  count_up(&counters.at[gpusim_core_id() * apart], rounds);
  gpusim_barrier();
  gpusim_roi_end();
}

// All cores take one lock, or each its own; in it, work.
static gpusim_lock_t lock[kMostCores];
static gpusim_mutex_t mutex;
static gpusim_spinlock_t spin;
static uint64_t shared_count;
__attribute__((noinline)) static void work(uint64_t n) {
  for (; n > 0; --n) __asm__ volatile("" ::: "memory");
}
static void locks(uint64_t rounds, uint64_t length, uint64_t own, uint64_t kind) {
  gpusim_lock_t* mine = &lock[own ? gpusim_core_id() : 0];
  gpusim_barrier();
  gpusim_roi_begin();
  for (uint64_t i = 0; i < rounds; ++i) {
    if (kind == 0) gpusim_lock(mine);
    if (kind == 1) gpusim_mutex_lock(&mutex);
    if (kind == 2) gpusim_spin_lock(&spin);
    work(length);
    if (!own) shared_count += 1;
    if (kind == 0) gpusim_unlock(mine);
    if (kind == 1) gpusim_mutex_unlock(&mutex);
    if (kind == 2) gpusim_spin_unlock(&spin);
  }
  gpusim_barrier();
  gpusim_roi_end();
  if (!own && shared_count != rounds * gpusim_core_count()) gpusim_exit(1);
}

// One core after the other: each waits until the word is its number.
static uint32_t turn;
static void relay(uint64_t length) {
  gpusim_wait_until_equal(&turn, gpusim_core_id());
  work(length);
  __atomic_store_n(&turn, gpusim_core_id() + 1, __ATOMIC_RELEASE);
}

// All but one wait for a word that never comes, until that one ends the program.
static void leave(uint64_t length) {
  if (gpusim_core_id() != 0) gpusim_wait_until_equal(&turn, 1);
  work(length);
  gpusim_exit_all(0);
}

// Accesses of several kinds that depend on nobody else.
static void mixed(uint64_t rounds) {
  uint64_t x = gpusim_core_id() * 2654435761u + 88172645463325252u, sum = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    sum += ((volatile unsigned char*)array)[x % (1 << 16)];
    if ((x >> 20) % 4 == 0) ((volatile uint64_t*)array)[(x >> 30) % (1 << 13)] = i;
    if (i % 256 == 255) gpusim_barrier();
  }
  array[(1 << 19) + gpusim_core_id()] = sum & 0;
}

// Rounds of instructions of which it is known what they wait for, with two more that count them.
#define STREAM(name, ...)                                                               \
  __attribute__((noinline)) static void stream_##name(uint64_t rounds) {                \
    uint64_t at = (uint64_t)&at;                                                        \
    register uint64_t x0 __asm__("x0") = (uint64_t)&at, n __asm__("x9") = rounds;       \
    __asm__ volatile("mov x1, #3\n1:\n" __VA_ARGS__ "\nsub x9, x9, #1\ncbnz x9, 1b"     \
                     : "+r"(x0), "+r"(n)                                                \
                     :                                                                  \
                     : "x1", "x2", "x3", "x4", "x5", "x6", "v0", "v1", "v2", "memory"); \
  }
#define TIMES(n, insns) ".rept " #n "\n" insns "\n.endr"
STREAM(multiply, TIMES(32, "mul x2, x2, x1"))
STREAM(multiplies, TIMES(8, "mul x2, x0, x1\nmul x3, x0, x1\nmul x4, x0, x1\nmul x5, x0, x1"))
STREAM(two, TIMES(16, "mul x2, x2, x1\nmul x3, x3, x1"))
STREAM(branches, TIMES(8, "mul x2, x2, x1\nb 2f\nnop\n2:"))
STREAM(doubles, TIMES(32, "fadd d0, d0, d1"))
STREAM(load, TIMES(32, "ldr x0, [x0]"))
STREAM(loads, TIMES(32, "ldr x2, [x0]"))
STREAM(uses, TIMES(8, "ldr x2, [x0]\nadd x3, x4, x5\nadd x6, x2, x2"))
STREAM(adds, TIMES(32, "add x2, x2, x1"))
static void stream_of(uint64_t rounds) {
  gpusim_roi_begin();
  if (is_word(2, "multiply")) stream_multiply(rounds);
  if (is_word(2, "multiplies")) stream_multiplies(rounds);
  if (is_word(2, "two")) stream_two(rounds);
  if (is_word(2, "branches")) stream_branches(rounds);
  if (is_word(2, "doubles")) stream_doubles(rounds);
  if (is_word(2, "load")) stream_load(rounds);
  if (is_word(2, "loads")) stream_loads(rounds);
  if (is_word(2, "uses")) stream_uses(rounds);
  if (is_word(2, "adds")) stream_adds(rounds);
  gpusim_roi_end();
}

int gpusim_main(void) {
  if (is("chase")) pointer_chase(number(2), number(3), number(4));
  if (is("stream")) stream(number(2));
  if (is("ahead")) stream_ahead(number(2));
  if (is("count")) count(number(2), number(3));
  if (is("locks")) locks(number(2), number(3), number(4), number(5));
  if (is("relay")) relay(number(2));
  if (is("leave")) leave(number(2));
  if (is("mixed")) mixed(number(2));
  if (is("pipeline")) stream_of(number(3));
  return 0;
}
