/* The C library that GCC's torture programs get: enough for them, no more. Every symbol is weak,
 * because some programs bring their own. manifest-a64.tsv counts instructions of programs linked
 * with exactly this code: a change here makes the runner measure them anew. */
#include <stdarg.h>
#include <stddef.h>
#define WEAK __attribute__((weak, noinline))
extern void __sys_exit(int) __attribute__((noreturn));
extern long __sys_write(int, const void*, unsigned long);
WEAK int errno;
WEAK void _exit(int c) { __sys_exit(c); }
WEAK void exit(int c) { __sys_exit(c & 255); }
WEAK void abort(void) { __sys_exit(134); }
WEAK int raise(int s) { __sys_exit(128 + s); }
WEAK void* memcpy(void* d, const void* s, size_t n) {
  char* p = d;
  const char* q = s;
  while (n--) *p++ = *q++;
  return d;
}
WEAK void* mempcpy(void* d, const void* s, size_t n) {
  char* p = d;
  const char* q = s;
  while (n--) *p++ = *q++;
  return p;
}
WEAK void* memmove(void* d, const void* s, size_t n) {
  char* p = d;
  const char* q = s;
  if (p < q)
    while (n--) *p++ = *q++;
  else {
    p += n;
    q += n;
    while (n--) *--p = *--q;
  }
  return d;
}
WEAK void* memset(void* d, int c, size_t n) {
  unsigned char* p = d;
  while (n--) *p++ = (unsigned char)c;
  return d;
}
WEAK int memcmp(const void* a, const void* b, size_t n) {
  const unsigned char *p = a, *q = b;
  while (n--) {
    if (*p != *q) return *p - *q;
    p++;
    q++;
  }
  return 0;
}
WEAK int bcmp(const void* a, const void* b, size_t n) { return memcmp(a, b, n); }
WEAK void bcopy(const void* s, void* d, size_t n) { memmove(d, s, n); }
WEAK void bzero(void* d, size_t n) { memset(d, 0, n); }
WEAK void* memchr(const void* a, int c, size_t n) {
  const unsigned char* p = a;
  while (n--) {
    if (*p == (unsigned char)c) return (void*)p;
    p++;
  }
  return 0;
}
WEAK size_t strlen(const char* s) {
  const char* p = s;
  while (*p) p++;
  return p - s;
}
WEAK size_t strnlen(const char* s, size_t m) {
  size_t n = 0;
  while (n < m && s[n]) n++;
  return n;
}
WEAK char* strcpy(char* d, const char* s) {
  char* r = d;
  while ((*d++ = *s++))
    ;
  return r;
}
WEAK char* stpcpy(char* d, const char* s) {
  while ((*d = *s)) d++, s++;
  return d;
}
WEAK char* strncpy(char* d, const char* s, size_t n) {
  size_t i = 0;
  for (; i < n && s[i]; i++) d[i] = s[i];
  for (; i < n; i++) d[i] = 0;
  return d;
}
WEAK char* strcat(char* d, const char* s) {
  strcpy(d + strlen(d), s);
  return d;
}
WEAK char* strncat(char* d, const char* s, size_t n) {
  char* p = d + strlen(d);
  while (n-- && *s) *p++ = *s++;
  *p = 0;
  return d;
}
WEAK int strcmp(const char* a, const char* b) {
  while (*a && *a == *b) a++, b++;
  return (unsigned char)*a - (unsigned char)*b;
}
WEAK int strncmp(const char* a, const char* b, size_t n) {
  for (; n; n--, a++, b++) {
    if (*a != *b) return (unsigned char)*a - (unsigned char)*b;
    if (!*a) return 0;
  }
  return 0;
}
WEAK char* strchr(const char* s, int c) {
  for (;; s++) {
    if (*s == (char)c) return (char*)s;
    if (!*s) return 0;
  }
}
WEAK char* index(const char* s, int c) { return strchr(s, c); }
WEAK char* strrchr(const char* s, int c) {
  const char* r = 0;
  for (;; s++) {
    if (*s == (char)c) r = s;
    if (!*s) return (char*)r;
  }
}
WEAK char* rindex(const char* s, int c) { return strrchr(s, c); }
WEAK char* strstr(const char* h, const char* n) {
  size_t l = strlen(n);
  for (;; h++) {
    if (!strncmp(h, n, l)) return (char*)h;
    if (!*h) return 0;
  }
}
WEAK size_t strspn(const char* s, const char* a) {
  size_t n = 0;
  while (s[n] && strchr(a, s[n])) n++;
  return n;
}
WEAK size_t strcspn(const char* s, const char* a) {
  size_t n = 0;
  while (s[n] && !strchr(a, s[n])) n++;
  return n;
}
WEAK char* strpbrk(const char* s, const char* a) {
  s += strcspn(s, a);
  return *s ? (char*)s : 0;
}
WEAK char* strdup(const char* s);
WEAK int toupper(int c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }
WEAK int tolower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
WEAK int isprint(int c) { return c >= 32 && c < 127; }
WEAK int ffs(int x) {
  for (int i = 0; i < 32; i++)
    if ((unsigned)x >> i & 1) return i + 1;
  return 0;
}
WEAK int ffsl(long x) {
  for (unsigned i = 0; i < 8 * sizeof x; i++)
    if ((unsigned long)x >> i & 1) return i + 1;
  return 0;
}
WEAK int ffsll(long long x) {
  for (int i = 0; i < 64; i++)
    if ((unsigned long long)x >> i & 1) return i + 1;
  return 0;
}
WEAK int abs(int x) { return x < 0 ? -x : x; }
WEAK long labs(long x) { return x < 0 ? -x : x; }
WEAK long long llabs(long long x) { return x < 0 ? -x : x; }
static char heap[1 << 20] __attribute__((aligned(16)));
static size_t brk_;
WEAK void* malloc(size_t n) {
  size_t t = (n + 31) & ~(size_t)15;
  if (n > sizeof heap || brk_ + t > sizeof heap) return 0;
  char* p = heap + brk_;
  *(size_t*)p = n;
  brk_ += t;
  return p + 16;
}
WEAK void free(void* p) { (void)p; }
WEAK void* calloc(size_t a, size_t b) {
  void* p = malloc(a * b);
  if (p) memset(p, 0, a * b);
  return p;
}
WEAK void* realloc(void* o, size_t n) {
  void* p = malloc(n);
  if (p && o) {
    size_t k = *(size_t*)((char*)o - 16);
    memcpy(p, o, k < n ? k : n);
  }
  return p;
}
WEAK char* strdup(const char* s) {
  char* p = malloc(strlen(s) + 1);
  return strcpy(p, s);
}
WEAK int atoi(const char* s) {
  int n = 0, g = 0;
  while (*s == ' ') s++;
  if (*s == '-') g = 1, s++;
  while (*s >= '0' && *s <= '9') n = n * 10 + *s++ - '0';
  return g ? -n : n;
}
WEAK long atol(const char* s) { return atoi(s); }
WEAK void qsort(void* b, size_t n, size_t s, int (*f)(const void*, const void*)) {
  char* a = b;
  for (size_t i = 1; i < n; i++)
    for (size_t j = i; j && f(a + (j - 1) * s, a + j * s) > 0; j--)
      for (size_t k = 0; k < s; k++) {
        char t = a[j * s + k];
        a[j * s + k] = a[(j - 1) * s + k];
        a[(j - 1) * s + k] = t;
      }
}
/* formatted output: integers, strings, characters and pointers only */
WEAK int vsnprintf(char* o, size_t cap, const char* f, va_list ap) {
  size_t n = 0;
#define PUT(ch)                 \
  do {                          \
    char c_ = (ch);             \
    if (n + 1 < cap) o[n] = c_; \
    n++;                        \
  } while (0)
  for (; *f; f++) {
    if (*f != '%') {
      PUT(*f);
      continue;
    }
    int left = 0, zero = 0, plus = 0, width = 0, prec = -1, l = 0;
    f++;
    for (;; f++) {
      if (*f == '-')
        left = 1;
      else if (*f == '0')
        zero = 1;
      else if (*f == '+')
        plus = 1;
      else if (*f == ' ' || *f == '#')
        ;
      else
        break;
    }
    if (*f == '*') {
      width = va_arg(ap, int);
      f++;
    } else
      while (*f >= '0' && *f <= '9') width = width * 10 + *f++ - '0';
    if (*f == '.') {
      prec = 0;
      f++;
      if (*f == '*') {
        prec = va_arg(ap, int);
        f++;
      } else
        while (*f >= '0' && *f <= '9') prec = prec * 10 + *f++ - '0';
    }
    while (*f == 'l' || *f == 'h' || *f == 'z' || *f == 't' || *f == 'j') {
      if (*f == 'l')
        l++;
      else if (*f == 'z' || *f == 't')
        l = 1;
      else if (*f == 'j')
        l = 2;
      f++;
    }
    char buf[72];
    const char* s = buf;
    int len = 0;
    unsigned long long u;
    int neg = 0, base = 10;
    switch (*f) {
      case 'd':
      case 'i': {
        long long v = l >= 2 ? va_arg(ap, long long) : l ? va_arg(ap, long) : va_arg(ap, int);
        neg = v < 0;
        u = neg ? 0ull - (unsigned long long)v : (unsigned long long)v;
        goto num;
      }
      case 'p':
        u = (size_t)va_arg(ap, void*);
        base = 16;
        goto num;
      case 'x':
      case 'X':
        base = 16;
        goto uns;
      case 'o':
        base = 8; /* fall through */
      case 'u':
      uns:
        u = l >= 2 ? va_arg(ap, unsigned long long)
            : l    ? va_arg(ap, unsigned long)
                   : va_arg(ap, unsigned);
      num : {
        int p = 71;
        do {
          int d = u % base;
          buf[p--] = d < 10 ? '0' + d : (*f == 'X' ? 'A' : 'a') + d - 10;
          u /= base;
        } while (u);
        while (71 - p < prec) buf[p--] = '0';
        if (zero && !left && prec < 0)
          while (71 - p < width - (neg || plus)) buf[p--] = '0';
        if (neg)
          buf[p--] = '-';
        else if (plus)
          buf[p--] = '+';
        s = buf + p + 1;
        len = 71 - p;
        break;
      }
      case 'c':
        buf[0] = (char)va_arg(ap, int);
        len = 1;
        break;
      case 's':
        s = va_arg(ap, const char*);
        if (!s) s = "(null)";
        len = prec >= 0 ? (int)strnlen(s, prec) : (int)strlen(s);
        break;
      case '%':
        buf[0] = '%';
        len = 1;
        break;
      case 'f':
      case 'g':
      case 'e':
        (void)va_arg(ap, double);
        s = "?";
        len = 1;
        break;
      default:
        __sys_exit(99);
    }
    for (int i = len; !left && i < width; i++) PUT(' ');
    for (int i = 0; i < len; i++) PUT(s[i]);
    for (int i = len; left && i < width; i++) PUT(' ');
  }
  if (cap) o[n < cap ? n : cap - 1] = 0;
  return (int)n;
}
WEAK int vsprintf(char* o, const char* f, va_list ap) { return vsnprintf(o, 1u << 30, f, ap); }
WEAK int sprintf(char* o, const char* f, ...) {
  va_list ap;
  va_start(ap, f);
  int r = vsnprintf(o, 1u << 30, f, ap);
  va_end(ap);
  return r;
}
WEAK int snprintf(char* o, size_t c, const char* f, ...) {
  va_list ap;
  va_start(ap, f);
  int r = vsnprintf(o, c, f, ap);
  va_end(ap);
  return r;
}
WEAK int vprintf(const char* f, va_list ap) {
  char b[512];
  int r = vsnprintf(b, sizeof b, f, ap);
  __sys_write(1, b, r < 511 ? r : 511);
  return r;
}
WEAK int printf(const char* f, ...) {
  va_list ap;
  va_start(ap, f);
  int r = vprintf(f, ap);
  va_end(ap);
  return r;
}
WEAK int puts(const char* s) {
  __sys_write(1, s, strlen(s));
  __sys_write(1, "\n", 1);
  return 0;
}
WEAK int putchar(int c) {
  char b = (char)c;
  __sys_write(1, &b, 1);
  return c;
}
WEAK int fflush(void* f) {
  (void)f;
  return 0;
}
/* FILE-based output is deliberately absent: tests that need it are "needs libc". */
WEAK int* __errno_location(void) { return &errno; }
