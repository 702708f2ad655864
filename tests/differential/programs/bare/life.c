// The game of life on a torus, in bytes and in bit-parallel rows.
#include "bare.h"

enum { kSide = 32 };
static uint8_t cells[kSide][kSide], next[kSide][kSide];
static uint32_t rows[kSide], next_rows[kSide];

static NOINLINE void step(void) {
  for (int y = 0; y < kSide; y++)
    for (int x = 0; x < kSide; x++) {
      int n = 0;
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) n += cells[(y + dy) & 31][(x + dx) & 31];
      next[y][x] = n == 3 || (n == 4 && cells[y][x]);
    }
  memcpy(cells, next, sizeof cells);
}

static uint32_t left(uint32_t r) { return r << 1 | r >> 31; }
static uint32_t right(uint32_t r) { return r >> 1 | r << 31; }

static NOINLINE void step_bits(void) {
  for (int y = 0; y < kSide; y++) {
    uint32_t ones = 0, twos = 0, fours = 0;
    for (int d = -1; d <= 1; d++) {
      uint32_t row = rows[(y + d) & 31], parts[3] = {left(row), d ? row : 0, right(row)};
      for (int i = 0; i < 3; i++) {
        uint32_t carry = ones & parts[i];
        ones ^= parts[i];
        fours |= twos & carry;
        twos ^= carry;
      }
    }
    next_rows[y] = twos & ~fours & (ones | rows[y]);
  }
  memcpy(rows, next_rows, sizeof rows);
}

int main(void) {
  int wrong = 0;
  for (int y = 0; y < kSide; y++) {
    rows[y] = next_random() & next_random();
    for (int x = 0; x < kSide; x++) cells[y][x] = rows[y] >> x & 1;
  }
  for (int generation = 0; generation < 6; generation++) {
    int alive = 0, alive_bits = 0;
    step();
    step_bits();
    for (int y = 0; y < kSide; y++) {
      alive_bits += __builtin_popcount(rows[y]);
      for (int x = 0; x < kSide; x++) {
        alive += cells[y][x];
        wrong += cells[y][x] != (rows[y] >> x & 1);
      }
    }
    print("%d: %d %d\n", generation, alive, alive_bits);
  }
  print("wrong %d\n", wrong);
  return wrong != 0;
}
