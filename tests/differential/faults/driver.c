// Calls random functions whose instructions fault, and prints what the handler sees: every
// register, flag and address. A faulting instruction is skipped, or tried again with other memory.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { kPages = 0x8000000, kGood = kPages, kBad = kPages + 0x4000, kReadOnly = kPages + 0x8000,
       kStack = kPages + 0xc000 };
extern void (*const functions[])(uint64_t iteration);
extern const int function_count;
uint64_t saved_stack_pointer;

static uint64_t faults, all;
static uint64_t mix(uint64_t h, uint64_t x) { return (h ^ x) * 0x9e3779b97f4a7c15 + (h >> 29); }

struct fpsimd {
  uint32_t magic, size, fpsr, fpcr;
  uint64_t v[64];
};

static void handler(int signal, siginfo_t* info, void* context) {
  ucontext_t* c = context;
  mcontext_t* m = &c->uc_mcontext;
  const struct fpsimd* f = (const void*)m->__reserved;
  uint64_t general = 1, vector = 2;
  for (int i = 0; i < 30; ++i) general = mix(general, m->regs[i]);
  if (f->magic == 0x46508001)
    for (int i = 0; i < 64; ++i) vector = mix(vector, f->v[i]);
  // QEMU calls every undefined instruction ILL_ILLOPN, Linux ILL_ILLOPC.
  const int code = signal == SIGILL ? 0 : info->si_code;
  const uint64_t address = signal == SIGSEGV ? (uint64_t)info->si_addr : 0;
  all = mix(all, general ^ vector ^ m->pc ^ address ^ m->pstate);
  if (++faults <= 400)
    printf("%d %d %lx pc %lx general %016lx vector %016lx nzcv %lx fpsr %x sp %lx\n", signal, code,
           address, m->pc, general, vector, m->pstate >> 28, f->fpsr, m->sp);
  m->pc += 4;
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  static char alternate[65536];
  const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  sigaltstack(&stack, NULL);
  const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP};
  for (int i = 0; i < 4; ++i) sigaction(signals[i], &action, NULL);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  char* pages = mmap((void*)kPages, 0x10000, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages != (void*)kPages) return 1;
  for (int i = 0; i < 0x10000; ++i) pages[i] = (char)(i * 37 + (i >> 8));
  mprotect((void*)kBad, 0x4000, PROT_NONE);
  mprotect((void*)kReadOnly, 0x4000, PROT_READ);
  for (int f = 0; f < function_count; ++f)
    for (uint64_t iteration = 0; iteration < 150; ++iteration) functions[f](iteration);
  uint64_t memory = 0;
  for (int i = 0; i < 0x4000; i += 8) {
    uint64_t word;
    memcpy(&word, pages + i, 8);
    memory = mix(memory, word);
  }
  printf("faults %lu, all %016lx, memory %016lx\n", faults, all, memory);
  return 0;
}
