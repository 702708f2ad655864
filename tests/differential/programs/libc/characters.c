// <ctype.h> over all bytes, wide characters, UTF-8 in the C locale.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <wctype.h>

int main(void) {
  unsigned h = 0;
  for (int c = 0; c < 256; c++) {
    unsigned bits = (unsigned)(!!isalpha(c) | !!isdigit(c) << 1 | !!isalnum(c) << 2 |
                               !!isspace(c) << 3 | !!isupper(c) << 4 | !!islower(c) << 5 |
                               !!ispunct(c) << 6 | !!iscntrl(c) << 7 | !!isgraph(c) << 8 |
                               !!isprint(c) << 9 | !!isxdigit(c) << 10 | !!isblank(c) << 11);
    h = h * 31 + bits + (unsigned)toupper(c) * 3 + (unsigned)tolower(c) * 5;
  }
  printf("%x\n", h);
  wchar_t wide[64], other[64];
  swprintf(wide, 64, L"%d-%ls-%.2f", 42, L"wide", 2.5);
  wcscpy(other, wide);
  wcscat(other, L"!");
  printf("%ls %zu %d %d\n", other, wcslen(wide), wcscmp(wide, other) < 0,
         wcschr(wide, L'w') != NULL);
  printf("%ld %g %d\n", wcstol(L"-77", NULL, 10), wcstod(L"1.25", NULL), iswalpha(L'x') != 0);
  char bytes[64];
  size_t n = wcstombs(bytes, wide, sizeof bytes);
  wchar_t back[64];
  printf("%zu %s %zu\n", n, bytes, mbstowcs(back, bytes, 64));
  wmemset(wide, L'z', 5);
  printf("%d\n", wmemcmp(wide, L"zzzzz", 5));
  return 0;
}
