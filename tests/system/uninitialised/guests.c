// Programs that use what they never set, and programs that do not: -DMODE says which. A line that
// is to be reported has the mode's name in a comment. All return 0, whatever they find.
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

// Compilers cannot see through it: what it sets may be unset.
struct pair {
  int first, second;
};
static void set_if_impl(int* p, int condition) {
  if (condition) *p = 5;
}
static void fill_impl(unsigned char* p, size_t n, int value) {
  for (size_t i = 0; i < n; ++i) p[i] = (unsigned char)value;
}
static void (*volatile set_if)(int*, int) = set_if_impl;
static void (*volatile fill)(unsigned char*, size_t, int) = fill_impl;
static volatile int sink;

#if defined(LOCAL)
static int test(void) {
  int x;
  set_if(&x, 0);
  if (x > 3) sink = 1;  // LOCAL
  return 0;
}
#elif defined(EQUAL)
static int test(void) {
  int x;
  set_if(&x, 0);
  if (x == 12345) sink = 1;  // EQUAL
  return 0;
}
#elif defined(FIELD)
static int test(void) {
  struct pair p;
  set_if(&p.first, 1);
  set_if(&p.second, 0);
  if (p.first == 5) sink = 1;
  const struct pair copy = p;
  if (copy.second < 7) sink = 2;  // FIELD
  return 0;
}
#elif defined(HEAP)
static int test(void) {
  int* const a = malloc(40 * sizeof *a);
  int sum = 0;
  for (int i = 0; i < 39; ++i) set_if(&a[i], 1);
  for (int i = 0; i < 40; ++i) sum += a[i];
  if (sum > 1000) sink = 1;  // HEAP
  free(a);
  return 0;
}
#elif defined(GROWN)
static int test(void) {
  int* a = malloc(4 * sizeof *a);
  for (int i = 0; i < 4; ++i) set_if(&a[i], 1);
  a = realloc(a, 4096 * sizeof *a);
  if (a[3] == 5) sink = 1;
  if (a[4] == 5) sink = 2;  // GROWN
  free(a);
  return 0;
}
#elif defined(FREED)
static int test(void) {
  int* const a = malloc(64 * sizeof *a);
  int* volatile again = a;
  for (int i = 0; i < 64; ++i) set_if(&a[i], 1);
  free(a);
  if (again[20] == 5) sink = 1;  // FREED
  return 0;
}
#elif defined(BITFIELD)
struct flags {
  unsigned a : 3, b : 5, c : 9;
};
static void set_a_impl(struct flags* f) { f->a = 5; }
static void (*volatile set_a)(struct flags*) = set_a_impl;
static int test(void) {
  struct flags f;
  set_a(&f);
  if (f.a == 5) sink = 1;
  if (f.b == 5) sink = 2;  // BITFIELD
  return 0;
}
#elif defined(WRITE)
static int test(void) {
  unsigned char text[32];
  fill(text, 20, 'x');
  text[20] = '\n';
  if (write(2, text, 28) < 0) return 1;  // WRITE
  return 0;
}
#elif defined(LENGTH)
static int test(void) {
  int n;
  set_if(&n, 0);
  if (write(2, "text\n", (unsigned)n % 6) < 0) sink = 1;  // LENGTH
  return 0;
}
#elif defined(INDEX)
static volatile int table[256];
static int test(void) {
  int i;
  set_if(&i, 0);
  sink = table[i & 255];  // INDEX
  return 0;
}
#elif defined(ADDRESS)
static void target(void) { sink = 1; }
static void set_target_impl(void (**p)(void), int condition) {
  if (condition) *p = target;
}
static void (*volatile set_target)(void (**)(void), int) = set_target_impl;
static int test(void) {
  void (*list[2])(void);
  set_target(&list[0], 1);
  list[0]();
  union {
    void (*function)(void);
    uintptr_t bits;
  } u;
  set_target(&u.function, 0);
  // The low bit of nobody knows which value, and two calls that are the same.
  void (*const both[2])(void) = {target, target};
  both[u.bits & 1]();  // ADDRESS
  return 0;
}
#elif defined(JUMP)
static void* (*volatile copy)(void*, const void*, size_t) = memcpy;
static void target(void) { sink = 1; }
static int test(void) {
  int x, y;
  set_if(&x, 0);
  copy(&y, &x, sizeof y);
  // What two copies of one value have in common is not seen.
  void (*const function)(void) = (void (*)(void))((uintptr_t)target + (unsigned)(x ^ y));
  function();  // JUMP
  return 0;
}
#elif defined(PRINT)
static int test(void) {
  int x;
  set_if(&x, 0);
  fprintf(stderr, "%d\n", x);  // PRINT
  return 0;
}
#elif defined(LENGTH_OF)
static int test(void) {
  char* text = malloc(256);
  fill((unsigned char*)text, 255, 'x');
  free(text);
  text = malloc(256);
  // Beyond what the heap has of freed blocks.
  sink = (int)strnlen(text + 64, 192);  // LENGTH_OF
  free(text);
  return 0;
}
#elif defined(COMPARED)
static int test(void) {
  struct pair a, b;
  set_if(&a.first, 1);
  set_if(&b.first, 1);
  set_if(&a.second, 0);
  set_if(&b.second, 1);
  sink = memcmp(&a, &b, sizeof a);  // COMPARED
  if (sink == 0) sink = 1;          // COMPARED
  return 0;
}
#elif defined(REAL)
static void set_real_impl(double* p, int condition) {
  if (condition) *p = 5;
}
static void (*volatile set_real)(double*, int) = set_real_impl;
static int test(void) {
  double x;
  set_real(&x, 0);
  if (x * 2 + 1 > 3) sink = 1;  // REAL
  return 0;
}
#elif defined(LANES)
static void set_reals_impl(float* p, int n) {
  for (int i = 0; i < n; ++i) p[i] = (float)i;
}
static void (*volatile set_reals)(float*, int) = set_reals_impl;
static int test(void) {
  float x[64], most = 0;
  set_reals(x, 63);
  for (int i = 0; i < 64; ++i) x[i] = x[i] * 2 + 1;
  if (x[62] > 100) sink = 1;
  for (int i = 0; i < 64; ++i) most = most > x[i] ? most : x[i];  // LANES
  if (most > 1000) sink = 2;                                      // LANES
  return 0;
}
#elif defined(VECTORS)
#ifdef __riscv
static int count_equal(const int* a, const int* b, unsigned long n) {
  int count = 0;
  for (unsigned long done = 0, vl = 0; done < n; done += vl) {
    unsigned long equal;
    __asm__ volatile(
        ".option push\n.option arch, +v\n"
        "vsetvli %0, %2, e32, m2, ta, ma\n"
        "vle32.v v2, (%3)\n"
        "vle32.v v4, (%4)\n"
        "vadd.vi v4, v4, 0\n"
        "vmseq.vv v0, v2, v4\n"
        "vcpop.m %1, v0\n"
        ".option pop"
        : "=&r"(vl), "=&r"(equal)
        : "r"(n - done), "r"(a + done), "r"(b + done)
        : "memory");
    count += (int)equal;
  }
  return count;
}
#else
static int count_equal(const int* a, const int* b, unsigned long n) {
  int count = 0;
  for (unsigned long i = 0; i < n; ++i) count += a[i] == b[i];
  return count;
}
#endif
static int test(void) {
  int a[40], b[40];
  for (int i = 0; i < 40; ++i) set_if(&a[i], 1), set_if(&b[i], i != 37);
  if (count_equal(a, b, 37) == 37) sink = 1;
  if (count_equal(a, b, 40) == 40) sink = 2;  // VECTORS
  return 0;
}
#elif defined(PRIVATE)
static int test(void) {
  int x = 3;
#pragma omp parallel private(x)
  {
    set_if(&x, omp_get_thread_num() < 0);
    if (x == 3) sink = 1;  // PRIVATE
  }
  return x - 3;
}
#elif defined(SHARED)
static int test(void) {
  int* const a = malloc(1024 * sizeof *a);
#pragma omp parallel for
  for (int i = 0; i < 1000; ++i) set_if(&a[i], 1);
  int total = 0;
#pragma omp parallel for
  for (int i = 0; i < 1024; ++i) {
    if (a[i] == 5) __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);  // SHARED
  }
  free(a);
  sink = total;
  return 0;
}

