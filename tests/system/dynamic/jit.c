// Programs that write code while they run. MODE chooses how. Each prints what the code returned.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined __aarch64__
enum { kWords = 2 };
static void function(uint32_t* at, int value) {
  at[0] = 0x52800000 | (uint32_t)value << 5;  // mov w0, #value
  at[1] = 0xd65f03c0;                         // ret
}
#else
enum { kWords = 2 };
static void function(uint32_t* at, int value) {
  at[0] = 0x00000513 | (uint32_t)value << 20;  // li a0, value
  at[1] = 0x00008067;                          // ret
}
#endif

static int call(void* at) { return ((int (*)(void))at)(); }
static void flush(void* at, size_t size) { __builtin___clear_cache((char*)at, (char*)at + size); }
static void* pages(size_t size, int protection) {
  void* at = mmap(0, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) exit(99);
  return at;
}

// Written, made executable, written again elsewhere in the page and in the same place.
static int toggled(void) {
  uint32_t* at = pages(4096, PROT_READ | PROT_WRITE);
  int sum = 0;
  for (int i = 0; i < 100; ++i) {
    mprotect(at, 4096, PROT_READ | PROT_WRITE);
    function(at + i % 50 * kWords, i);
    flush(at, 4096);
    mprotect(at, 4096, PROT_READ | PROT_EXEC);
    for (int k = 0; k <= i && k < 50; ++k) sum += call(at + k * kWords);
  }
  return sum;
}

// A page that may be written and executed: its first function changes while the loop calls it.
static int rewritten(void) {
  uint32_t* at = pages(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  int sum = 0;
  for (int i = 0; i < 200; ++i) {
    function(at, i);
    flush(at, 4 * kWords);
    sum += call(at);
  }
  return sum;
}

// Data in the page of the code changes, and the code does not.
static int beside(void) {
  uint32_t* at = pages(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  volatile int* data = (int*)(at + 512);
  function(at, 3);
  flush(at, 4 * kWords);
  int sum = 0;
  for (int i = 0; i < 1000; ++i) {
    data[i % 8] += i;
    sum += call(at) + data[i % 8] % 7;
  }
  return sum;
}

// Other code at an address from which code was unmapped.
static int remapped(void) {
  int sum = 0;
  void* first = pages(65536, PROT_READ | PROT_WRITE | PROT_EXEC);
  for (int i = 1; i <= 20; ++i) {
    function(first, i);
    flush(first, 4 * kWords);
    sum += call(first);
    munmap(first, 65536);
    void* at = mmap(first, 65536, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (at != first) exit(98);
  }
  return sum;
}

// read(2) writes the code.
static int read_in(void) {
  uint32_t* at = pages(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  int ends[2], sum = 0;
  if (pipe(ends) != 0) exit(97);
  for (int i = 1; i <= 30; ++i) {
    uint32_t words[kWords];
    function(words, i);
    if (write(ends[1], words, sizeof words) != sizeof words) exit(96);
    if (read(ends[0], at, sizeof words) != sizeof words) exit(95);
    flush(at, sizeof words);
    sum += call(at);
  }
  return sum;
}

// A hot loop, so that it has native code, calls what changes under it.
static int hot(void) {
  uint32_t* at = pages(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  int sum = 0;
  for (int round = 0; round < 8; ++round) {
    function(at, round + 1);
    flush(at, 4 * kWords);
    for (int i = 0; i < 20000; ++i) sum += call(at);
  }
  return sum;
}

static uint32_t* shared_code;
static void* worker(void* number) {
  long sum = 0;
  for (int i = 0; i < 3000; ++i) sum += call(shared_code + (long)number * kWords);
  return (void*)sum;
}
// Threads call what another thread wrote before they began.
static int threads(void) {
  enum { kThreads = 3 };
  shared_code = pages(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  long sum = 0;
  for (int round = 0; round < 5; ++round) {
    pthread_t ids[kThreads];
    for (int t = 0; t < kThreads; ++t) function(shared_code + t * kWords, round * 10 + t);
    flush(shared_code, 4 * kWords * kThreads);
    for (long t = 0; t < kThreads; ++t) pthread_create(&ids[t], 0, worker, (void*)t);
    for (int t = 0; t < kThreads; ++t) {
      void* one;
      pthread_join(ids[t], &one);
      sum += (long)one;
    }
  }
  return (int)sum;
}

// Threads write functions and data of their own into one page, at the same time. Where a call
// leads to the page while another thread writes, all of them have to go on.
static void* writer(void* number) {
  uint32_t* const at = shared_code + 32 * (long)number;
  volatile uint32_t* const data = at + 16;
  long sum = 0;
  for (int i = 0; i < 20; ++i) {
    function(at + i % 4 * kWords, i);
    data[i % 4] += i;
    flush(at, 16 * kWords);
    sum += call(at + i % 4 * kWords) + data[i % 4] % 7;
  }
  return (void*)sum;
}
static int together(void) {
  enum { kThreads = 8 };
  pthread_t ids[kThreads];
  long sum = 0;
  shared_code = pages(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  for (long t = 0; t < kThreads; ++t) pthread_create(&ids[t], 0, writer, (void*)t);
  for (int t = 0; t < kThreads; ++t) {
    void* one;
    pthread_join(ids[t], &one);
    sum += (long)one;
  }
  return (int)sum;
}

int main(int argc, char** argv) {
  static int (*const kModes[])(void) = {toggled, rewritten, beside,  remapped,
                                        read_in, hot,       threads, together};
  const int mode = argc > 1 ? atoi(argv[1]) : 0;
  printf("mode %d: %d\n", mode, kModes[mode]());
  return 0;
}
