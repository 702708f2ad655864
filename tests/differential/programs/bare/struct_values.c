// Structures passed and returned by value: in registers, split, by reference, homogeneous floats.
#include "bare.h"

struct One {
  char c;
};
struct Two {
  int32_t a, b;
};
struct Three {
  int64_t a, b, c;
};
struct Sixteen {
  int64_t a;
  int16_t b;
  uint8_t c[6];
};
struct Floats {
  float x, y, z;
};
struct Doubles {
  double x, y, z, w;
};
struct Mixed {
  double d;
  int i;
};
struct Large {
  int data[20];
};

static NOINLINE struct One one(struct One v, int i) { return (struct One){(char)(v.c + i)}; }
static NOINLINE struct Two two(struct Two v) { return (struct Two){v.b - 1, v.a * 2}; }
static NOINLINE struct Three three(struct Three v, struct Three w) {
  return (struct Three){v.a + w.c, v.b ^ w.b, v.c - w.a};
}
static NOINLINE struct Sixteen sixteen(int x, struct Sixteen v) {
  v.a += x;
  v.b = (int16_t)(v.b * 3);
  for (int i = 0; i < 6; i++) v.c[i] = (uint8_t)(v.c[i] + i);
  return v;
}
static NOINLINE struct Floats floats(struct Floats a, struct Floats b) {
  return (struct Floats){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static NOINLINE struct Doubles doubles(struct Doubles v, double s) {
  return (struct Doubles){v.w * s, v.x + s, v.y - s, v.z / s};
}
static NOINLINE struct Mixed mixed(struct Mixed m, struct Two t) {
  return (struct Mixed){m.d + t.a, m.i - t.b};
}
static NOINLINE struct Large large(struct Large v, int k) {
  for (int i = 0; i < 20; i++) v.data[i] = v.data[i] * k + i;
  return v;
}
// More arguments than registers: the rest goes over the stack.
static NOINLINE int64_t many(int a, int64_t b, char c, short d, struct Two e, int f, int g, int h,
                             int8_t i, struct Sixteen j, double k, float l, uint16_t m) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e.a + 6 * e.b + 7 * f + 8 * g + 9 * h + 10 * i + j.a +
         j.b + (int64_t)(k * 8) + (int64_t)(l * 4) + m;
}

int main(void) {
  struct One a = {'a'};
  struct Two b = {1, 2};
  struct Three c = {1, 2, 3};
  struct Sixteen d = {100, 7, {1, 2, 3, 4, 5, 6}};
  struct Floats e = {1, 2, 3}, f = {4, 5.5f, 6};
  struct Doubles g = {1, 2, 3, 4};
  struct Mixed h = {1.5, 9};
  struct Large k = {{0}};
  for (int i = 0; i < 8; i++) {
    a = one(a, i);
    b = two(b);
    c = three(c, (struct Three){i, i * 5, i * 7});
    d = sixteen(i, d);
    f = floats(e, f);
    g = doubles(g, 1.25 + i);
    h = mixed(h, b);
    k = large(k, 3);
    print("%c %d %d %ld %ld %ld ", a.c, b.a, b.b, c.a, c.b, c.c);
    print("%ld %d %d %d ", d.a, d.b, d.c[0], d.c[5]);
    print("%d %d %d ", (int)(f.x * 4), (int)(f.y * 4), (int)(f.z * 4));
    print("%d %d %d %d ", (int)(g.x * 1000), (int)(g.y * 1000), (int)(g.z * 1000),
          (int)(g.w * 1000));
    print("%d %d %d %d %ld\n", (int)(h.d * 10), h.i, k.data[0], k.data[19],
          many(i, 2, 'x', -4, b, 5, 6, 7, -8, d, g.x, f.y, 77));
  }
  return 0;
}
