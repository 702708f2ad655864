// Atomic operations on 64 bits for an ISA that has none: those functions of libatomic's interface that
// GCC calls by name ("GCC Atomic operations library", ABI of 2011). One of 64 locks by the address makes
// each indivisible; the locks acquire and release, and fences make the operations sequentially
// consistent.
#include "gpusim_guest.h"

static gpusim_lock_t locks[64];

static gpusim_lock_t* lock_of(const volatile void* place) {
  const uintptr_t address = (uintptr_t)place;
  return &locks[(address >> 3 ^ address >> 9) % (sizeof locks / sizeof locks[0])];
}

static gpusim_lock_t* begin(const volatile void* place) {
  gpusim_lock_t* const lock = lock_of(place);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  gpusim_lock(lock);
  return lock;
}

static void end(gpusim_lock_t* lock) {
  gpusim_unlock(lock);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// The compiler knows the names as functions of its own, with other parameters.
#define NAMED(name) __asm__("__atomic_" #name "_8")

uint64_t load_8(const volatile uint64_t* place, int order) NAMED(load);
uint64_t load_8(const volatile uint64_t* place, int order) {
  (void)order;
  gpusim_lock_t* const lock = begin(place);
  const uint64_t value = *place;
  end(lock);
  return value;
}

void store_8(volatile uint64_t* place, uint64_t value, int order) NAMED(store);
void store_8(volatile uint64_t* place, uint64_t value, int order) {
  (void)order;
  gpusim_lock_t* const lock = begin(place);
  *place = value;
  end(lock);
}

int compare_exchange_8(volatile uint64_t* place, uint64_t* expected, uint64_t desired, int success,
                       int failure) NAMED(compare_exchange);
int compare_exchange_8(volatile uint64_t* place, uint64_t* expected, uint64_t desired, int success,
                       int failure) {
  (void)success;
  (void)failure;
  gpusim_lock_t* const lock = begin(place);
  const uint64_t before = *place;
  const int is_equal = before == *expected;
  if (is_equal) *place = desired;
  end(lock);
  *expected = before;
  return is_equal;
}

#define EXCHANGE(name, next)                                                              \
  uint64_t name##_8(volatile uint64_t* place, uint64_t value, int order) NAMED(name);     \
  uint64_t name##_8(volatile uint64_t* place, uint64_t value, int order) {                \
    (void)order;                                                                          \
    gpusim_lock_t* const lock = begin(place);                                             \
    const uint64_t before = *place;                                                       \
    *place = next;                                                                        \
    end(lock);                                                                            \
    return before;                                                                        \
  }
EXCHANGE(exchange, value)
EXCHANGE(fetch_add, before + value)
EXCHANGE(fetch_sub, before - value)
EXCHANGE(fetch_and, before & value)
EXCHANGE(fetch_or, before | value)
EXCHANGE(fetch_xor, before ^ value)
EXCHANGE(fetch_nand, ~(before & value))
