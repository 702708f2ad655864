/* A bare-metal guest that does what lines on its UART say: a letter and up to two hexadecimal
 * numbers. It answers each with "= NUMBER".
 *
 *   p            PROBE, again while it says -EINTR
 *   a            ALIVE
 *   m [NUMBER]   makes the command block pending, for that generation; 0: for any
 *   g            gpa of the command block
 *   b [GPA]      BELL with the command block, or another
 *   w NS FLAGS   WAIT, again while it says -EINTR
 *   v NS FLAGS   the same, after it said "= 0"
 *   s            status of the command block
 *   o OP ARG     any trap
 *   i N          N times PING; nanoseconds
 *   t N FLAGS    N times pending, BELL and WAIT; nanoseconds or an error
 *   c            nanoseconds of the guest's clock
 *   e            how often the last w had -EINTR
 *   d            nanoseconds of the guest's clock that the last w took
 *   z SEED N     N traps with random operations and arguments; how many of them succeed
 *   x            starts CPU 1, which flushes all TLBs again and again
 *   y            how often it did
 */
#include "qemu_bridge/wire/gpusim_wire.h"

#define EINTR 4

long trap(unsigned long op, unsigned long argument);
long psci(unsigned long function, unsigned long cpu, unsigned long entry, unsigned long context);
void second_start(void);

static struct gpusim_command block __attribute__((aligned(1024)));
static volatile struct gpusim_wait wait_block;
static volatile unsigned long flushes;
static long interrupted;

static volatile unsigned* const uart = (unsigned*)0x09000000;

static void put(char c) { uart[0] = (unsigned char)c; }

static int get(void) {
  while (uart[6] & 0x10) {
  }
  return (int)(uart[0] & 0xff);
}

static void put_number(long value) {
  char digits[24];
  int n = 0;
  unsigned long rest = value < 0 ? 0 - (unsigned long)value : (unsigned long)value;
  do digits[n++] = (char)('0' + rest % 10);
  while (rest /= 10);
  put('=');
  put(' ');
  if (value < 0) put('-');
  while (n) put(digits[--n]);
  put('\n');
}

static long clock_ns(void) {
  unsigned long ticks, hz;
  __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
  __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
  return (long)(ticks * (1000000000ul / hz));
}

static void make_pending(unsigned long generation) {
  block.generation = (gpusim_u32)generation;
  block.magic = GPUSIM_COMMAND_MAGIC;
  block.version = GPUSIM_WIRE_VERSION;
  block.op = GPUSIM_OP_HELLO;
  *(volatile gpusim_s32*)&block.status = GPUSIM_PENDING;
}

static long probe(void) {
  long result;
  do result = trap(GPUSIM_TRAP_PROBE, 0);
  while (result == -EINTR);
  return result;
}

static long wait(unsigned long ns, unsigned long flags) {
  long result;
  wait_block.command_gpa = (gpusim_u64)&block;
  wait_block.timeout_ns = ns;
  wait_block.flags = (gpusim_u32)flags;
  interrupted = -1;
  do {
    result = trap(GPUSIM_TRAP_WAIT, (unsigned long)&wait_block);
    ++interrupted;
  } while (result == -EINTR);
  return result;
}

static long time_pings(unsigned long n) {
  const long start = clock_ns();
  while (n--) trap(GPUSIM_TRAP_PING, 0);
  return clock_ns() - start;
}

static long time_commands(unsigned long n, unsigned long flags) {
  const long start = clock_ns();
  while (n--) {
    long result;
    make_pending(0);
    result = trap(GPUSIM_TRAP_BELL, (unsigned long)&block);
    if (result) return result;
    result = wait(0, flags);
    if (result) return result;
  }
  return clock_ns() - start;
}

static long random_traps(unsigned long seed, unsigned long n) {
  static const unsigned long bases[] = {0, 0x40000000, 0x44000000, 0x09000000, 1ul << 63, ~0ul};
  unsigned long x = seed | 1;
  long done = 0;
  while (n--) {
    unsigned long argument, op;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    argument = x >> 32;
    if (x & 1)
      argument = bases[(x >> 1) % 6] + ((x >> 4) & 0xfff) * ((x >> 16) & 1 ? 64 : 1) - 2048;
    if ((x & 6) == 2) argument = (unsigned long)&block + ((x >> 4) & 0x40);
    op = 0x100 + ((x >> 40) & 7);
    if (op == GPUSIM_TRAP_REASON) argument = (unsigned long)&block; /* it writes there */
    done += trap(op, argument) >= 0;
  }
  return done;
}

void second_main(void) {
  for (;;) {
    __asm__ volatile("dsb ish; tlbi vmalle1is; dsb ish; isb" ::: "memory");
    ++flushes;
  }
}

static long perform(char letter, const unsigned long number[2]) {
  switch (letter) {
    case 'p':
      return probe();
    case 'a':
      return trap(GPUSIM_TRAP_ALIVE, 0);
    case 'm':
      make_pending(number[0] == ~0ul ? 0 : number[0]);
      return 0;
    case 'g':
      return (long)&block;
    case 'b':
      return trap(GPUSIM_TRAP_BELL, number[0] == ~0ul ? (unsigned long)&block : number[0]);
    case 'v':
      put_number(0);
      return wait(number[0], number[1]);
    case 'w':
      return wait(number[0], number[1]);
    case 's':
      return *(volatile gpusim_s32*)&block.status;
    case 'o':
      return trap(number[0], number[1]);
    case 'i':
      return time_pings(number[0]);
    case 't':
      return time_commands(number[0], number[1]);
    case 'c':
      return clock_ns();
    case 'e':
      return interrupted;
    case 'z':
      return random_traps(number[0], number[1]);
    case 'x':
      return psci(0xc4000003, 1, (unsigned long)second_start, 0);
    case 'y':
      return (long)flushes;
    default:
      return -1000;
  }
}

void guest_main(void) {
  uart[12] = 0x301; /* on, both ways */
  put_number(0);    /* started */
  for (;;) {
    unsigned long number[2] = {~0ul, ~0ul};
    int index = -1, c;
    char letter = 0;
    while ((c = get()) != '\n') {
      if (!letter) {
        letter = (char)c;
      } else if (c == ' ') {
        if (++index < 2) number[index] = 0;
      } else if (index >= 0 && index < 2) {
        number[index] = number[index] * 16 + (unsigned long)(c <= '9' ? c - '0' : c - 'a' + 10);
      }
    }
    put_number(perform(letter, number));
  }
}
