// Guests of test_first_hour.py: entries that are called on each core.
typedef unsigned long u64;
static volatile u64 sink;
static u64 arrived[64];
static u64 generation;

void spin(u64 turns) {
  for (u64 i = 0; i < turns; ++i) sink += i;
}

static u64 load_and_mark(u64* word) {
  u64 value;
  __asm__ volatile("ldaxr %0, [%1]" : "=r"(value) : "r"(word) : "memory");
  return value;
}

// `rounds` barriers; before each one core has twice the work of the others, which sleep at it.
void barriers(u64 core, u64 cores, u64 rounds) {
  for (u64 round = 0; round < rounds; ++round) {
    u64 sum = 0;
    const u64 turns = core == round % cores ? 4000 : 2000;
    for (u64 i = 0; i < turns; ++i) {
      sum += i;
      __asm__ volatile("" : "+r"(sum));
    }
    if (__atomic_add_fetch(&arrived[round % 64], 1, __ATOMIC_SEQ_CST) == cores) {
      arrived[round % 64] = 0;
      __atomic_store_n(&generation, round + 1, __ATOMIC_SEQ_CST);
    } else {
      while (load_and_mark(&generation) <= round) __asm__ volatile("wfe");
    }
  }
}
