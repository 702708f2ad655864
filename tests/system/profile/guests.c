// Small machines of their own, without a C library; each core starts one of these functions.
typedef unsigned long u64;
#ifdef __riscv
#define YIELD ".word 0x0100000f"  // PAUSE, which assemblers may not know
#else
#define YIELD "yield"
#endif

static volatile u64 sink[64];
static volatile unsigned flag;

__attribute__((noinline)) static u64 outer(u64 rounds);

static inline __attribute__((always_inline)) u64 inlined_square(u64 x) {
  u64 sum = 0;
  for (u64 i = 0; i < x; ++i) sum += x ^ i;  // line A
  return sum;
}

static inline __attribute__((always_inline)) u64 inlined_twice(u64 x) {
  return inlined_square(x) + 2 * x;
}

static u64 outer(u64 rounds) {
  u64 sum = 0;
  for (u64 i = 0; i < rounds; ++i) sum += inlined_twice(i & 7);
  return sum;
}

void inlining(u64 core) { sink[core & 63] = outer(100); }

// Odd cores go round one loop, even ones another.
void forked(u64 core) {
  u64 x = core + 1;
  if (core & 1)
    for (int i = 0; i < 1000; ++i) x = x * 3 + 1;  // odd
  else
    for (int i = 0; i < 1000; ++i) x = x * 5 + 7;  // even
  sink[core & 63] = x;
}

// Core 0 works; the others look at the flag and yield.
void waiting(u64 core) {
  if (core == 0) {
    u64 x = 1;
    for (int i = 0; i < 100000; ++i) x = x * 3 + 1;
    sink[0] = x;
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    return;
  }
  while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) == 0) __asm__ volatile(YIELD ::: "memory");
}

// Each core reads the same few lines again and again.
void walking(u64 core) {
  u64 sum = 0;
  for (u64 i = 0; i < 2000; ++i) sum += sink[(i + core) & 63];
  sink[core & 63] = sum;
}

// Some cores fault in the middle of a block.
void faulting(u64 core) {
  u64 sum = 0;
  for (u64 i = 0; i < 50; ++i) sum += i * core;
  sink[core & 63] = sum;
  const u64* p = core % 3 == 0 ? (const u64*)8 : (const u64*)&sink[1];
  sink[(core + 1) & 63] = sum + *p;
}
