/* Runs the oracle's cases on the machine that executes this program: loads all registers, runs the
 * case's instructions, stores all registers. Reads cases from standard input, writes results to
 * standard output (protocol.h). */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "protocol.h"

struct oracle_result result; /* of the case that runs */
uint64_t host_save[24];      /* callee-saved registers of run_case */

/* Watchdog: a case in which the timer ticks twice ends as if by a signal. */
static volatile uint64_t current_case;
static volatile int running;
static uint64_t case_of_last_tick = ~0ull;
static unsigned tick_count;

extern void run_case(const struct oracle_state* state, const uint32_t* code);
extern void case_fell_through(void);
extern void case_jumped(void);
extern void case_faulted(void);

#define STATE_X "16"
#define STATE_SP "264"
#define STATE_NZCV "272"
#define STATE_FPCR "280"
#define STATE_FPSR "288"
#define STATE_V "296"
_Static_assert(offsetof(struct oracle_result, state) == 16, "used below");
_Static_assert(offsetof(struct oracle_result, state.sp) == 264, "used below");
_Static_assert(offsetof(struct oracle_result, state.v) == 296, "used below");

/* TPIDR_EL0 carries X30 into the case's code, which reads it back first, and X0 out of it. */
__asm__(
    ".text\n"
    ".globl run_case, case_jumped, case_fell_through, case_faulted\n"
    /* Global: the linker drops the addend of a GOT entry for a local one. */
    "run_case:\n"
    "  adrp x9, host_save\n  add x9, x9, :lo12:host_save\n"
    "  stp x19, x20, [x9]\n  stp x21, x22, [x9, #16]\n  stp x23, x24, [x9, #32]\n"
    "  stp x25, x26, [x9, #48]\n  stp x27, x28, [x9, #64]\n  stp x29, x30, [x9, #80]\n"
    "  stp d8, d9, [x9, #96]\n  stp d10, d11, [x9, #112]\n  stp d12, d13, [x9, #128]\n"
    "  stp d14, d15, [x9, #144]\n"
    "  mov x10, sp\n  mrs x11, tpidr_el0\n  stp x10, x11, [x9, #160]\n"
    "  sub x0, x0, #16\n" /* so that offsets are those of a result */
    "  add x10, x0, #" STATE_V
    "\n"
    "  ld1 {v0.2d-v3.2d}, [x10], #64\n  ld1 {v4.2d-v7.2d}, [x10], #64\n"
    "  ld1 {v8.2d-v11.2d}, [x10], #64\n  ld1 {v12.2d-v15.2d}, [x10], #64\n"
    "  ld1 {v16.2d-v19.2d}, [x10], #64\n  ld1 {v20.2d-v23.2d}, [x10], #64\n"
    "  ld1 {v24.2d-v27.2d}, [x10], #64\n  ld1 {v28.2d-v31.2d}, [x10]\n"
    "  ldr x10, [x0, #" STATE_FPCR
    "]\n  msr fpcr, x10\n"
    "  ldr x10, [x0, #" STATE_FPSR
    "]\n  msr fpsr, x10\n"
    "  ldr x10, [x0, #" STATE_NZCV
    "]\n  msr nzcv, x10\n"
    "  ldr x10, [x0, #256]\n  msr tpidr_el0, x10\n"
    "  ldr x10, [x0, #" STATE_SP
    "]\n  mov sp, x10\n"
    "  mov x30, x1\n"
    "  clrex\n"
    "  ldp x2, x3, [x0, #32]\n  ldp x4, x5, [x0, #48]\n  ldp x6, x7, [x0, #64]\n"
    "  ldp x8, x9, [x0, #80]\n  ldp x10, x11, [x0, #96]\n  ldp x12, x13, [x0, #112]\n"
    "  ldp x14, x15, [x0, #128]\n  ldp x16, x17, [x0, #144]\n  ldp x18, x19, [x0, #160]\n"
    "  ldp x20, x21, [x0, #176]\n  ldp x22, x23, [x0, #192]\n  ldp x24, x25, [x0, #208]\n"
    "  ldp x26, x27, [x0, #224]\n  ldp x28, x29, [x0, #240]\n"
    "  ldp x0, x1, [x0, #16]\n"
    "  br x30\n"
    "case_jumped:\n"
    "  msr tpidr_el0, x0\n  adrp x0, result\n  add x0, x0, :lo12:result\n"
    "  str x1, [x0, #24]\n  mov w1, #1\n  b save\n"
    "case_fell_through:\n"
    "  msr tpidr_el0, x0\n  adrp x0, result\n  add x0, x0, :lo12:result\n"
    "  str x1, [x0, #24]\n  mov w1, #0\n"
    "save:\n"
    "  str w1, [x0, #4]\n"
    "  stp x2, x3, [x0, #32]\n  stp x4, x5, [x0, #48]\n  stp x6, x7, [x0, #64]\n"
    "  stp x8, x9, [x0, #80]\n  stp x10, x11, [x0, #96]\n  stp x12, x13, [x0, #112]\n"
    "  stp x14, x15, [x0, #128]\n  stp x16, x17, [x0, #144]\n  stp x18, x19, [x0, #160]\n"
    "  stp x20, x21, [x0, #176]\n  stp x22, x23, [x0, #192]\n  stp x24, x25, [x0, #208]\n"
    "  stp x26, x27, [x0, #224]\n  stp x28, x29, [x0, #240]\n  str x30, [x0, #256]\n"
    "  mrs x1, nzcv\n  str x1, [x0, #" STATE_NZCV
    "]\n"
    "  mrs x1, fpcr\n  str x1, [x0, #" STATE_FPCR
    "]\n"
    "  mrs x1, fpsr\n  str x1, [x0, #" STATE_FPSR
    "]\n"
    "  mov x1, sp\n  str x1, [x0, #" STATE_SP
    "]\n"
    "  mrs x1, tpidr_el0\n  str x1, [x0, #16]\n"
    "  add x1, x0, #" STATE_V
    "\n"
    "  st1 {v0.2d-v3.2d}, [x1], #64\n  st1 {v4.2d-v7.2d}, [x1], #64\n"
    "  st1 {v8.2d-v11.2d}, [x1], #64\n  st1 {v12.2d-v15.2d}, [x1], #64\n"
    "  st1 {v16.2d-v19.2d}, [x1], #64\n  st1 {v20.2d-v23.2d}, [x1], #64\n"
    "  st1 {v24.2d-v27.2d}, [x1], #64\n  st1 {v28.2d-v31.2d}, [x1]\n"
    "case_faulted:\n"
    "  msr fpcr, xzr\n"
    "  adrp x9, host_save\n  add x9, x9, :lo12:host_save\n"
    "  ldp x19, x20, [x9]\n  ldp x21, x22, [x9, #16]\n  ldp x23, x24, [x9, #32]\n"
    "  ldp x25, x26, [x9, #48]\n  ldp x27, x28, [x9, #64]\n  ldp x29, x30, [x9, #80]\n"
    "  ldp d8, d9, [x9, #96]\n  ldp d10, d11, [x9, #112]\n  ldp d12, d13, [x9, #128]\n"
    "  ldp d14, d15, [x9, #144]\n"
    "  ldp x10, x11, [x9, #160]\n  mov sp, x10\n  msr tpidr_el0, x11\n"
    "  ret\n");

