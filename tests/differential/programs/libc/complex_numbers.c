// Complex arithmetic, functions, and a Mandelbrot picture in characters.
#include <complex.h>
#include <math.h>
#include <stdio.h>

int main(void) {
  double complex a = 1 + 2 * I, b = -0.5 + 0.25 * I;
  for (int i = 0; i < 6; i++) {
    double complex p = a * b, q = a / b, e = cexp(b), r = csqrt(a), w = cpow(a, b);
    printf("%g%+gi %g%+gi %.12g%+.12gi %.12g%+.12gi %.12g%+.12gi\n", creal(p), cimag(p), creal(q),
           cimag(q), creal(e), cimag(e), creal(r), cimag(r), creal(w), cimag(w));
    printf("  %.12g %.12g %g%+gi\n", cabs(a), carg(b), creal(conj(a)), cimag(conj(a)));
    a = a * (0.75 - 0.5 * I) + i;
    b = clog(a) / 3;
  }
  for (int y = -8; y <= 8; y++) {
    for (int x = -24; x <= 10; x++) {
      double complex z = 0, c = x / 12.0 + y / 8.0 * I;
      int n = 0;
      while (n < 25 && creal(z) * creal(z) + cimag(z) * cimag(z) < 4) z = z * z + c, n++;
      putchar(" .:-=+*#%@"[n * 9 / 25]);
    }
    putchar('\n');
  }
  return 0;
}
