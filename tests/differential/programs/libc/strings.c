// The string functions, at every alignment and many lengths.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <strings.h>

static char a[512], b[512];

int main(void) {
  unsigned long h = 0;
  for (int alignment = 0; alignment < 16; alignment++) {
    for (int length = 0; length < 100; length += 1 + length / 7) {
      char *p = a + alignment, *q = b + (alignment * 5 & 15);
      for (int i = 0; i < length; i++) p[i] = (char)('a' + (i * 7 + alignment) % 26);
      p[length] = 0;
      strcpy(q, p);
      h = h * 31 + strlen(p) + strnlen(p, 40);
      h = h * 31 + (unsigned long)(strcmp(p, q) == 0);
      if (length) q[length - 1] = 'Z';
      int c = strcmp(p, q);
      h = h * 31 + (unsigned long)(c < 0 ? 1 : c > 0 ? 2 : 3);
      c = strncmp(p, q, (size_t)length / 2);
      h = h * 31 + (unsigned long)(c < 0 ? 1 : c > 0 ? 2 : 3);
      char *x = strchr(p, 'm'), *y = strrchr(p, 'm'), *z = memchr(p, 'q', (size_t)length);
      h = h * 31 + (unsigned long)(x ? x - p : -1) + (unsigned long)(y ? y - p : -7);
      h = h * 31 + (unsigned long)(z ? z - p : -1);
      z = memrchr(p, 'c', (size_t)length);
      h = h * 31 + (unsigned long)(z ? z - p : -1) + (unsigned long)(strchrnul(p, 'y') - p);
      h = h * 31 + strspn(p, "abcdefghijk") * 3 + strcspn(p, "xyz");
      strncpy(q, p, 50);
      strcat(q, "tail");
      h = h * 31 + strlen(q) + (unsigned long)(strstr(q, "tail") - q);
      h = h * 31 + (unsigned long)(memcmp(a, b, 200) < 0) + (unsigned long)(stpcpy(q, p) - q);
    }
  }
  printf("%lx\n", h);
  char line[] = "one,two;;three four";
  for (char* t = strtok(line, ",; "); t; t = strtok(NULL, ",; ")) printf("<%s>", t);
  char fields[] = "a::b:c", *rest = fields, *field;
  while ((field = strsep(&rest, ":"))) printf("[%s]", field);
  printf(" %d %d %d\n", strcasecmp("HeLLo", "hEllO"), strncasecmp("abcX", "ABCy", 3),
         strcasecmp("a", "B") < 0);
  printf("%s %s %s\n", strstr("the needle in the haystack needle", "needle in"),
         strpbrk("hello world", "ow"), strerror(2));
  char* copy = strdup("duplicate");
  printf("%s %s %d\n", copy, (char*)memmem("abcdefg", 7, "def", 3),
         strverscmp("file9", "file10") < 0);
  return 0;
}
