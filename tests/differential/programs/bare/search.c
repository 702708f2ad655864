// Searching text: naive, Knuth-Morris-Pratt, Horspool, Rabin-Karp must find the same places.
#include "bare.h"

static char text[800];

static NOINLINE unsigned naive(const char* p, size_t m, size_t n) {
  unsigned h = 0;
  for (size_t i = 0; i + m <= n; i++)
    if (memcmp(text + i, p, m) == 0) h = h * 31 + (unsigned)i;
  return h;
}

static NOINLINE unsigned kmp(const char* p, size_t m, size_t n) {
  size_t fail[32] = {0}, k = 0;
  unsigned h = 0;
  for (size_t i = 1; i < m; i++) {
    while (k && p[k] != p[i]) k = fail[k - 1];
    if (p[k] == p[i]) k++;
    fail[i] = k;
  }
  k = 0;
  for (size_t i = 0; i < n; i++) {
    while (k && p[k] != text[i]) k = fail[k - 1];
    if (p[k] == text[i]) k++;
    if (k == m) {
      h = h * 31 + (unsigned)(i + 1 - m);
      k = fail[k - 1];
    }
  }
  return h;
}

static NOINLINE unsigned horspool(const char* p, size_t m, size_t n) {
  uint8_t skip[256];
  unsigned h = 0;
  for (int i = 0; i < 256; i++) skip[i] = (uint8_t)m;
  for (size_t i = 0; i + 1 < m; i++) skip[(uint8_t)p[i]] = (uint8_t)(m - 1 - i);
  for (size_t i = 0; i + m <= n; i += skip[(uint8_t)text[i + m - 1]])
    if (memcmp(text + i, p, m) == 0) h = h * 31 + (unsigned)i;
  return h;
}

static NOINLINE unsigned rabin_karp(const char* p, size_t m, size_t n) {
  const uint32_t base = 257, modulus = 1000003;
  uint32_t want = 0, have = 0, high = 1;
  unsigned h = 0;
  for (size_t i = 0; i < m; i++) {
    want = (want * base + (uint8_t)p[i]) % modulus;
    have = (have * base + (uint8_t)text[i]) % modulus;
    if (i) high = high * base % modulus;
  }
  for (size_t i = 0; i + m <= n; i++) {
    if (want == have && memcmp(text + i, p, m) == 0) h = h * 31 + (unsigned)i;
    have = ((have + modulus - (uint8_t)text[i] * high % modulus) * base + (uint8_t)text[i + m]) %
           modulus;
  }
  return h;
}

int main(void) {
  static const char* const patterns[] = {"a", "ab", "aba", "abab", "bbaab", "aaaa", "abbabaab"};
  int wrong = 0;
  for (size_t i = 0; i + 1 < sizeof text; i++) text[i] = (char)('a' + (next_random() >> 7 & 1));
  for (size_t i = 0; i < LENGTH(patterns); i++) {
    size_t m = length_of(patterns[i]), n = sizeof text - 1;
    unsigned a = naive(patterns[i], m, n), b = kmp(patterns[i], m, n);
    unsigned c = horspool(patterns[i], m, n), d = rabin_karp(patterns[i], m, n);
    wrong += a != b || a != c || a != d;
    print("%s %8x %8x %8x %8x\n", patterns[i], a, b, c, d);
  }
  return wrong;
}
