// strtod, strtol and relatives, sscanf; ends, errors and overflows.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  static const char* const reals[] = {"0",
                                      "1.5",
                                      "-2.25e3",
                                      "1e400",
                                      "-1e400",
                                      "1e-400",
                                      "0x1.8p3",
                                      "inf",
                                      "-Infinity",
                                      "nan",
                                      "  +7.",
                                      ".5x",
                                      "e5",
                                      "",
                                      "4.9406564584124654e-324",
                                      "1.7976931348623157e308",
                                      "2.2250738585072011e-308",
                                      "9007199254740993",
                                      "123456789012345678901234567890",
                                      "0.1e1e1",
                                      "1e23",
                                      "8.5e22"};
  for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
    char* end;
    errno = 0;
    double d = strtod(reals[i], &end);
    int e = errno;
    float f = strtof(reals[i], NULL);
    printf("%s -> %.17g %a %a rest [%s] errno %d\n", reals[i], d, d, (double)f, end, e);
  }
  static const char* const integers[] = {
      "0",      "42", "-17", "0x1f", "077", "zz", "99999999999999999999", "-99999999999999999999",
      " 12abc", "0x", "+5",  "1111"};
  static const int bases[] = {0, 2, 8, 10, 16, 36};
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
      char* end;
      errno = 0;
      long n = strtol(integers[i], &end, bases[b]);
      printf("%ld/%d/%d ", n, (int)(end - integers[i]), errno);
    }
    printf("%lu %d\n", strtoul(integers[i], NULL, 0), atoi(integers[i]));
  }
  int a = 0, b = 0, n = 0;
  char word[20] = "", set[20] = "";
  double d = 0;
  unsigned x = 0;
  int got = sscanf("  17 -4 hello 2.5e1 ff [abc]", "%d%d %19s %lf %x [%19[a-c]]%n", &a, &b, word,
                   &d, &x, set, &n);
  printf("%d: %d %d %s %g %x %s %d\n", got, a, b, word, d, x, set, n);
  got = sscanf("2026-11-21", "%4d-%2d-%2d", &a, &b, &n);
  printf("%d: %d %d %d\n", got, a, b, n);
  return 0;
}
