// Streams of accesses that do not depend on timing, each core with its own.
typedef unsigned long u64;

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
      __asm__ volatile("ldp %0, %1, [%2]" : "=r"(a), "=r"(b) : "r"(table + (x >> 40) % (sizeof table - 16)) : "memory");
      sum += a + b;
    }
    __asm__ volatile("stp %0, %1, [%2, #-16]!\n\tldp %0, %1, [%2], #16" : "+r"(sum), "+r"(x) : "r"(results + (core & 0x7fff) * 2 + 2) : "memory");
  }
  results[core % (1 << 16)] = sum;
}