/* The thread pointer is the case's here: no library calls. */
static void on_signal(int number, siginfo_t* info, void* context) {
  ucontext_t* uc = context;
  struct oracle_state* s = &result.state;
  (void)info;
  if (number != SIGVTALRM && !running) _exit(3); /* a case has damaged this program */
  if (number == SIGVTALRM) {
    if (++tick_count > 60) _exit(4);
    const int is_stuck = running && case_of_last_tick == current_case;
    case_of_last_tick = current_case;
    if (!is_stuck) return;
  }
  result.signal = (uint32_t)number;
  for (int i = 0; i < 31; ++i) s->x[i] = uc->uc_mcontext.regs[i];
  s->sp = uc->uc_mcontext.sp;
  s->nzcv = uc->uc_mcontext.pstate & 0xf0000000;
  const struct fpsimd_context* fp = (const void*)uc->uc_mcontext.__reserved;
  s->fpcr = fp->fpcr;
  s->fpsr = fp->fpsr;
  for (int i = 0; i < 32; ++i) {
    s->v[2 * i] = (uint64_t)fp->vregs[i];
    s->v[2 * i + 1] = (uint64_t)(fp->vregs[i] >> 64);
  }
  result.pc = uc->uc_mcontext.pc;
  uc->uc_mcontext.pc = (uint64_t)(uintptr_t)case_faulted;
}

