/* The body of atomics.c and atomics_lse.c. */
#include "bare.h"

#define TEST(type, name)                                                                       \
  static NOINLINE uint64_t name(type* p, type a, type b) {                                     \
    uint64_t h = __atomic_fetch_add(p, a, __ATOMIC_SEQ_CST);                                   \
    h = h * 31 + (uint64_t)__atomic_fetch_sub(p, b, __ATOMIC_RELAXED);                         \
    h = h * 31 + (uint64_t)__atomic_fetch_and(p, (type)~a, __ATOMIC_ACQUIRE);                  \
    h = h * 31 + (uint64_t)__atomic_fetch_or(p, b, __ATOMIC_RELEASE);                          \
    h = h * 31 + (uint64_t)__atomic_fetch_xor(p, a, __ATOMIC_ACQ_REL);                         \
    h = h * 31 + (uint64_t)__atomic_fetch_nand(p, b, __ATOMIC_SEQ_CST);                        \
    h = h * 31 + (uint64_t)__atomic_exchange_n(p, (type)(a * 3), __ATOMIC_SEQ_CST);            \
    type expected = b;                                                                         \
    h = h * 31 +                                                                               \
        __atomic_compare_exchange_n(p, &expected, a, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);   \
    h = h * 31 + (uint64_t)expected;                                                           \
    h = h * 31 + __atomic_compare_exchange_n(p, &expected, (type)(a + b), 0, __ATOMIC_ACQ_REL, \
                                             __ATOMIC_ACQUIRE);                                \
    h = h * 31 + (uint64_t)__atomic_load_n(p, __ATOMIC_ACQUIRE);                               \
    __atomic_store_n(p, (type)(a - b), __ATOMIC_RELEASE);                                      \
    h = h * 31 + (uint64_t)__atomic_add_fetch(p, 5, __ATOMIC_SEQ_CST);                         \
    return h * 31 + (uint64_t)*p;                                                              \
  }

TEST(int8_t, test_s8)
TEST(uint8_t, test_u8)
TEST(uint16_t, test_u16)
TEST(int32_t, test_s32)
TEST(uint32_t, test_u32)
TEST(uint64_t, test_u64)

static struct {
  uint64_t u64;
  uint32_t u32;
  int32_t s32;
  uint16_t u16;
  uint8_t u8;
  int8_t s8;
} cells;

static int lock_word;

static NOINLINE void with_lock(uint64_t* counter) {
  while (__atomic_test_and_set(&lock_word, __ATOMIC_ACQUIRE)) {
  }
  ++*counter;
  __atomic_clear(&lock_word, __ATOMIC_RELEASE);
}

int main(void) {
  uint64_t counter = 0;
  for (int i = 0; i < 30; i++) {
    uint64_t a = (uint64_t)next_random() << 31 ^ next_random(), b = next_random() * 0x100000001ull;
    print("%16lx ", test_u64(&cells.u64, a, b));
    print("%16lx ", test_u32(&cells.u32, (uint32_t)a, (uint32_t)b));
    print("%16lx ", test_s32(&cells.s32, (int32_t)a >> 8, (int32_t)b >> 4));
    print("%16lx ", test_u16(&cells.u16, (uint16_t)a, (uint16_t)b));
    print("%16lx ", test_u8(&cells.u8, (uint8_t)a, (uint8_t)b));
    print("%16lx\n", test_s8(&cells.s8, (int8_t)a, (int8_t)b));
    with_lock(&counter);
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  print("%lu\n", counter);
  return counter != 30;
}
