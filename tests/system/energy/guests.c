// Where instructions are executed is known line by line: the test counts them.
#define NOINLINE __attribute__((noinline))
#ifdef __riscv
#define ADD "addi t0, t0, 1\n\t"
#define DIVIDE "divu t0, t0, t1"
#define FAULT "li t0, 8\n\tld t0, 0(t0)\n\t"
#else
#define ADD "add x9, x9, #1\n\t"
#define DIVIDE "udiv x9, x9, x10"
#define FAULT "mov x9, #8\n\tldr x9, [x9]\n\t"
#endif

NOINLINE void adds(long n) {
  for (; n > 0; --n) __asm__ volatile(ADD ADD ADD);
}

NOINLINE void divides(long n) {
  for (; n > 0; --n) __asm__ volatile(DIVIDE);
}

// Core 1 has ten times the work of core 0; odd cores from 3 on fault inside a block.
void work(long core) {
  if (core == 2) return;
  adds(core == 1 ? 1000 : 100);
  divides(10);
  if (core >= 3 && core % 2 == 1)
    __asm__ volatile(ADD ADD FAULT ADD);
}