static void fail(const char* what) {
  perror(what);
  exit(2);
}

static void* map_at(uint64_t address, size_t bytes, int protection) {
  void* p = mmap((void*)address, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (p == MAP_FAILED) fail("mmap");
  return p;
}

static uint32_t branch_to(const uint32_t* from, void (*to)(void)) {
  const int64_t words = ((int64_t)(uintptr_t)to - (int64_t)(uintptr_t)from) / 4;
  return 0x14000000u | ((uint32_t)words & 0x03ffffffu);
}

int main(void) {
  struct oracle_header header;
  if (fread(&header, sizeof header, 1, stdin) != 1 || header.magic != ORACLE_MAGIC ||
      header.case_count > ORACLE_MAX_CASES)
    return 2;
  struct oracle_case* cases = calloc(header.case_count, sizeof *cases);
  if (!cases || fread(cases, sizeof *cases, header.case_count, stdin) != header.case_count)
    return 2;

  static uint8_t signal_stack[65536];
  const stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_sigaction = on_signal,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  static const int signals[] = {SIGILL, SIGTRAP, SIGBUS, SIGSEGV, SIGFPE, SIGVTALRM};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i)
    sigaction(signals[i], &action, NULL);

  uint32_t* code = map_at(ORACLE_CODE, ORACLE_CODE_BYTES, PROT_READ | PROT_WRITE);
  uint64_t* window = map_at(ORACLE_WINDOW, ORACLE_WINDOW_BYTES, PROT_READ | PROT_WRITE);
  uint64_t* pristine = malloc(ORACLE_WINDOW_BYTES);
  const size_t window_words = ORACLE_WINDOW_BYTES / 8;
  for (size_t i = 0; i < window_words; ++i) pristine[i] = window[i] = oracle_window_word(i);
  if (mprotect((void*)ORACLE_READ_ONLY, 0x1000, PROT_READ)) fail("mprotect");
  for (uint64_t i = 0; i < header.case_count; ++i) {
    uint32_t* p = code + cases[i].code_offset / 4 - 1;
    if (cases[i].word_count > ORACLE_MAX_WORDS ||
        cases[i].code_offset + 4 * (cases[i].word_count + 2) > ORACLE_CODE_BYTES)
      return 2;
    *p++ = 0xd53bd05e; /* mrs x30, tpidr_el0 */
    for (uint32_t w = 0; w < cases[i].word_count; ++w) *p++ = cases[i].words[w];
    *p = branch_to(p, case_fell_through);
    ++p;
    *p = branch_to(p, case_jumped);
  }
  __builtin___clear_cache((char*)code, (char*)code + ORACLE_CODE_BYTES);
  if (mprotect(code, ORACLE_CODE_BYTES, PROT_READ | PROT_EXEC)) fail("mprotect");

  const struct itimerval two_seconds = {{2, 0}, {2, 0}};
  setitimer(ITIMER_VIRTUAL, &two_seconds, NULL);
  struct oracle_change* changes = malloc(sizeof *changes * window_words);
  for (uint64_t i = 0; i < header.case_count; ++i) {
    memset(&result, 0, sizeof result);
    current_case = i;
    running = 1;
    run_case(&cases[i].state, code + cases[i].code_offset / 4 - 1);
    running = 0;
    if (cases[i].uses_memory && memcmp(window, pristine, ORACLE_WINDOW_BYTES)) {
      for (size_t w = 0; w < window_words; ++w) {
        if (window[w] == pristine[w]) continue;
        changes[result.change_count++] = (struct oracle_change){w * 8, window[w]};
        window[w] = pristine[w];
      }
    }
    if (fwrite(&result, sizeof result, 1, stdout) != 1 ||
        fwrite(changes, sizeof *changes, result.change_count, stdout) != result.change_count)
      return 2;
  }
  return fflush(stdout) ? 2 : 0;
}
