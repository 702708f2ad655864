/* Runs the oracle's cases on the machine that executes this program. Every case ends with a signal:
 * its handler stores the case's registers and returns to the next case, with that one's. Reads
 * cases from standard input, writes results to standard output (protocol.h).
 *
 * Linked without relaxation: gp, like all registers, is the case's in the handler. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "protocol.h"

enum { kWindowWords = ORACLE_WINDOW_BYTES / 8 };

static struct oracle_case* cases;
static struct oracle_result* results;
static struct oracle_change* changes;
static uint64_t change_count, change_room;
static uint64_t case_count, next;
static uint64_t pristine[kWindowWords];
static ucontext_t home;

static void load(ucontext_t* uc, const struct oracle_case* c) {
  uc->uc_mcontext.__gregs[REG_PC] = ORACLE_CODE + c->code_offset;
  for (int i = 1; i < 32; ++i) uc->uc_mcontext.__gregs[i] = c->state.x[i];
  for (int i = 0; i < 32; ++i) uc->uc_mcontext.__fpregs.__d.__f[i] = c->state.f[i];
  uc->uc_mcontext.__fpregs.__d.__fcsr = (uint32_t)c->state.fcsr;
}

static void store(const ucontext_t* uc, struct oracle_result* r, int signal_number) {
  r->signal = (uint32_t)signal_number;
  r->pc = uc->uc_mcontext.__gregs[REG_PC];
  for (int i = 1; i < 32; ++i) r->state.x[i] = uc->uc_mcontext.__gregs[i];
  for (int i = 0; i < 32; ++i) r->state.f[i] = uc->uc_mcontext.__fpregs.__d.__f[i];
  r->state.fcsr = uc->uc_mcontext.__fpregs.__d.__fcsr;
  uint64_t* window = (uint64_t*)ORACLE_WINDOW;
  for (uint64_t w = 0; w < kWindowWords; ++w) {
    if (window[w] == pristine[w]) continue;
    if (change_count == change_room) _exit(5);
    changes[change_count++] = (struct oracle_change){w * 8, window[w]};
    ++r->change_count;
    window[w] = pristine[w];
  }
}

/* The thread pointer is the case's here: no library calls. The first signal is our own. */
static void on_signal(int number, siginfo_t* info, void* context) {
  ucontext_t* uc = context;
  (void)info;
  if (next == 0) {
    home = *uc;
  } else {
    store(uc, &results[next - 1], number);
  }
  if (next == case_count) {
    uc->uc_mcontext = home.uc_mcontext;
    uc->uc_mcontext.__gregs[REG_PC] += 4; /* behind the EBREAK */
    return;
  }
  load(uc, &cases[next++]);
}

static void fail(const char* what) {
  perror(what);
  exit(2);
}

static void* map_at(uint64_t address, size_t bytes) {
  void* p = mmap((void*)address, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (p == MAP_FAILED) fail("mmap");
  return p;
}

int main(void) {
  struct oracle_header header;
  if (fread(&header, sizeof header, 1, stdin) != 1 || header.magic != ORACLE_MAGIC ||
      header.case_count == 0 || header.case_count > ORACLE_MAX_CASES)
    return 2;
  case_count = header.case_count;
  change_room = 64 * case_count;
  cases = calloc(case_count, sizeof *cases);
  results = calloc(case_count, sizeof *results);
  changes = calloc(change_room, sizeof *changes);
  if (!cases || !results || !changes ||
      fread(cases, sizeof *cases, case_count, stdin) != case_count)
    return 2;

  /* Where no random stack pointer of a case will be: there, the kernel would go on. More than is
   * told: QEMU's frame ends before the structure that the C library declares. */
  const size_t stack_bytes = 65536;
  const stack_t stack = {.ss_sp = map_at(0x2f31579000, stack_bytes + 0x1000),
                         .ss_size = stack_bytes};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_sigaction = on_signal,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  static const int signals[] = {SIGILL, SIGTRAP, SIGBUS, SIGSEGV, SIGFPE};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i)
    sigaction(signals[i], &action, NULL);

  uint8_t* code = map_at(ORACLE_CODE, ORACLE_CODE_BYTES);
  uint64_t* window = map_at(ORACLE_WINDOW, ORACLE_WINDOW_BYTES);
  for (uint64_t i = 0; i < kWindowWords; ++i) pristine[i] = window[i] = oracle_window_word(i);
  if (mprotect((void*)ORACLE_READ_ONLY, 0x1000, PROT_READ)) fail("mprotect");
  for (uint64_t i = 0; i < case_count; ++i) {
    const uint32_t ebreak = ORACLE_EBREAK;
    uint8_t* p = code + cases[i].code_offset;
    if (cases[i].byte_count > ORACLE_MAX_BYTES ||
        cases[i].code_offset + cases[i].byte_count + 8 > ORACLE_CODE_BYTES)
      return 2;
    memcpy(p, cases[i].bytes, cases[i].byte_count);
    memcpy(p + cases[i].byte_count, &ebreak, sizeof ebreak);
    memcpy(p + cases[i].byte_count + 4, &ebreak, sizeof ebreak);
  }
  __builtin___clear_cache((char*)code, (char*)code + ORACLE_CODE_BYTES);
  if (mprotect(code, ORACLE_CODE_BYTES, PROT_READ | PROT_EXEC)) fail("mprotect");

  alarm(600); /* a case that does not end ends this program */
  __asm__ volatile(".option push\n.option norvc\nebreak\n.option pop" ::: "memory");

  const struct oracle_change* at = changes;
  for (uint64_t i = 0; i < case_count; ++i) {
    const size_t n = results[i].change_count;
    if (fwrite(&results[i], sizeof *results, 1, stdout) != 1 ||
        fwrite(at, sizeof *at, n, stdout) != n)
      return 2;
    at += n;
  }
  return fflush(stdout) ? 2 : 0;
}
