// Address space: mappings over the heap and data, holes, moving, advice, rights. What qemu-user 7.2 does
// otherwise than Linux (shrinking breaks, MAP_FIXED_NOREPLACE, wrong advice) is in tests/unit/host.
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = 4096 };
static sigjmp_buf back;
static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)context;
  siglongjmp(back, signal * 10 + info->si_code);
}
// 0: can be read and written; else the signal and its reason.
static int touch(volatile char* p, int write_it) {
  const int fault = sigsetjmp(back, 1);
  if (fault) return fault;
  const char c = *p;
  if (write_it) *p = c;
  return 0;
}
static int failed(void* p) { return p == MAP_FAILED ? errno : 0; }
static void* map(void* at, size_t size, int rights, int flags) {
  return mmap(at, size, rights, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}
static int sum(const char* p, size_t size) {
  int total = 0;
  for (size_t i = 0; i < size; i++) total += p[i];
  return total;
}

static void over_the_heap(void) {
  char* const begin = sbrk(0);
  char* const first = (char*)(((uintptr_t)begin + kPage - 1) & ~(uintptr_t)(kPage - 1));
  sbrk(first - begin + 8 * kPage);
  memset(first, 3, 8 * kPage);
  char* const end = sbrk(0);
  printf("fixed: %d\n", map(first + 2 * kPage, kPage, PROT_NONE, MAP_FIXED) == first + 2 * kPage);
  printf("touch: %d %d %d\n", touch(first + 2 * kPage - 1, 1), touch(first + 2 * kPage, 0),
         touch(first + 3 * kPage, 1));
  printf("break stays: %d\n", sbrk(0) == end);
  printf("rights: %d, touch %d, sum %d\n",
         mprotect(first + 2 * kPage, kPage, PROT_READ | PROT_WRITE), touch(first + 2 * kPage, 1),
         sum(first, 8 * kPage));
  printf("advice: %d, sum %d\n", madvise(first + 4 * kPage, kPage, MADV_DONTNEED),
         sum(first, 8 * kPage));
  printf("unmap: %d, touch %d\n", munmap(first + 5 * kPage, kPage), touch(first + 5 * kPage, 0));
  errno = 0;
  const int hole = mprotect(first + 4 * kPage, 3 * kPage, PROT_READ);
  printf("over a hole: %d, errno %d\n", hole, errno);
  mprotect(first + 4 * kPage, kPage, PROT_READ | PROT_WRITE);
  printf("shrink: %d\n", sbrk(-6 * kPage) == end);
  printf("kept %d\n", touch(first + kPage, 1));
}

static char area[4 * kPage] __attribute__((aligned(4096))) = {1};
static void over_data(void) {
  memset(area, 5, sizeof area);
  printf("data: %d\n", map(area + kPage, kPage, PROT_READ, MAP_FIXED) == area + kPage);
  printf("touch: %d %d, sum %d\n", touch(area + kPage, 0), touch(area + kPage, 1),
         sum(area, sizeof area));
}

static void holes_and_moves(void) {
  char* p = map(NULL, 16 * kPage, PROT_READ | PROT_WRITE, 0);
  memset(p, 1, 16 * kPage);
  printf("middle: %d, touch %d %d %d\n", munmap(p + 4 * kPage, 2 * kPage), touch(p + 3 * kPage, 1),
         touch(p + 4 * kPage, 0), touch(p + 6 * kPage, 1));
  printf("nothing there: %d\n", munmap(p + 4 * kPage, 2 * kPage));
  printf("across: %d\n", failed(mremap(p, 8 * kPage, 9 * kPage, MREMAP_MAYMOVE)));
  printf("into the hole: %d\n", mremap(p, 4 * kPage, 5 * kPage, 0) == p);
  printf("no room: %d\n", failed(mremap(p, 5 * kPage, 8 * kPage, 0)));
  char* q = mremap(p, 5 * kPage, 8 * kPage, MREMAP_MAYMOVE);
  printf("moved: %d, sum %d, old %d\n", q != p && q != MAP_FAILED, sum(q, 8 * kPage), touch(p, 0));
  printf("back: %d, sum %d\n",
         mremap(q, 8 * kPage, 2 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p,
         sum(p, 2 * kPage));
  printf("overlap: %d\n",
         failed(mremap(p, 2 * kPage, 2 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, p + kPage)));
  printf("fixed alone: %d\n", failed(mremap(p, kPage, kPage, MREMAP_FIXED, q)));
  printf("flags: %d, aligned: %d\n", failed(mremap(p, kPage, kPage, 64)),
         failed(mremap(p + 1, kPage, kPage, 0)));
  printf("shrink: %d, touch %d %d\n", mremap(p, 2 * kPage, kPage, 0) == p, touch(p, 1),
         touch(p + kPage, 0));
}

static void rights(void) {
  char* p = map(NULL, 3 * kPage, PROT_NONE, MAP_NORESERVE);
  printf("none: %d\n", touch(p, 0));
  mprotect(p, kPage, PROT_READ);
  printf("read: %d %d\n", touch(p, 0), touch(p, 1));
  mprotect(p + kPage, kPage, PROT_WRITE);
  printf("write: %d\n", touch(p + kPage, 1));
  errno = 0;
  const int odd = mprotect(p + 1, kPage, PROT_READ), why = errno;
  printf("odd: %d %d\n", odd, why);
  printf("lengths: %d %d\n", failed(map(NULL, 0, PROT_READ, 0)),
         failed(mmap(NULL, kPage, PROT_READ, MAP_ANONYMOUS, -1, 0)));
  printf("advice: %d", madvise(p, 3 * kPage, MADV_WILLNEED));
  printf(" %d\n", madvise(p + 1, kPage, MADV_NORMAL));
}

int main(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  over_the_heap();
  over_data();
  holes_and_moves();
  rights();
  return 0;
}
