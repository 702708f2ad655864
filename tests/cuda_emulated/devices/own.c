// A process that works on memory of its own, as its number in the system says: data, heap and
// stack.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kWords = 256, kRounds = 40 };

static uint64_t table[kWords];

static uint64_t mixed(uint64_t x) {
  x ^= x >> 29;
  return x * 0xbf58476d1ce4e5b9u + 1;
}

int main(void) {
  const uint64_t number = (uint64_t)getpid();
  uint64_t* const heap = malloc(kWords * sizeof *heap);
  uint64_t stack[kWords];
  uint64_t sum = number;
  for (int i = 0; i < kWords; ++i) table[i] = heap[i] = stack[i] = mixed(number + (uint64_t)i);
  const int rounds = kRounds + (int)(number % 7);
  for (int r = 0; r < rounds; ++r)
    for (int i = 0; i < kWords; ++i) {
      const uint64_t at = sum % kWords;
      stack[i] += heap[at];
      heap[at] ^= mixed(table[i] + sum);
      table[at] -= stack[i];
      sum += mixed(stack[i]);
    }
  printf("%llu: %016llx\n", (unsigned long long)number, (unsigned long long)sum);
  return (int)(number % 3);
}
