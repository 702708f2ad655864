// bits: 64
// Primes: a byte sieve, a bit sieve, and Miller-Rabin must count the same.
#include "bare.h"

enum { kLimit = 5000 };
static uint8_t bytes[kLimit];
static uint64_t words[kLimit / 64 + 1];

static NOINLINE uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t result = 1;
  for (base %= modulus; exponent; exponent >>= 1) {
    if (exponent & 1) result = (uint64_t)((unsigned __int128)result * base % modulus);
    base = (uint64_t)((unsigned __int128)base * base % modulus);
  }
  return result;
}

static NOINLINE int miller_rabin(uint64_t n) {
  static const uint64_t witnesses[] = {2, 3, 5, 7, 11, 13};
  if (n < 2) return 0;
  uint64_t d = n - 1;
  int s = __builtin_ctzll(d | 1ull << 63);
  d >>= s;
  for (size_t i = 0; i < LENGTH(witnesses); i++) {
    if (n == witnesses[i]) return 1;
    uint64_t x = power(witnesses[i], d, n);
    int witness = x != 1 && x != n - 1;
    for (int r = 1; r < s && witness; r++) {
      x = (uint64_t)((unsigned __int128)x * x % n);
      witness = x != n - 1;
    }
    if (witness) return 0;
  }
  return 1;
}

int main(void) {
  int a = 0, b = 0, c = 0;
  for (unsigned i = 2; i < kLimit; i++) {
    if (!bytes[i]) {
      a++;
      for (unsigned j = i * i; j < kLimit; j += i) bytes[j] = 1;
    }
    if (!(words[i / 64] >> i % 64 & 1)) {
      b++;
      for (unsigned j = 2 * i; j < kLimit; j += i) words[j / 64] |= 1ull << j % 64;
    }
  }
  for (unsigned i = 2; i < 600; i++) c += miller_rabin(i) == !bytes[i];
  print("%d %d %d\n", a, b, c);
  print("%d %d %d\n", miller_rabin(1000000007), miller_rabin(1000000007ull * 3),
        miller_rabin(67280421310721));
  return a != b;
}
