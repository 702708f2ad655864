/* Runs the oracle's cases on the machine that executes this program. Every case ends with a signal:
 * its handler stores the case's registers and returns to the next case, with that one's. Reads
 * cases from standard input, writes results to standard output (protocol.h).
 *
 * Linked without relaxation: gp, like all registers, is the case's in the handler. Without a C
 * library: Debian has none for RV32. */
#include <stddef.h>

#include "linux_calls.h"
#include "protocol.h"

enum { kWindowWords = ORACLE_WINDOW_BYTES / 8 };

/* --- Linux: asm-generic/unistd.h, uapi/asm/ucontext.h, sigcontext.h */

enum {
  kRead = 63,
  kWrite = 64,
  kExitGroup = 94,
  kSetItimer = 103,
  kSigAltStack = 132,
  kSigAction = 134,
  kMmap = 222, /* of RV32: mmap2, which differs in the unit of a file's offset */
  kMprotect = 226,
  kFlushIcache = 259,
};
enum { kProtRead = 1, kProtWrite = 2, kProtExec = 4 };
enum { kMapPrivate = 2, kMapFixed = 0x10, kMapAnonymous = 0x20 };
enum { kSigIll = 4, kSigTrap = 5, kSigBus = 7, kSigFpe = 8, kSigSegv = 11 };
#define SA_FLAGS (4 /* SIGINFO */ | 0x08000000 /* ONSTACK */ | 0x40000000 /* NODEFER */)

struct signal_stack {
  void* base;
  int flags;
  size_t size;
};
struct mcontext {
  unsigned long x[32]; /* x[0]: pc */
  uint64_t f[32];
  uint32_t fcsr;
} __attribute__((aligned(16)));
struct ucontext {
  unsigned long flags;
  struct ucontext* link;
  struct signal_stack stack;
  unsigned long mask[8 / sizeof(long)];
  uint8_t unused[120];
  struct mcontext mcontext;
};
struct action {
  void (*handler)(int, void*, void*);
  unsigned long flags;
  unsigned long mask[8 / sizeof(long)];
};

static void leave(int status) {
  for (;;) call(kExitGroup, status, 0, 0, 0, 0, 0);
}

void* memcpy(void* to, const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) ((volatile char*)to)[i] = ((const char*)from)[i];
  return to;
}
void* memset(void* to, int value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) ((volatile char*)to)[i] = (char)value;
  return to;
}

/* --- the cases */

static struct oracle_case* cases;
static struct oracle_result* results;
static struct oracle_change* changes;
static uint64_t change_count, change_room;
static uint64_t case_count, next;
static uint64_t pristine[kWindowWords];
static struct mcontext home;

#if GPUSIM_ORACLE_BITS == 64
/* Signal frames leave the vector state out. */
static void load_vectors(const struct oracle_state* s) {
  const uint64_t* v = s->v;
  __asm__ volatile(
      ".option push\n.option arch, +v\n"
      "csrw vstart, zero\n"
      "vl8re64.v v0, (%0)\naddi %0, %0, 128\nvl8re64.v v8, (%0)\naddi %0, %0, 128\n"
      "vl8re64.v v16, (%0)\naddi %0, %0, 128\nvl8re64.v v24, (%0)\n"
      "vsetvl zero, %1, %2\ncsrw vcsr, %3\ncsrw vstart, %4\n"
      ".option pop"
      : "+r"(v)
      : "r"(s->vl), "r"(s->vtype), "r"(s->vcsr), "r"(s->vstart)
      : "memory");
}
static void store_vectors(struct oracle_state* s) {
  uint64_t* v = s->v;
  __asm__ volatile(
      ".option push\n.option arch, +v\n"
      "csrr %1, vl\ncsrr %2, vtype\ncsrr %3, vcsr\ncsrr %4, vstart\ncsrw vstart, zero\n"
      "vs8r.v v0, (%0)\naddi %0, %0, 128\nvs8r.v v8, (%0)\naddi %0, %0, 128\n"
      "vs8r.v v16, (%0)\naddi %0, %0, 128\nvs8r.v v24, (%0)\n"
      ".option pop"
      : "+&r"(v), "=&r"(s->vl), "=&r"(s->vtype), "=&r"(s->vcsr), "=&r"(s->vstart)
      :
      : "memory");
}
#else
static void load_vectors(const struct oracle_state* s) { (void)s; }
static void store_vectors(struct oracle_state* s) { (void)s; }
#endif

static void load(struct mcontext* m, const struct oracle_case* c) {
  m->x[0] = (unsigned long)(ORACLE_CODE + c->code_offset);
  for (int i = 1; i < 32; ++i) m->x[i] = (unsigned long)c->state.x[i];
  for (int i = 0; i < 32; ++i) m->f[i] = c->state.f[i];
  m->fcsr = (uint32_t)c->state.fcsr;
  load_vectors(&c->state);
}

