// N queens with arrays and with bits; knight's moves; a small sudoku by backtracking.
#include "bare.h"

static int columns[16];

static NOINLINE int place(int row, int n) {
  if (row == n) return 1;
  int found = 0;
  for (int c = 0; c < n; c++) {
    int ok = 1;
    for (int r = 0; r < row && ok; r++)
      ok = columns[r] != c && columns[r] - c != r - row && columns[r] - c != row - r;
    if (ok) {
      columns[row] = c;
      found += place(row + 1, n);
    }
  }
  return found;
}

static NOINLINE int place_bits(unsigned all, unsigned cols, unsigned left, unsigned right) {
  if (cols == all) return 1;
  int found = 0;
  for (unsigned free = all & ~(cols | left | right); free; free &= free - 1) {
    unsigned bit = free & -free;
    found += place_bits(all, cols | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return found;
}

static char board[4][4] = {{1, 0, 0, 0}, {0, 0, 3, 0}, {0, 4, 0, 0}, {0, 0, 0, 2}};

static NOINLINE int solve(int cell) {
  if (cell == 16) return 1;
  int r = cell / 4, c = cell % 4;
  if (board[r][c]) return solve(cell + 1);
  for (char v = 1; v <= 4; v++) {
    int ok = 1;
    for (int i = 0; i < 4; i++)
      ok &=
          board[r][i] != v && board[i][c] != v && board[r / 2 * 2 + i / 2][c / 2 * 2 + i % 2] != v;
    if (!ok) continue;
    board[r][c] = v;
    if (solve(cell + 1)) return 1;
    board[r][c] = 0;
  }
  return 0;
}

int main(void) {
  for (int n = 1; n <= 6; n++)
    print("%d queens: %d %d\n", n, place(0, n), place_bits((1u << n) - 1, 0, 0, 0));
  print("8 queens: %d\n", place_bits(255, 0, 0, 0));
  int solved = solve(0);
  for (int r = 0; r < 4; r++)
    print("%d%d%d%d\n", board[r][0], board[r][1], board[r][2], board[r][3]);
  print("solved %d\n", solved);
  return 0;
}
