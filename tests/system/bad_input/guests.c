/* One program per way of going wrong; the macro FAULT names the function that runs. */
#include "../../differential/programs/bare/bare.h"

static volatile uint64_t zero;
static const uint32_t kConstant[4] = {1, 2, 3, 4};
static uint32_t data_words[4] = {0xd503201f, 0xd65f03c0, 0, 0};  // nop, ret
static char bytes[64] __attribute__((aligned(16)));

NOINLINE uint64_t load_null(void) { return *(volatile uint64_t*)(zero + 8); }

NOINLINE uint64_t load_wild(void) { return *(volatile uint64_t*)(zero + 0x123456789000); }

/* Bits 63 to 48 set: no user address, even with tagged pointers ignored. */
NOINLINE uint64_t load_high(void) { return *(volatile uint8_t*)(zero + 0x00ff800000000000); }

NOINLINE uint64_t store_wild(void) { return *(volatile uint8_t*)(zero + 0x7654321000) = 1; }

NOINLINE uint64_t store_constant(void) {
  return *(volatile uint32_t*)(uintptr_t)(kConstant + zero) = 9;
}

NOINLINE uint64_t store_code(void) {
  return *(volatile uint32_t*)((uintptr_t)store_code + zero) = 0xd503201f;
}

NOINLINE uint64_t jump_data(void) {
  uint64_t (*function)(void) = (uint64_t(*)(void))(uintptr_t)(data_words + zero);
  return function() + 1;
}

NOINLINE uint64_t jump_null(void) {
  uint64_t (*function)(void) = (uint64_t(*)(void))(uintptr_t)zero;
  return function() + 1;
}

NOINLINE uint64_t jump_odd(void) {
  uint64_t (*function)(void) = (uint64_t(*)(void))((uintptr_t)load_null + 2 + zero);
  return function() + 1;
}

NOINLINE uint64_t undefined(void) {
  __asm__ volatile(".inst 0");
  return 0;
}

NOINLINE uint64_t privileged(void) {
  __asm__ volatile("msr vbar_el1, xzr");
  return 0;
}

NOINLINE uint64_t breakpoint(void) {
  __asm__ volatile("brk #1000");
  return 0;
}

NOINLINE uint64_t exclusive_odd(void) {
  uint64_t value;
  __asm__ volatile("ldaxr %0, [%1]" : "=r"(value) : "r"(bytes + 4 + zero) : "memory");
  return value;
}

NOINLINE uint64_t stack_overflow(uint64_t n) {
  volatile char frame[4096];
  frame[n & 4095] = 1;
  return stack_overflow(n + 1) + (uint64_t)frame[n & 4095];
}

NOINLINE uint64_t endless(void) {
  while (!zero) {
  }
  return 0;
}

/* Of 64 cores the fifth alone goes wrong; called with --entry and --arg @core. */
__attribute__((used)) NOINLINE uint64_t fifth_faults(uint64_t core) {
  return core == 5 ? *(volatile uint64_t*)(zero + 16) : core;
}

int main(void) {
  print("before\n");
  FAULT;
  print("after\n");
  return 0;
}
