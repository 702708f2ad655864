// Accesses to `pages` that may fault: a loop goes on at `back` when SIGSEGV or SIGBUS comes, and
// what came is noted. One translation unit per program.
#ifndef GPUSIM_TESTS_FAULT_RETURN_H
#define GPUSIM_TESTS_FAULT_RETURN_H

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { kPage = 4096 };
static uint8_t* pages;
static sigjmp_buf back;
static volatile uintptr_t fault_at;  // from the first page on
static volatile int last_signal;

static void leave(int signal, siginfo_t* info, void* context) {
  (void)context;
  fault_at = (uintptr_t)info->si_addr - (uintptr_t)pages;
  last_signal = signal;
  siglongjmp(back, 1);
}

static void return_from_faults(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = leave;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
}

#endif