// --- right ones
#elif defined(PADDING)
struct padded {
  char c;
  int i;
  char last;
};
static void set_padded_impl(struct padded* p) {
  p->c = 1;
  p->i = 2;
  p->last = 3;
}
static void (*volatile set_padded)(struct padded*) = set_padded_impl;
static int test(void) {
  struct padded a, b, *const heap = malloc(sizeof *heap);
  set_padded(&a);
  memcpy(&b, &a, sizeof b);
  *heap = b;
  struct padded* const more = realloc(heap, 100 * sizeof *heap);
  more[1] = more[0];
  return more[1].c + more[1].i + more[1].last + b.i - 8;
}
#elif defined(PARTS)
// Bits that are set, of words others of which are not.
static int test(void) {
  union {
    unsigned char bytes[8];
    uint64_t word;
    uint32_t half;
  } u;
  fill(u.bytes, 3, 0x15);
  if (u.word & 0x10) sink = 1;
  if ((u.half & 0xffffff) == 0x151515) sink = 2;
  if ((u.half << 8) == 0x15151500) sink = 3;
  if ((u.word ^ u.word) == 0) sink = 4;
  if (((u.word | ~(uint64_t)0xff) & 1) != 0) sink = 5;
  if ((uint8_t)(u.word * 3) == 0x3f) sink = 6;
  if ((uint16_t)(u.word + 0x1111) == 0x2626) sink = 7;
  if (__builtin_ctzll(u.word) == 0) sink = 8;
  if ((u.word & 0xff) < 0x20) sink = 9;
  return sink - 9;
}
#elif defined(ZEROED)
static int test(void) {
  int count = 0;
  for (int round = 0; round < 20; ++round) {
    unsigned char* const dirty = malloc(2000);
    fill(dirty, 2000, 7);
    free(dirty);
    unsigned char* const clean = calloc(20, 100);
    for (int i = 0; i < 2000; ++i) count += clean[i] != 0;
    free(clean);
  }
  unsigned char* const large = calloc(1, 1 << 20);
  for (int i = 0; i < 1 << 20; ++i) count += large[i] != 0;
  free(large);
  return count;
}
#elif defined(STRINGS)
static int test(void) {
  int sum = 0;
  for (size_t n = 1; n < 70; ++n) {
    char* const block = malloc(n + 9);
    char* const text = block + n % 9;
    fill((unsigned char*)text, n - 1, 'a' + (int)n % 3);
    text[n - 1] = 0;
    char* const other = strdup(text);
    sum += (int)strlen(text) + strcmp(text, other) + (strchr(text, 'q') != NULL);
    sum += strncmp(text, other, n + 5) + (strrchr(text, 'z') != NULL) + (int)strnlen(text, 200);
    sum += memchr(text, 0, n) == NULL;
    sum += memcmp(text, other, n) + (strstr(other, "aab") != NULL);
    char* const third = malloc(2 * n + 7);
    strcpy(third, text);
    strcat(third, other);
    sum += (int)strlen(third) + (int)strspn(text, "abc") + (int)strcspn(text, "x");
    free(block);
    free(other);
    free(third);
  }
  char line[100];
  snprintf(line, sizeof line, "%d %s %5.2f %c", sum, "text", 1.5, 'c');
  return strtol(line, NULL, 10) == sum ? 0 : 1;
}
#elif defined(JUMPS)
static jmp_buf back;
static ucontext_t main_context, other_context;
static char stack[65536];
static int depth_of(int n) {
  volatile char room[200];
  room[n % 200] = 1;
  if (n == 0) longjmp(back, 1);
  return depth_of(n - 1) + room[n % 200];
}
static void other(void) {
  for (int i = 0; i < 3; ++i) {
    sink += i;
    swapcontext(&other_context, &main_context);
  }
}
static int test(void) {
  int kept[50];
  for (int i = 0; i < 50; ++i) set_if(&kept[i], 1);
  if (setjmp(back) == 0) depth_of(100);
  getcontext(&other_context);
  other_context.uc_stack.ss_sp = stack;
  other_context.uc_stack.ss_size = sizeof stack;
  other_context.uc_link = &main_context;
  makecontext(&other_context, other, 0);
  for (int i = 0; i < 3; ++i) swapcontext(&main_context, &other_context);
  int count = 0;
  for (int i = 0; i < 50; ++i) count += kept[i] != 5;
  return count;
}
#elif defined(SIGNALS)
static void handler(int number) {
  volatile char room[500];
  for (int i = 0; i < 500; ++i) room[i] = (char)number;
  sink += room[499];
}
static int test(void) {
  int kept[50];
  for (int i = 0; i < 50; ++i) set_if(&kept[i], 1);
  signal(SIGUSR1, handler);
  for (int i = 0; i < 5; ++i) raise(SIGUSR1);
  int count = 0;
  for (int i = 0; i < 50; ++i) count += kept[i] != 5;
  return count;
}
#elif defined(SORTED)
static int compare(const void* a, const void* b) {
  const int x = *(const int*)a, y = *(const int*)b;
  return (x > y) - (x < y);
}
static int rooms(int n) {
  int room[n];
  for (int i = 0; i < n; ++i) room[i] = i;
  int* const more = __builtin_alloca((size_t)n * sizeof *more);
  for (int i = 0; i < n; ++i) more[i] = room[n - 1 - i];
  qsort(more, (size_t)n, sizeof *more, compare);
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += more[i] != i;
  return wrong;
}
static int test(void) {
  int wrong = 0;
  for (int n = 1; n < 60; n += 7) wrong += rooms(n);
  return wrong;
}
#elif defined(TEAM)
static int test(void) {
  int* const a = malloc(1000 * sizeof *a);
  long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 7)
  for (int i = 0; i < 1000; ++i) {
    int own[8];
    for (int k = 0; k < 8; ++k) set_if(&own[k], 1);
    a[i] = own[i % 8];
    sum += a[i];
  }
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 20; ++i) {
#pragma omp task firstprivate(i) shared(a)
    a[i] += i;
  }
  for (int i = 0; i < 1000; ++i) sum += a[i] != 5;
  free(a);
  return sum == 5000 + 19 ? 0 : 1;
}
#endif

int main(void) {
  const int result = test();
  (void)set_if;
  (void)fill;
  return result;
}
