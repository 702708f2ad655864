// Where instructions are executed is known line by line: the test counts them.
#define NOINLINE __attribute__((noinline))

NOINLINE void adds(long n) {
  for (; n > 0; --n) __asm__ volatile("add x9, x9, #1\n\tadd x9, x9, #1\n\tadd x9, x9, #1");
}

NOINLINE void divides(long n) {
  for (; n > 0; --n) __asm__ volatile("udiv x9, x9, x10");
}

// Core 1 has ten times the work of core 0; odd cores from 3 on fault inside a block.
void work(long core) {
  if (core == 2) return;
  adds(core == 1 ? 1000 : 100);
  divides(10);
  if (core >= 3 && core % 2 == 1)
    __asm__ volatile("add x9, x9, #1\n\tadd x9, x9, #1\n\tmov x9, #8\n\tldr x9, [x9]\n\tadd x9, x9, #1");
}
