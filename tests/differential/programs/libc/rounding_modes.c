// <fenv.h>: rounding modes, exception flags, saved environments.
#include <fenv.h>
#include <math.h>
#include <stdio.h>

#pragma STDC FENV_ACCESS ON

int main(void) {
  static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  volatile double one = 1, three = 3, tiny = 1e-308, zero = 0, big = 1e308, x = 2.5;
  for (int i = 0; i < 4; i++) {
    fesetround(modes[i]);
    volatile double third = one / three, minus = -one / three, nearby = nearbyint(x),
                    sum = one + 1e-17;
    volatile float narrow = (float)0.1;
    long l = lrint(-x);
    volatile double root = sqrt(three);
    int mode = fegetround();
    fesetround(FE_TONEAREST);
    printf("%d: %a %a %g %a %a %ld %a\n", mode == modes[i], third, minus, nearby, sum,
           (double)narrow, l, root);
  }
  volatile double r;
  feclearexcept(FE_ALL_EXCEPT);
  r = one / zero;
  printf("div by zero %d, ", fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO);
  feclearexcept(FE_ALL_EXCEPT);
  r = zero / zero;
  printf("invalid %d, ", fetestexcept(FE_ALL_EXCEPT) == FE_INVALID);
  feclearexcept(FE_ALL_EXCEPT);
  r = big * big;
  printf("overflow %d, ", fetestexcept(FE_OVERFLOW) != 0);
  feclearexcept(FE_ALL_EXCEPT);
  r = tiny * tiny;
  printf("underflow %d, ", fetestexcept(FE_UNDERFLOW) != 0);
  fenv_t saved;
  feholdexcept(&saved);
  r = one / three;
  printf("inexact %d, ", fetestexcept(FE_INEXACT) != 0);
  fesetenv(&saved);
  feraiseexcept(FE_INEXACT);
  printf("raised %d\n", fetestexcept(FE_INEXACT) != 0);
  return r == 0;
}
