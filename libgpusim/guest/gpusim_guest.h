// Guest-side runtime for SPMD programs: every core of the simulated chip enters the same program
// and finds out here which one it is. See docs/howto/guest_program.md.
//
// The same source runs in three places:
//   - as an AArch64 or RISC-V ELF under gpusim, with any number of cores in one address space;
//   - the same ELF under qemu-user or on Linux of that ISA, where it sees one core;
//   - built for the host with -DGPUSIM_NATIVE and native/native_runtime.c, where GPUSIM_CORES
//     POSIX threads (1 unless the environment says otherwise) play the cores.
//
// Nothing in this interface depends on an instruction set. What does is in
// <isa>/gpusim_guest_isa.h and <isa>/start.S.
#ifndef GPUSIM_GUEST_H
#define GPUSIM_GUEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- The program ---------------------------------------------------------------------------

// Written by the program. Each core calls it once; what it returns is that core's exit status.
int gpusim_main(void);

// Ends the calling core only. Cores that still wait for it at a barrier wait for ever, which gpusim
// reports as a deadlock.
__attribute__((noreturn)) void gpusim_exit(int status);

// Ends the whole program, all cores, with this status.
__attribute__((noreturn)) void gpusim_exit_all(int status);

// The program's arguments as on a Linux stack. argv[argc] is null.
int gpusim_argc(void);
char** gpusim_argv(void);

// The value of an auxiliary-vector entry, or `otherwise` if the vector has none of that type.
uint64_t gpusim_auxval(uint64_t type, uint64_t otherwise);

// gpusim's own auxiliary-vector entries, there if several cores share the memory. They say the same
// as the two functions below; they exist for programs, in any language, that do not link this
// runtime.
#define GPUSIM_AT_CORE_ID UINT64_C(0x47505300)     // 'G' 'P' 'S' 0
#define GPUSIM_AT_CORE_COUNT UINT64_C(0x47505301)  // 'G' 'P' 'S' 1
// Each core has a stack of its own from the start, also one that waits for a thread: the stack of
// core n + 1 lies so many bytes above that of core n; core 0's ends at GPUSIM_AT_STACK_TOP.
#define GPUSIM_AT_STACK_DISTANCE UINT64_C(0x47505302)
#define GPUSIM_AT_STACK_TOP UINT64_C(0x47505303)

// ---- Cores ---------------------------------------------------------------------------------

// Number of this core, 0 .. gpusim_core_count() - 1.
static inline uint32_t gpusim_core_id(void);

// How many cores share this address space; at least 1, and the same on all of them.
static inline uint32_t gpusim_core_count(void);

// ---- Synchronisation -----------------------------------------------------------------------

// What every program needs; gpusim_sync.h has the rest (more locks, events, groups of cores, loops,
// reductions).

// Returns once every core of the chip has called it. What a core wrote before it, every core sees
// after it. Costs one atomic addition per core and a wait.
void gpusim_barrier(void);

// A fair (ticket) lock: cores get it in the order in which they asked. Initialise with zeroes.
// Acquires and releases. Costs one atomic addition, and for each hand-over a look by every core
// that waits: for more than some dozens of waiting cores take gpusim_mutex_t of gpusim_sync.h.
// The two words lie apart: who takes a ticket must not disturb those who watch the other.
typedef struct {
  uint32_t next_ticket;
  __attribute__((aligned(8))) uint32_t now_serving;
} gpusim_lock_t;

void gpusim_lock(gpusim_lock_t* lock);
void gpusim_unlock(gpusim_lock_t* lock);

// Takes the lock if nobody has it or waits for it; returns whether it did. Never waits.
int gpusim_trylock(gpusim_lock_t* lock);

// Add and return the value before. Sequentially consistent with respect to each other.
static inline uint32_t gpusim_fetch_add_u32(uint32_t* place, uint32_t value) {
  return __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST);
}
static inline uint64_t gpusim_fetch_add_u64(uint64_t* place, uint64_t value) {
  return __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST);
}

// For counters that are read only after a barrier: nothing is ordered around it.
static inline void gpusim_count_u32(uint32_t* place, uint32_t value) {
  (void)__atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}

