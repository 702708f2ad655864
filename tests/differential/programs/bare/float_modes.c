// isa: aarch64
// Rounding modes and default NaNs through FPCR, cumulative flags in FPSR.
#include "bare.h"

static void set_fpcr(uint64_t v) { __asm__ volatile("msr fpcr, %0" ::"r"(v) : "memory"); }
static void set_fpsr(uint64_t v) { __asm__ volatile("msr fpsr, %0" ::"r"(v) : "memory"); }
static uint64_t fpcr(void) {
  uint64_t v;
  __asm__ volatile("mrs %0, fpcr" : "=r"(v)::"memory");
  return v;
}
static uint64_t fpsr(void) {
  uint64_t v;
  __asm__ volatile("mrs %0, fpsr" : "=r"(v)::"memory");
  return v;
}

#define OPERATION(name)                                                             \
  static NOINLINE uint64_t do_##name(double a, double b) {                          \
    double r;                                                                       \
    uint64_t bits;                                                                  \
    __asm__ volatile(#name " %d0, %d1, %d2" : "=w"(r) : "w"(a), "w"(b) : "memory"); \
    memcpy(&bits, &r, 8);                                                           \
    return bits;                                                                    \
  }
OPERATION(fadd)
OPERATION(fsub)
OPERATION(fmul)
OPERATION(fdiv)

static NOINLINE uint64_t round_integral(double a) {
  double r;
  uint64_t bits;
  __asm__ volatile("frintx %d0, %d1" : "=w"(r) : "w"(a) : "memory");
  memcpy(&bits, &r, 8);
  return bits;
}
static NOINLINE uint32_t to_single(double a) {
  float r;
  uint32_t bits;
  __asm__ volatile("fcvt %s0, %d1" : "=w"(r) : "w"(a) : "memory");
  memcpy(&bits, &r, 4);
  return bits;
}
static NOINLINE uint64_t fused(double a, double b, double c) {
  double r;
  uint64_t bits;
  __asm__ volatile("fmadd %d0, %d1, %d2, %d3" : "=w"(r) : "w"(a), "w"(b), "w"(c) : "memory");
  memcpy(&bits, &r, 8);
  return bits;
}

int main(void) {
  static const double values[] = {1.0,   -1.0,   3.0,    0.1, -7.7,
                                  1e308, 1e-308, 4e-320, 0.0, __builtin_inf()};
  // RMode (23:22) and, last, default NaN (25) and flush to zero (24).
  static const uint64_t modes[] = {0, 1 << 22, 2 << 22, 3 << 22, 1 << 25, 1 << 24};
  for (size_t m = 0; m < LENGTH(modes); m++) {
    set_fpcr(modes[m]);
    uint64_t control = fpcr(), h = 0, all = 0;
    for (size_t i = 0; i < LENGTH(values); i++)
      for (size_t j = 0; j < LENGTH(values); j++) {
        double a = values[i], b = values[j];
        set_fpsr(0);
        h = h * 31 + do_fadd(a, b);
        h = h * 31 + do_fsub(a, b);
        all = all * 31 + fpsr();
        h = h * 31 + do_fmul(a, b);
        all = all * 31 + fpsr();
        set_fpsr(0);
        h = h * 31 + do_fdiv(a, b);
        all = all * 31 + fpsr();
        set_fpsr(0);
        h = h * 31 + fused(a, b, -0.5);
        h = h * 31 + round_integral(a * 0.75);
        h = h * 31 + to_single(a);
        all = all * 31 + fpsr();
      }
    set_fpcr(0);
    print("fpcr %8lx results %16lx flags %16lx\n", control, h, all);
  }
  set_fpsr(0);
  print("1/3 %16lx flags %lx\n", do_fdiv(1, 3), fpsr());
  print("1/0 %16lx flags %lx\n", do_fdiv(1, 0), fpsr());
  print("0/0 %16lx flags %lx\n", do_fdiv(0, 0), fpsr());
  return 0;
}
