// isa: riscv32
// folder: own
// System calls that 32-bit RISC-V has in its own way: 64-bit arguments in pairs of registers, times
// of 64 bits, narrower structures, signal frames; and what it lacks.
#include "bare.h"
#include "linux_calls.h"

static void files(void) {
  static char text[8192];
  for (unsigned i = 0; i < sizeof text; ++i) text[i] = (char)('a' + i / 4096 + i % 7);
  const long fd = CALL4(56, -100, "file", 0100 | 2, 0600);
  const struct vector parts[2] = {{text, 5000}, {text + 5000, 3192}};
  print("writev %d\n", (int)CALL3(66, fd, parts, 2));
  int64_t position = -1;
  print("_llseek %d", (int)CALL5(62, fd, 1, 16, &position, 0));
  print(" %x %x\n", (unsigned)(position >> 32), (unsigned)position);
  print("_llseek %d", (int)CALL5(62, fd, -1, -100, &position, 2));
  print(" %d\n", (int)position);
  char some[8] = {0};
  print("pread64 %d %s\n", (int)CALL5(67, fd, some, 4, 4096, 0), some);
  print("pread64 behind %d\n", (int)CALL5(67, fd, some, 4, 0, 1));
  print("pwrite64 %d\n", (int)CALL5(68, fd, "wxyz", 4, 8000, 0));
  const struct vector into = {some, 4};
  print("preadv %d %s\n", (int)CALL5(69, fd, &into, 1, 8000, 0), some);
  const char* mapped = (const char*)CALL6(222, 0, 4096, 1, 2, fd, 1);
  print("mmap2 %s\n", (word)mapped < -4096ul && mapped[3] == text[4099] ? "the second page" : "no");
  print("munmap %d\n", (int)CALL2(215, mapped, 4096));
  print("ftruncate64 %d\n", (int)CALL3(46, fd, 5, 0));
  static uint32_t stat[64];
  print("statx %d", (int)CALL5(291, fd, "", 0x1000, 0x7ff, stat));
  print(" size %d\n", (int)stat[10]);
  print("fallocate %d", (int)CALL6(47, fd, 0, 0, 0, 100, 0));
  CALL5(291, fd, "", 0x1000, 0x7ff, stat);
  print(" size %d\n", (int)stat[10]);
  print("close %d\n", (int)CALL2(57, fd, 0));
  print("close %d\n", (int)CALL2(57, fd, 0));
}

static void times(void) {
  struct time64 now = {0, 0}, later = {0, 0};
  print("clock_gettime64 %d", (int)CALL2(403, 0, &now));
  print(" %s\n", now.seconds > 1600000000 && now.nanoseconds < 1000000000 ? "now" : "never");
  const struct time64 pause = {0, 2000000};
  print("clock_nanosleep_time64 %d", (int)CALL4(407, 0, 0, &pause, 0));
  CALL2(403, 0, &later);
  const int64_t passed =
      (later.seconds - now.seconds) * 1000000000 + later.nanoseconds - now.nanoseconds;
  print(" %s\n", passed >= 2000000 ? "long enough" : "too short");
  uint32_t place = 7;
  print("futex_time64 %d", (int)CALL4(422, &place, 0, 8, 0));
  print(" %d\n", (int)CALL4(422, &place, 0, 7, &pause));
  struct {
    int fd;
    short events, revents;
  } poll = {1, 4, 0};
  const struct time64 none = {0, 0};
  print("ppoll_time64 %d\n", (int)CALL5(414, &poll, 1, &none, 0, 8));
  uint32_t high, low, again;
  do {
    __asm__ volatile("rdtimeh %0\nrdtime %1\nrdtimeh %2" : "=r"(high), "=r"(low), "=r"(again));
  } while (high != again);
  const uint64_t before = (uint64_t)high << 32 | low;
  do {
    __asm__ volatile("rdtimeh %0\nrdtime %1\nrdtimeh %2" : "=r"(high), "=r"(low), "=r"(again));
  } while (high != again);
  print("rdtime %s\n", ((uint64_t)high << 32 | low) >= before ? "goes on" : "goes back");
}

static void absent(void) {
  static const short numbers[] = {73, 88, 98, 101, 113, 114, 115, 137, 169, 260};
  for (unsigned i = 0; i < LENGTH(numbers); ++i)
    print("call %d: %d\n", (int)numbers[i], (int)CALL0(numbers[i]));
}

struct information {
  int number, error, code;
  word address;
};
struct context {
  word flags, link;
  struct {
    word base;
    int flags;
    word size;
  } stack;
  uint32_t mask[2];
  uint8_t unused[120];
  word x[32] __attribute__((aligned(16))); /* x[0]: pc */
  uint64_t f[32];
  uint32_t fcsr;
};

static char other_stack[8192] __attribute__((aligned(16)));

static void on_fault(int number, struct information* info, struct context* context) {
  const word here = (word)__builtin_frame_address(0);
  print("signal %d %d code %d address %x", number, info->number, info->code,
        (unsigned)info->address);
  print(" a0 %x fs0 %x mask %x", (unsigned)context->x[10], (unsigned)(context->f[8] >> 32),
        context->mask[0]);
  print(" %s\n", here - (word)other_stack < sizeof other_stack ? "on its stack" : "elsewhere");
  context->x[0] += 4;
  context->x[10] = 0xfedcba98;
}

static void signals(void) {
  const struct {
    void* base;
    int flags;
    word size;
  } stack = {other_stack, 0, sizeof other_stack};
  print("sigaltstack %d\n", (int)CALL2(132, &stack, 0));
  struct {
    void (*handler)(int, struct information*, struct context*);
    word flags;
    uint32_t mask[2];
  } action = {on_fault, 4 | 0x08000000, {0x200, 0}}, before;
  print("rt_sigaction %d\n", (int)CALL4(134, 11, &action, 0, 8));
  print("rt_sigaction %d", (int)CALL4(134, 11, 0, &before, 8));
  print(" %d %x %x\n", before.handler == on_fault, (unsigned)before.flags, before.mask[0]);
  static const word addresses[] = {4, 0xfffffffc, 0xfffff800};
  for (unsigned i = 0; i < LENGTH(addresses); ++i) {
    register word result __asm__("a0") = addresses[i];
    register double kept __asm__("fs0") = 1.5;
    __asm__ volatile(".option push\n.option norvc\nsw zero, 0(a0)\n.option pop"
                     : "+r"(result), "+f"(kept)
                     :
                     : "memory");
    print("goes on with %x\n", (unsigned)result);
  }
  // What leaves 32 bits wraps around.
  register word result __asm__("a0") = 0xfffffff0;
  __asm__ volatile(".option push\n.option norvc\nlw a0, 0x7e0(a0)\n.option pop" : "+r"(result));
  print("goes on with %x\n", (unsigned)result);
  __asm__ volatile(".option push\n.option norvc\nlw a0, -8(zero)\n.option pop" : "=r"(result));
  print("goes on with %x\n", (unsigned)result);
}

int main(void) {
  files();
  times();
  absent();
  signals();
  return 0;
}