static void store(const struct mcontext* m, struct oracle_result* r, int signal_number) {
  r->signal = (uint32_t)signal_number;
  r->pc = m->x[0];
  for (int i = 1; i < 32; ++i) r->state.x[i] = m->x[i];
  for (int i = 0; i < 32; ++i) r->state.f[i] = m->f[i];
  r->state.fcsr = m->fcsr;
  store_vectors(&r->state);
  uint64_t* window = (uint64_t*)(uintptr_t)ORACLE_WINDOW;
  for (unsigned w = 0; w < kWindowWords; ++w) {
    if (window[w] == pristine[w]) continue;
    if (change_count == change_room) leave(5);
    changes[change_count++] = (struct oracle_change){w * 8, window[w]};
    ++r->change_count;
    window[w] = pristine[w];
  }
}

/* The first signal is our own. */
static void on_signal(int number, void* info, void* context) {
  struct mcontext* m = &((struct ucontext*)context)->mcontext;
  (void)info;
  if (next == 0) {
    home = *m;
  } else {
    store(m, &results[next - 1], number);
  }
  if (next == case_count) {
    *m = home;
    m->x[0] += 4; /* behind the EBREAK */
    return;
  }
  load(m, &cases[next++]);
}

static void* map(uint64_t address, size_t bytes) {
  const long flags = kMapPrivate | kMapAnonymous | (address ? kMapFixed : 0);
  const long p = call(kMmap, (long)address, (long)bytes, kProtRead | kProtWrite, flags, -1, 0);
  if (p < 0 && p > -4096) leave(2);
  return (void*)p;
}
static void protect(uint64_t address, size_t bytes, int protection) {
  if (call(kMprotect, (long)address, (long)bytes, protection, 0, 0, 0) != 0) leave(2);
}
static void move(long number, int fd, void* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const long part = call(number, fd, (long)((char*)data + done), (long)(bytes - done), 0, 0, 0);
    if (part <= 0) leave(2);
    done += (size_t)part;
  }
}

__attribute__((used)) static void run(void) {
  struct oracle_header header;
  move(kRead, 0, &header, sizeof header);
  if (header.magic != ORACLE_MAGIC || header.case_count == 0 ||
      header.case_count > ORACLE_MAX_CASES)
    leave(2);
  case_count = header.case_count;
  change_room = 64 * case_count;
  cases = map(0, (size_t)case_count * sizeof *cases);
  results = map(0, (size_t)case_count * sizeof *results);
  changes = map(0, (size_t)change_room * sizeof *changes);
  move(kRead, 0, cases, (size_t)case_count * sizeof *cases);

  /* Where no random stack pointer of a case will be: there, the kernel would go on. More than is
   * told: QEMU's frame ends before the structure that the kernel declares. */
  const size_t stack_bytes = 65536;
  const struct signal_stack stack = {map(ORACLE_STACK, stack_bytes + 0x1000), 0, stack_bytes};
  call(kSigAltStack, (long)&stack, 0, 0, 0, 0, 0);
  const struct action action = {on_signal, SA_FLAGS, {0}};
  static const int signals[] = {kSigIll, kSigTrap, kSigBus, kSigSegv, kSigFpe};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i)
    call(kSigAction, signals[i], (long)&action, 0, 8, 0, 0);

  uint8_t* code = map(ORACLE_CODE, ORACLE_CODE_BYTES);
  uint64_t* window = map(ORACLE_WINDOW, ORACLE_WINDOW_BYTES);
  for (unsigned i = 0; i < kWindowWords; ++i) pristine[i] = window[i] = oracle_window_word(i);
  protect(ORACLE_READ_ONLY, 0x1000, kProtRead);
  for (uint64_t i = 0; i < case_count; ++i) {
    const uint32_t ebreak = ORACLE_EBREAK;
    uint8_t* p = code + cases[i].code_offset;
    if (cases[i].byte_count > ORACLE_MAX_BYTES ||
        cases[i].code_offset + cases[i].byte_count + 8 > ORACLE_CODE_BYTES)
      leave(2);
    memcpy(p, cases[i].bytes, cases[i].byte_count);
    memcpy(p + cases[i].byte_count, &ebreak, sizeof ebreak);
    memcpy(p + cases[i].byte_count + 4, &ebreak, sizeof ebreak);
  }
  call(kFlushIcache, (long)code, (long)(code + ORACLE_CODE_BYTES), 0, 0, 0, 0);
  protect(ORACLE_CODE, ORACLE_CODE_BYTES, kProtRead | kProtExec);

  /* A case that does not end ends this program. */
  const long in_10_minutes[4] = {0, 0, 600, 0};
  call(kSetItimer, 0, (long)in_10_minutes, 0, 0, 0, 0);
  __asm__ volatile(".option push\n.option norvc\nebreak\n.option pop" ::: "memory");

  struct oracle_change* at = changes;
  for (uint64_t i = 0; i < case_count; ++i) {
    const size_t n = results[i].change_count;
    move(kWrite, 1, &results[i], sizeof *results);
    move(kWrite, 1, at, n * sizeof *at);
    at += n;
  }
  leave(0);
}

__attribute__((naked, used)) void _start(void) { __asm__ volatile("tail run"); }
