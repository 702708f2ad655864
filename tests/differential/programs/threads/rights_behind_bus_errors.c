// cores: 1
// A hot loop loads behind a file's end, and then stores to a page of the same mapping that may only
// be read. Both signals come, whichever is first: SIGBUS may be some accesses late.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096 };
static uint8_t* pages;
static sigjmp_buf back;
static volatile int bus_errors, bad_accesses;
static volatile uintptr_t bad_at;
static int file;

static void on_bus_error(int signal) {
  (void)signal;
  ++bus_errors;
  if (ftruncate(file, 4 * kPage) != 0) _exit(1);  // the load succeeds when it is repeated
}
static void on_bad_access(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  ++bad_accesses;
  bad_at = (uintptr_t)info->si_addr - (uintptr_t)pages;
  siglongjmp(back, 1);
}

// Without a branch: the last turn is as hot as the others.
__attribute__((noinline)) static void touch(uint64_t last) {
  for (uint64_t i = 0; i <= last; ++i) {
    const uint64_t is_last = i / last;
    (void)*(volatile uint8_t*)(pages + is_last * kPage);
    *(volatile uint8_t*)(pages + is_last * 3 * kPage) = 7;
  }
}

int main(void) {
  struct sigaction bus, bad;
  memset(&bus, 0, sizeof bus);
  memset(&bad, 0, sizeof bad);
  bus.sa_handler = on_bus_error;
  bad.sa_sigaction = on_bad_access;
  bad.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &bus, NULL);
  sigaction(SIGSEGV, &bad, NULL);
  file = memfd_create("pages", 0);
  if (ftruncate(file, kPage) != 0) return 1;
  pages = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  mprotect(pages + 3 * kPage, kPage, PROT_READ);
  for (volatile int round = 0; round < 2; ++round) {
    if (ftruncate(file, kPage) != 0) return 1;
    if (sigsetjmp(back, 1) == 0) touch(20000);
    while (bus_errors <= round) {
    }
    printf("round %d: %d bus errors, %d bad accesses, the last at %lx\n", round, bus_errors,
           bad_accesses, (unsigned long)bad_at);
  }
  return 0;
}
