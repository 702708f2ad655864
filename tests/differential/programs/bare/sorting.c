// Five sorting algorithms over the same numbers; all must agree.
#include "bare.h"

enum { kCount = 200 };

static NOINLINE void insertion(int* a, int n) {
  for (int i = 1; i < n; i++) {
    int x = a[i], j = i;
    for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
    a[j] = x;
  }
}

static NOINLINE void shell(int* a, int n) {
  for (int gap = n / 2; gap; gap /= 2)
    for (int i = gap; i < n; i++)
      for (int j = i; j >= gap && a[j - gap] > a[j]; j -= gap) {
        int t = a[j];
        a[j] = a[j - gap];
        a[j - gap] = t;
      }
}

static void sift(int* a, int root, int n) {
  for (int child; (child = 2 * root + 1) < n; root = child) {
    if (child + 1 < n && a[child] < a[child + 1]) child++;
    if (a[root] >= a[child]) return;
    int t = a[root];
    a[root] = a[child];
    a[child] = t;
  }
}

static NOINLINE void heap(int* a, int n) {
  for (int i = n / 2; i-- > 0;) sift(a, i, n);
  for (int end = n - 1; end > 0; end--) {
    int t = a[0];
    a[0] = a[end];
    a[end] = t;
    sift(a, 0, end);
  }
}

static NOINLINE void quick(int* a, int n) {
  if (n < 2) return;
  int pivot = a[n / 2], i = 0, j = n - 1;
  while (i <= j) {
    while (a[i] < pivot) i++;
    while (a[j] > pivot) j--;
    if (i <= j) {
      int t = a[i];
      a[i++] = a[j];
      a[j--] = t;
    }
  }
  quick(a, j + 1);
  quick(a + i, n - i);
}

static NOINLINE void merge(int* a, int n) {
  if (n < 2) return;
  int half = n / 2, copy[kCount];
  merge(a, half);
  merge(a + half, n - half);
  memcpy(copy, a, (size_t)n * sizeof *a);
  for (int i = 0, j = half, k = 0; k < n; k++)
    a[k] = j >= n || (i < half && copy[i] <= copy[j]) ? copy[i++] : copy[j++];
}

int main(void) {
  static void (*const sorts[])(int*, int) = {insertion, shell, heap, quick, merge};
  int input[kCount], first[kCount], work[kCount], wrong = 0;
  for (int i = 0; i < kCount; i++) input[i] = (int)(next_random() % 2000) - 1000;
  for (size_t s = 0; s < LENGTH(sorts); s++) {
    memcpy(work, input, sizeof work);
    sorts[s](work, kCount);
    if (s == 0) memcpy(first, work, sizeof first);
    wrong += memcmp(first, work, sizeof first) != 0;
    for (int i = 1; i < kCount; i++) wrong += work[i - 1] > work[i];
  }
  for (int i = 0; i < kCount; i += 10) print("%d ", first[i]);
  print("\nwrong: %d\n", wrong);
  return wrong;
}
