// Big integers in 32-bit limbs: factorials, Fibonacci numbers, powers, decimal output.
#include "bare.h"

enum { kLimbs = 24 };
typedef struct {
  uint32_t limb[kLimbs];
} Big;

static NOINLINE void add(Big* a, const Big* b) {
  uint64_t carry = 0;
  for (int i = 0; i < kLimbs; i++) {
    carry += (uint64_t)a->limb[i] + b->limb[i];
    a->limb[i] = (uint32_t)carry;
    carry >>= 32;
  }
}

static NOINLINE void scale(Big* a, uint32_t factor) {
  uint64_t carry = 0;
  for (int i = 0; i < kLimbs; i++) {
    carry += (uint64_t)a->limb[i] * factor;
    a->limb[i] = (uint32_t)carry;
    carry >>= 32;
  }
}

static NOINLINE uint32_t divide(Big* a, uint32_t divisor) {
  uint64_t rest = 0;
  for (int i = kLimbs - 1; i >= 0; i--) {
    rest = rest << 32 | a->limb[i];
    a->limb[i] = (uint32_t)(rest / divisor);
    rest %= divisor;
  }
  return (uint32_t)rest;
}

static NOINLINE Big multiply(const Big* a, const Big* b) {
  Big r = {{0}};
  for (int i = 0; i < kLimbs; i++) {
    uint64_t carry = 0;
    for (int j = 0; i + j < kLimbs; j++) {
      carry += (uint64_t)a->limb[i] * b->limb[j] + r.limb[i + j];
      r.limb[i + j] = (uint32_t)carry;
      carry >>= 32;
    }
  }
  return r;
}

static void out_big(const char* name, Big a) {
  char digits[kLimbs * 10];
  int n = 0, any;
  do {
    uint32_t chunk = divide(&a, 1000000000);
    any = 0;
    for (int i = 0; i < kLimbs; i++) any |= a.limb[i] != 0;
    for (int i = 0; i < 9 && (any || chunk || i == 0); i++, chunk /= 10)
      digits[n++] = (char)('0' + chunk % 10);
  } while (any);
  print("%s ", name);
  while (n) out_char(digits[--n]);
  out_char('\n');
}

int main(void) {
  Big f = {{1}}, a = {{0}}, b = {{1}}, p = {{3}};
  for (uint32_t i = 2; i <= 100; i++) {
    scale(&f, i);
    if (i % 25 == 0) out_big("factorial", f);
  }
  for (int i = 0; i < 300; i++) {
    Big t = b;
    add(&b, &a);
    a = t;
  }
  out_big("fibonacci", a);
  for (int i = 0; i < 7; i++) p = multiply(&p, &p);
  out_big("3^128", p);
  return 0;
}