// Give way to other cores until *place differs from `value` (or equals it). Acquires. What ends the
// wait is a change of the value; nothing else has to be done by the core that changes it. A core
// may miss values that *place has for a short time only.
static inline void gpusim_wait_while_equal(const uint32_t* place, uint32_t value);
static inline void gpusim_wait_until_equal(const uint32_t* place, uint32_t value);
static inline void gpusim_wait_while_equal_u64(const uint64_t* place, uint64_t value);
static inline void gpusim_wait_until_equal_u64(const uint64_t* place, uint64_t value);

// Gives way until another core calls gpusim_signal_event(), or has called it since this core last
// waited; may also return for no reason. So: test a condition, wait, test it again. The waiting
// functions above cost the simulator less, because it knows what they wait for.
static inline void gpusim_wait_for_event(void);

// A hint that others may run now; waits for nothing. For loops that try again and again.
static inline void gpusim_yield(void);

// Wakes all cores in gpusim_wait_for_event(). Orders nothing: store with release order before it.
static inline void gpusim_signal_event(void);

// The same under its older name: lets cores that wait for a store have a look, after that store.
static inline void gpusim_wake_all(void) { gpusim_signal_event(); }

// ---- Region of interest --------------------------------------------------------------------

// What `gpusim run --chip` looks at: from the first call of begin, by any core, to the last of end.
// Without --chip, and elsewhere than under gpusim, two empty functions.
void gpusim_roi_begin(void);
void gpusim_roi_end(void);

// ---- Output --------------------------------------------------------------------------------

enum { GPUSIM_STDOUT = 1, GPUSIM_STDERR = 2 };

// Writes all bytes, however many calls of write(2) that takes. Returns 0, or -1 on an error.
int gpusim_write_all(int fd, const void* bytes, size_t size_bytes);

// One line of text, written with a single write(2) so that lines of several cores do not mix.
// What does not fit is cut off.
typedef struct {
  uint32_t length;
  char text[252];
} gpusim_line_t;

void gpusim_line_start(gpusim_line_t* line);
void gpusim_line_str(gpusim_line_t* line, const char* text);
void gpusim_line_u64(gpusim_line_t* line, uint64_t value);
void gpusim_line_i64(gpusim_line_t* line, int64_t value);
void gpusim_line_hex(gpusim_line_t* line, uint64_t value, int digits);
// Decimal, rounded half up after `decimals` (at most 9) places. |value| must be below 2^63 / 10^9.
void gpusim_line_f64(gpusim_line_t* line, double value, int decimals);
// Adds the newline and writes.
int gpusim_line_write(gpusim_line_t* line, int fd);

// A text as it is, in one write(2).
int gpusim_puts(const char* text);

// As printf() and the like of the C library, but for %n, %a and long double; rounds as they do.
// Takes no lock and needs no C library, so kernels can call it; the text is made on the core and
// written with a single write(2). Text of more than GPUSIM_MOST_PRINTED bytes is cut and ends in
// "...\n". Returns the length of the whole text, or -1 on an error.
#define GPUSIM_MOST_PRINTED 1024
int gpusim_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
int gpusim_vprintf(const char* format, va_list arguments) __attribute__((format(printf, 1, 0)));
int gpusim_snprintf(char* to, size_t size_bytes, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
int gpusim_vsnprintf(char* to, size_t size_bytes, const char* format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#ifdef __cplusplus
}
#endif

#if defined(GPUSIM_NATIVE)
#include "native/gpusim_guest_isa.h"
#elif defined(__aarch64__)
#include "aarch64/gpusim_guest_isa.h"
#elif defined(__riscv) && __riscv_xlen == 64
#include "riscv64/gpusim_guest_isa.h"
#elif defined(__riscv) && __riscv_xlen == 32
#include "riscv32/gpusim_guest_isa.h"
#else
#error "gpusim_guest.h: no runtime for this instruction set; to build for the host, -DGPUSIM_NATIVE"
#endif

#endif  // GPUSIM_GUEST_H
