// cores: 1
// Loops that ran often before an access to a file's pages faults: behind the file's end, and where
// it may only be read.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../libc/fault_return.h"

// The signal may come some loads later.
__attribute__((noinline)) static void load_behind_the_file(void) {
  for (uint64_t i = 0;; ++i) *(volatile uint8_t*)(pages + (i < 20000 ? 0 : 3 * kPage));
}
__attribute__((noinline)) static void store_from(uint8_t* p) {
  for (;; ++p) *(volatile uint8_t*)p = 3;
}

int main(void) {
  return_from_faults();
  const int fd = memfd_create("pages", 0);
  if (ftruncate(fd, 3 * kPage) != 0) return 1;
  pages = mmap(NULL, 4 * kPage, PROT_READ, MAP_SHARED, fd, 0);
  if (sigsetjmp(back, 1) == 0) load_behind_the_file();
  printf("behind the file: signal %d\n", last_signal);
  if (ftruncate(fd, 4 * kPage) != 0) return 1;
  for (volatile int i = 0; i < 4; ++i) {
    if (sigsetjmp(back, 1) == 0) store_from(pages + i * kPage);
    printf("not to be written: signal %d at %lx\n", last_signal, (unsigned long)fault_at);
  }
  mprotect(pages, 3 * kPage, PROT_READ | PROT_WRITE);
  for (volatile int i = 0; i < 2; ++i) {
    if (sigsetjmp(back, 1) == 0) store_from(pages);
    printf("may be written: signal %d at %lx\n", last_signal, (unsigned long)fault_at);
    mprotect(pages + kPage, kPage, PROT_READ);
  }
  return 0;
}
