// isa: aarch64
// Conversions between all integer and float types, out of range too, and all rounding functions.
#include "bare.h"

#define INSTRUCTION(name, to, from)                              \
  static NOINLINE uint64_t i_##name##_##to##from(double x) {     \
    uint64_t r = 0;                                              \
    __asm__(#name " %" #to "0, %" #from "1" : "=r"(r) : "w"(x)); \
    return r;                                                    \
  }
INSTRUCTION(fcvtzs, x, d)
INSTRUCTION(fcvtzs, w, d)
INSTRUCTION(fcvtzu, x, d)
INSTRUCTION(fcvtzu, w, d)
INSTRUCTION(fcvtns, x, d)
INSTRUCTION(fcvtas, x, d)
INSTRUCTION(fcvtps, w, d)
INSTRUCTION(fcvtms, w, d)
INSTRUCTION(fcvtau, w, d)
INSTRUCTION(fcvtmu, x, d)

#define ROUND(name)                                \
  static NOINLINE uint64_t i_##name(double x) {    \
    double r;                                      \
    uint64_t bits;                                 \
    __asm__(#name " %d0, %d1" : "=w"(r) : "w"(x)); \
    memcpy(&bits, &r, 8);                          \
    return bits;                                   \
  }
ROUND(frintn)
ROUND(frintp)
ROUND(frintm)
ROUND(frintz)
ROUND(frinta)
ROUND(frintx)
ROUND(frinti)

static NOINLINE void narrow(double x) {
  float f = (float)x;
  uint32_t u;
  memcpy(&u, &f, 4);
  double back = f;
  uint64_t w;
  memcpy(&w, &back, 8);
  uint32_t half;
  __asm__("fcvt h0, %s1\n umov %w0, v0.h[0]" : "=r"(half) : "w"(f) : "v0");
  print("%8x %16lx %4x\n", u, w, half);
}

static NOINLINE void from_integers(uint64_t u) {
  double d[4] = {(double)u, (double)(int64_t)u, (double)(uint32_t)u, (double)(int16_t)u};
  float f[4] = {(float)u, (float)(int64_t)u, (float)(uint32_t)u, (float)(int32_t)u};
  for (int i = 0; i < 4; i++) {
    uint64_t x;
    uint32_t y;
    memcpy(&x, &d[i], 8);
    memcpy(&y, &f[i], 4);
    print("%16lx %8x ", x, y);
  }
  print("\n");
}

int main(void) {
  static const double values[] = {0.0,
                                  -0.0,
                                  0.5,
                                  -0.5,
                                  1.5,
                                  2.5,
                                  -2.5,
                                  0.49999999999999994,
                                  1e9,
                                  2147483647.5,
                                  -2147483648.5,
                                  4294967295.9,
                                  4.3e9,
                                  9.2e18,
                                  -9.3e18,
                                  1.9e19,
                                  1e300,
                                  -1e300,
                                  1e-310,
                                  123456.789,
                                  -0.999,
                                  __builtin_inf(),
                                  -__builtin_inf(),
                                  __builtin_nan("")};
  for (size_t i = 0; i < LENGTH(values); i++) {
    double x = values[i];
    print("%16lx %16lx %16lx %16lx ", i_fcvtzs_xd(x), i_fcvtzs_wd(x), i_fcvtzu_xd(x),
          i_fcvtzu_wd(x));
    print("%16lx %16lx %16lx %16lx ", i_fcvtns_xd(x), i_fcvtas_xd(x), i_fcvtps_wd(x),
          i_fcvtms_wd(x));
    print("%16lx %16lx ", i_fcvtau_wd(x), i_fcvtmu_xd(x));
    print("%16lx %16lx %16lx %16lx ", i_frintn(x), i_frintp(x), i_frintm(x), i_frintz(x));
    print("%16lx %16lx %16lx\n", i_frinta(x), i_frintx(x), i_frinti(x));
    narrow(x);
  }
  static const uint64_t integers[] = {0,
                                      1,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x1000001,
                                      0x3fffffffffffff,
                                      0x20000000000001,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      0xffffffffffffffff,
                                      0xfffffffffffffc00};
  for (size_t i = 0; i < LENGTH(integers); i++) from_integers(integers[i]);
  // Fixed point.
  int32_t q;
  double z = OPAQUE(-3.3125);
  __asm__("fcvtzs %w0, %d1, #8" : "=r"(q) : "w"(z));
  __asm__("scvtf %d0, %w1, #4" : "=w"(z) : "r"(q));
  print("%d %d\n", q, (int)(z * 1000));
  return 0;
}
