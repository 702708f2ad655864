// Bit fields: insertion, signed and unsigned extraction, packed structures.
#include "bare.h"

struct Fields {
  unsigned a : 3;
  int b : 5;
  unsigned c : 11;
  int d : 13;
  uint64_t e : 40;
  int64_t f : 24;
};

struct __attribute__((packed)) Packed {
  uint8_t tag;
  uint32_t word;
  uint16_t half;
  uint64_t wide;
};

static NOINLINE void fill(struct Fields* s, uint64_t x) {
  s->a = (unsigned)x & 7;
  s->b = (int)(x >> 3) & 31;
  s->c = (unsigned)(x >> 8) & 2047;
  s->d = (int)(x >> 19) & 8191;
  s->e = x >> 5;
  s->f = (int64_t)(x << 9) >> 30 & 0xffffff;
}

static NOINLINE int64_t sum(const struct Fields* s) {
  return s->a + s->b + s->c + s->d + (int64_t)s->e + s->f;
}

int main(void) {
  struct Fields s = {0};
  struct Packed p = {0};
  for (int i = 0; i < 30; i++) {
    uint64_t x = (uint64_t)next_random() * 0x9e3779b97f4a7c15 + next_random();
    fill(&s, x);
    print("%u %d %u %d %16lx %ld sum %ld\n", s.a, s.b, s.c, s.d, (uint64_t)s.e, (int64_t)s.f,
          sum(&s));
    s.d++;
    s.b--;
    s.e += s.a;
    p.tag = (uint8_t)x;
    p.word += (uint32_t)(x >> 7);
    p.half ^= (uint16_t)(x >> 11);
    p.wide = p.wide * 3 + x;
    const unsigned char* bytes = (const unsigned char*)&p;
    uint32_t h = 0;
    for (size_t k = 0; k < sizeof p; k++) h = h * 33 + bytes[k];
    print("  %8x %d\n", h, s.d);
  }
  return 0;
}
