// Cores of one machine, without a C library: faults in several places, and waits for cores that
// never come.
#define NOINLINE __attribute__((noinline, noclone))

static volatile int sink;
int arrived;

void on_core(void) {
  for (;;) {
  }
}

static long call(long number, long a, long b, long c) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = 0;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
enum { EXIT = 93, FUTEX = 98, FUTEX_WAIT = 0, FUTEX_WAKE = 1 };

NOINLINE int touch(const int* p) { return *p + 1; }
void fault_in_two_places(int core) {
  const int* const p = (const int*)0x100000 + 2 * core;
  if (core < 100)
    sink = touch(p);
  else
    sink = touch(p) + 1;
}

NOINLINE static void barrier(int cores) {
  int now = __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
  while (now < cores) {
    call(FUTEX, (long)&arrived, FUTEX_WAIT, now);
    now = __atomic_load_n(&arrived, __ATOMIC_SEQ_CST);
  }
  call(FUTEX, (long)&arrived, FUTEX_WAKE, cores);
}
// All but core 5 meet.
void barrier_without(int core, int cores, int how) {
  if (core != 5) return barrier(cores);
  if (how == 1)
    for (;;) sink = 1;
  if (how == 2) sink = *(volatile int*)0x10;
  if (how == 3) call(EXIT, 7, 0, 0);
}
