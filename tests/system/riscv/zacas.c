// Zacas, which QEMU 7.2 and binutils 2.40 lack: what one core sees, and what many count together.
// Exit status 0 if all is right.
#include "gpusim_guest.h"

enum { kRounds = 50 };
static uint32_t failures, words;
static uint64_t doublewords;
static __attribute__((aligned(16))) uint64_t pairs[2];

static void check(int right, const char* what) {
  if (right) return;
  gpusim_printf("FAILED on core %u: %s\n", gpusim_core_id(), what);
  gpusim_count_u32(&failures, 1);
}

// AMOCAS.size.aqrl rd, rs2, (rs1): funct7 is 00101 with both bits set.
#define AMOCAS(funct3, rd, rs1, rs2) \
  ".insn r 0x2f, " #funct3 ", 0x17, " #rd ", " #rs1 ", " #rs2 "\n\t"

static uint64_t cas_w(uint32_t* place, uint64_t expected, uint64_t desired) {
  __asm__ volatile(AMOCAS(2, %0, %2, %1) : "+r"(expected) : "r"(desired), "r"(place) : "memory");
  return expected;
}
static uint64_t cas_d(uint64_t* place, uint64_t expected, uint64_t desired) {
  __asm__ volatile(AMOCAS(3, %0, %2, %1) : "+r"(expected) : "r"(desired), "r"(place) : "memory");
  return expected;
}
static void cas_q(uint64_t* place, uint64_t expected[2], const uint64_t desired[2]) {
  register uint64_t a2 __asm__("a2") = expected[0];
  register uint64_t a3 __asm__("a3") = expected[1];
  register uint64_t a4 __asm__("a4") = desired[0];
  register uint64_t a5 __asm__("a5") = desired[1];
  __asm__ volatile(AMOCAS(4, a2, %4, a4)
                   : "+r"(a2), "+r"(a3)
                   : "r"(a4), "r"(a5), "r"(place)
                   : "memory");
  expected[0] = a2;
  expected[1] = a3;
}

static void test_alone(void) {
  static __attribute__((aligned(16))) uint64_t memory[2];
  memory[0] = UINT64_C(0x1111111180000000);
  uint32_t* const word = (uint32_t*)memory;
  check(cas_w(word, UINT64_C(0x9999999980000000), 5) == UINT64_C(0xffffffff80000000),
        "only the low word is compared, and the old one sign-extended");
  check(memory[0] == UINT64_C(0x1111111100000005), "a word is stored");
  check(cas_w(word, 6, 7) == 5 && *word == 5, "another word stays");
  check(cas_d(memory, UINT64_C(0x1111111100000005), 9) == UINT64_C(0x1111111100000005),
        "the doubleword that was there");
  check(memory[0] == 9 && cas_d(memory, 8, 1) == 9 && memory[0] == 9, "another one stays");

  memory[1] = 10;
  uint64_t expected[2] = {9, 10};
  const uint64_t desired[2] = {11, 12};
  cas_q(memory, expected, desired);
  check(expected[0] == 9 && expected[1] == 10, "the pair that was there");
  check(memory[0] == 11 && memory[1] == 12, "a pair is stored");
  expected[1] = 12;
  cas_q(memory, expected, desired);
  check(expected[0] == 11 && expected[1] == 12 && memory[0] == 11, "another pair is loaded");

  // x0 stands for zero, of a pair for two, and takes no result.
  __asm__ volatile(AMOCAS(4, a2, %0, x0) : : "r"(memory) : "a2", "a3", "memory");
  memory[0] = memory[1] = 0;
  register uint64_t x1_before __asm__("s2");
  register uint64_t x1_after __asm__("s3");
  register const uint64_t* source __asm__("a4") = desired;
  __asm__ volatile("mv s2, ra\n\tld a6, 0(a4)\n\tld a7, 8(a4)\n\t" AMOCAS(4, x0, %2, a6) "mv s3, ra"
                   : "=r"(x1_before), "=r"(x1_after)
                   : "r"(memory), "r"(source)
                   : "a6", "a7", "memory");
  check(x1_before == x1_after && memory[0] == 11 && memory[1] == 12, "a pair from x0");
}

int gpusim_main(void) {
  if (gpusim_core_id() == 0) test_alone();
  for (int i = 0; i < kRounds; ++i) {
    for (uint64_t seen = words, now; (now = cas_w(&words, seen, seen + 1)) != seen; seen = now) {
    }
    for (uint64_t seen = doublewords, now; (now = cas_d(&doublewords, seen, seen + 1)) != seen;)
      seen = now;
    uint64_t seen[2] = {0, 0};
    for (;;) {
      const uint64_t wanted[2] = {seen[0], seen[1]}, next[2] = {seen[0] + 1, seen[1] + 3};
      cas_q(pairs, seen, next);
      if (seen[0] == wanted[0] && seen[1] == wanted[1]) break;
    }
  }
  gpusim_barrier();
  const uint64_t all = (uint64_t)kRounds * gpusim_core_count();
  if (gpusim_core_id() == 0) {
    check(words == all, "words were lost");
    check(doublewords == all, "doublewords were lost");
    check(pairs[0] == all && pairs[1] == 3 * all, "pairs were lost, or torn");
  }
  gpusim_barrier();
  return failures != 0;
}
