// Stacks of pool threads.
//
// Under gpusim each core has a stack of its own from the start, in memory laid out so that cores in
// lockstep touch neighbouring words; a POSIX thread brings another one, of at least 128 KiB. Pool
// threads therefore get just enough for pthread_create and the thread's descriptor, and go on to
// the core's own stack at once. OMP_STACKSIZE asks for ordinary stacks of that size instead.
#include <elf.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "omp_internal.h"

// libgpusim/guest/gpusim_guest.h
#define GPUSIM_AT_STACK_DISTANCE UINT64_C(0x47505302)
#define GPUSIM_AT_STACK_TOP UINT64_C(0x47505303)

enum {
  kPage = 4096,
  // glibc's thread descriptor and TLS surplus, and the frames until the change of stack.
  kSmallStack = 7168,
};

struct core_stacks gpusim_omp_stacks;

static struct {
  char* next;
  uint64_t size, distance;
  uint64_t first_core_top, core_distance;
} small;

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) & ~(to - 1); }

static uint64_t static_tls_size(void) {
  const Elf64_Phdr* header = (const Elf64_Phdr*)getauxval(AT_PHDR);
  for (uint64_t n = getauxval(AT_PHNUM); n-- > 0; ++header)
    if (header->p_type == PT_TLS) return header->p_memsz + header->p_align;
  return 0;
}

void omp_prepare_stacks(void* attributes, uint32_t threads) {
  pthread_attr_t* const a = attributes;
  pthread_attr_init(a);
  pthread_attr_setdetachstate(a, PTHREAD_CREATE_DETACHED);
  const uint64_t least = (uint64_t)PTHREAD_STACK_MIN + static_tls_size();
  if (omp.stack_size != 0) {
    if (gpusim_omp_on_gpusim) pthread_attr_setguardsize(a, 0);
    pthread_attr_setstacksize(a, round_up(omp.stack_size < least ? least : omp.stack_size, kPage));
    return;
  }
  small.core_distance = gpusim_omp_on_gpusim ? getauxval(GPUSIM_AT_STACK_DISTANCE) : 0;
  if (small.core_distance == 0) return;  // the system's usual stacks
  // Only the uppermost part of each is used, so that they may overlap.
  small.distance = round_up(static_tls_size() + kSmallStack, kPage);
  small.size = round_up(least, kPage) + small.distance;
  const uint64_t all = (threads - 1) * small.distance + small.size;
  char* const memory = mmap(0, all, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED)
    omp_fatal("no memory for %u threads; gpusim run --memory-size gives more", threads);
  small.next = memory;
  small.first_core_top = getauxval(GPUSIM_AT_STACK_TOP);
  gpusim_omp_stacks = (struct core_stacks){.begin = small.first_core_top,
                                           .size = (omp.cores - 1) * small.core_distance,
                                           .distance_mask = small.core_distance - 1};
}

// Puts the stack of the next thread into the attributes.
bool omp_next_stack(void* attributes) {
  if (small.core_distance == 0) return true;
  char* const stack = small.next;
  small.next += small.distance;
  return pthread_attr_setstack(attributes, stack, small.size) == 0;
}

#ifndef GPUSIM_OMP_IN_GUEST
static void gpusim_isa_call_on_stack(uint64_t top, void (*function)(void*), void* argument) {
  (void)top;
  function(argument);
}
#endif

void omp_leave_small_stack(void (*function)(void*), void* argument) {
  if (small.core_distance == 0) {
    function(argument);
    return;
  }
  unsigned core;
  if (syscall(SYS_getcpu, &core, (void*)0, (void*)0) != 0) omp_fatal("getcpu fails");
  const uint64_t top = small.first_core_top + core * small.core_distance;
  // What lies at the top of all stacks is what the host put onto the first one.
  memset((void*)(top - kThreadRoom), 0, kThreadRoom);
  gpusim_isa_call_on_stack(top - kThreadRoom, function, argument);
}
