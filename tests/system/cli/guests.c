/* Functions that the command-line tests call on many cores by --entry; one file, no C library. */
#include <stdint.h>

__attribute__((always_inline)) static inline long call6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
#define CALL3(number, a, b, c) call6(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)
enum { WRITE = 64, EXIT = 93, EXIT_GROUP = 94, FUTEX = 98, NANOSLEEP = 101, CLONE = 220 };

static uint32_t core_id(void) {
  uint64_t word;
  __asm__("mrs %0, tpidrro_el0" : "=r"(word));
  return (uint32_t)word;
}

static volatile uint32_t flag;
static volatile uint32_t counter;
double numbers[4] = {1.0, 2.0, 3.0, 4.0};

static void print_number(uint64_t value) {
  char text[21];
  int at = 20;
  text[at] = '\n';
  do {
    text[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  CALL3(WRITE, 1, text + at, 21 - at);
}

/* As a process: 'x', and core 7 fails with 9, core 9 with 4. */
void _start(void) {
  CALL3(WRITE, 1, "x", 1);
  const uint32_t id = core_id();
  CALL3(EXIT, id == 7 ? 9 : id == 9 ? 4 : 0, 0, 0);
  __builtin_trap();
}

void show_sum(int64_t a, int64_t b, double c, const double* d, int64_t core, int64_t cores) {
  print_number((uint64_t)(a + b + (int64_t)c + (int64_t)d[3] + core * 100 + cores * 10000));
}

/* One of Armv8.1, which Capstone 4 does not know. */
uint32_t add_atomically(uint32_t* place, uint32_t n) {
  uint32_t old;
  __asm__ volatile(".arch_extension lse\n\tldaddal %w1, %w0, [%2]"
                   : "=r"(old) : "r"(n), "r"(place) : "memory");
  return old;
}

void exit_with_core(int core) { CALL3(EXIT, core, 0, 0); }
void fault_by_core(int core) {
  if (core % 3 == 1) *(volatile int*)8;
  if (core % 3 == 2) __asm__ volatile(".inst 0");
}
void fifth_ends_all(int core) {
  if (core == 5) CALL3(EXIT_GROUP, 3, 0, 0);
  for (;;) __asm__ volatile("");
}
void wait_for_first(int core) {
  if (core != 0) {
    while (flag == 0) CALL3(FUTEX, &flag, 0, 0);
    return;
  }
  for (volatile int i = 0; i < 30000; ++i) {
  }
  flag = 1;
  CALL3(FUTEX, &flag, 1, 1 << 20);
}
void wait_for_ever(int core) {
  if (core != 0) CALL3(FUTEX, &flag, 0, 0);
}
void busy_wait_for_ever(int core) {
  if (core != 0)
    while (flag == 0) __asm__ volatile("wfe");
}
void watch_for_ever(int core) {
  int seen;
  if (core != 0) do {
      __asm__ volatile("ldaxr %w0, %1" : "=r"(seen) : "Q"(flag) : "memory");
      if (seen == 0) __asm__ volatile("wfe" ::: "memory");
    } while (seen == 0);
}
void sleep_half_a_second(void) {
  const long time[2] = {0, 500000000};
  CALL3(NANOSLEEP, time, 0, 0);
}
void count_to_a_thousand(void) {
  for (int i = 0; i < 1000; ++i) counter = counter + 1;
}
void endless(void) {
  for (;;) __asm__ volatile("");
}
void write_for_ever(void) {
  for (;;) CALL3(WRITE, 1, "again\n", 6);
}
void unknown_call(void) {
  CALL3(CLONE, 0, 0, 0);
  CALL3(CLONE, 0, 0, 0);
}
void write_lines(int core) {
  char line[] = "core a\n";
  line[5] = (char)('a' + core);
  CALL3(WRITE, 1, line, 7);
  CALL3(WRITE, 2, "e", 1);
  CALL3(WRITE, 1, line, 7);
}
