// Streams of accesses that do not depend on timing, each core with its own.
typedef unsigned long u64;
// Loads a pair; stores one and loads it again.
#ifdef __riscv  // which has no such instructions
#define LOAD_PAIR(a, b, from) \
  __asm__ volatile("ld %0, 0(%2)\n\tld %1, 8(%2)" : "=&r"(a), "=r"(b) : "r"(from) : "memory")
#define STORE_AND_LOAD(a, b, to)                                                             \
  __asm__ volatile("sd %0, 0(%2)\n\tsd %1, 8(%2)\n\tld %0, 0(%2)\n\tld %1, 8(%2)" \
                   : "+r"(a), "+r"(b) : "r"(to) : "memory")
#else
#define LOAD_PAIR(a, b, from) \
  __asm__ volatile("ldp %0, %1, [%2]" : "=r"(a), "=r"(b) : "r"(from) : "memory")
#define STORE_AND_LOAD(a, b, to)                                                        \
  do {                                                                                  \
    void* place = (to) + 2;                                                             \
    __asm__ volatile("stp %0, %1, [%2, #-16]!\n\tldp %0, %1, [%2], #16" \
                     : "+r"(a), "+r"(b), "+r"(place) : : "memory");                     \
  } while (0)
#endif

static unsigned char table[1 << 19];
static u64 results[1 << 16];

static inline u64 next(u64 x) {
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ x << 17;
}

// Rows, columns, random places, several sizes, pairs, on and off line boundaries.
void work(u64 core, u64 rounds) {
  u64 sum = 0, x = core * 2654435761u + 88172645463325252u;
  unsigned char* const mine = table + (core * 8192) % sizeof table;
  for (u64 r = 0; r < rounds; ++r) {
    for (u64 i = 0; i < 4096; i += 8) *(volatile u64*)(mine + i) += r;
    for (u64 i = 0; i < 64; ++i) sum += *(volatile unsigned*)(table + i * 4096 + core % 64 * 4);
    for (u64 i = 0; i < 512; ++i) {
      x = next(x);
      sum += *(volatile unsigned char*)(table + x % sizeof table);
      if (x & 1) *(volatile unsigned short*)(table + (x >> 20) % (sizeof table - 2)) = (unsigned short)x;
      u64 a, b;
      LOAD_PAIR(a, b, table + (x >> 40) % (sizeof table - 16));
      sum += a + b;
    }
    STORE_AND_LOAD(sum, x, results + (core & 0x7fff) * 2);
  }
  results[core % (1 << 16)] = sum;
}
