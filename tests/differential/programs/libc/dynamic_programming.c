// Edit distance, longest common subsequence, knapsack, coin change, shortest paths.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int least(int a, int b) { return a < b ? a : b; }

static int edit_distance(const char* a, const char* b) {
  size_t n = strlen(a), m = strlen(b);
  int* row = malloc((m + 1) * sizeof *row);
  for (size_t j = 0; j <= m; j++) row[j] = (int)j;
  for (size_t i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= m; j++) {
      int above = row[j];
      row[j] = least(least(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  int result = row[m];
  free(row);
  return result;
}

static int common(const char* a, const char* b, char* out) {
  static int table[64][64];
  int n = (int)strlen(a), m = (int)strlen(b);
  memset(table, 0, sizeof table);
  for (int i = n - 1; i >= 0; i--)
    for (int j = m - 1; j >= 0; j--)
      table[i][j] = a[i] == b[j]                        ? 1 + table[i + 1][j + 1]
                    : table[i + 1][j] > table[i][j + 1] ? table[i + 1][j]
                                                        : table[i][j + 1];
  for (int i = 0, j = 0; i < n && j < m;) {
    if (a[i] == b[j])
      *out++ = a[i], i++, j++;
    else if (table[i + 1][j] >= table[i][j + 1])
      i++;
    else
      j++;
  }
  *out = 0;
  return table[0][0];
}

enum { kNodes = 24 };

int main(void) {
  char out[64];
  printf("%d %d %d\n", edit_distance("kitten", "sitting"), edit_distance("", "abc"),
         edit_distance("intention", "execution"));
  int n = common("the quick brown fox jumps", "a thick crown for jumpers", out);
  printf("%d [%s]\n", n, out);
  int best[101] = {0}, ways[101] = {1}, coins[] = {1, 5, 10, 25, 50};
  for (int item = 1; item <= 12; item++)
    for (int w = 100; w >= item * 5 % 23 + 3; w--) {
      int value = best[w - item * 5 % 23 - 3] + item * item % 31;
      if (value > best[w]) best[w] = value;
    }
  for (int c = 0; c < 5; c++)
    for (int w = coins[c]; w <= 100; w++) ways[w] += ways[w - coins[c]];
  printf("%d %d\n", best[100], ways[100]);
  int d[kNodes][kNodes], from[kNodes], done[kNodes] = {0};
  for (int i = 0; i < kNodes; i++)
    for (int j = 0; j < kNodes; j++)
      d[i][j] = i == j ? 0 : (i * 17 + j * 31) % 7 == 0 ? 1 + (i * j) % 19 : INT_MAX / 4;
  for (int i = 0; i < kNodes; i++) from[i] = d[0][i];
  for (int round = 0; round < kNodes; round++) {
    int u = -1;
    for (int i = 0; i < kNodes; i++)
      if (!done[i] && (u < 0 || from[i] < from[u])) u = i;
    done[u] = 1;
    for (int i = 0; i < kNodes; i++) from[i] = least(from[i], from[u] + d[u][i]);
  }
  for (int k = 0; k < kNodes; k++)
    for (int i = 0; i < kNodes; i++)
      for (int j = 0; j < kNodes; j++) d[i][j] = least(d[i][j], d[i][k] + d[k][j]);
  int wrong = 0;
  for (int i = 0; i < kNodes; i++) wrong += d[0][i] != from[i];
  printf("%d %d wrong %d\n", d[0][kNodes - 1], d[3][5], wrong);
  return wrong;
}
