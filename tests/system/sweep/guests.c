// Work that is known by the core.
#define NOINLINE __attribute__((noinline))

NOINLINE void spin(long n) {
  for (; n > 0; --n) __asm__ volatile("add x9, x9, #1\n\teor x10, x10, x9");
}

// `total` steps, shared out; core 0 alone does `serial` more.
void spread(long core, long cores, long total, long serial) {
  spin(total / cores);
  if (core == 0) spin(serial);
}

// The same for each core, whatever their number.
void each(long core, long cores, long steps) { spin(steps); }

// Faults where there are too many cores.
void few(long core, long cores, long most) {
  spin(100);
  if (cores > most && core == 1) *(volatile long*)8 = 0;
}

// Each core reads lines of its own, so many bytes, again and again.
void walk(long core, long cores, long bytes, long rounds) {
  static volatile long field[1 << 16];
  for (; rounds > 0; --rounds)
    for (long at = 0; at < bytes; at += 64) field[(core * bytes + at) / 8];
}

void forever(void) {
  for (;;) spin(1000);
}
