// task: recursion, taskwait, taskgroup, final, if, untied, priority, taskloop, detach.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fib(int n) {
  if (n < 2) return n;
  int a, b;
#pragma omp task shared(a) if (n > 6)
  a = fib(n - 1);
#pragma omp task shared(b) final(n < 5) mergeable
  b = fib(n - 2);
#pragma omp taskwait
  return a + b;
}

static int queens(int n, int row, unsigned columns, unsigned left, unsigned right) {
  if (row == n) return 1;
  int found[16] = {0}, total = 0;
  for (int c = 0; c < n; ++c) {
    const unsigned bit = 1u << c;
    if ((columns | left | right) & bit) continue;
    if (row < 2) {
#pragma omp task shared(found) firstprivate(c, bit) untied
      found[c] = queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    } else {
      found[c] = queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
  }
#pragma omp taskwait
  for (int c = 0; c < n; ++c) total += found[c];
  return total;
}

struct node {
  struct node *left, *right;
  int value;
};
static struct node* build(int low, int high) {
  if (low > high) return 0;
  struct node* const n = malloc(sizeof *n);
  n->value = (low + high) / 2;
  n->left = build(low, n->value - 1);
  n->right = build(n->value + 1, high);
  return n;
}
static long tree_sum;
static void walk(struct node* n) {
  if (n == 0) return;
#pragma omp task
  walk(n->left);
#pragma omp task
  walk(n->right);
#pragma omp atomic
  tree_sum += n->value;
}

static void sort(int* a, int* scratch, int n) {
  if (n < 2) return;
  const int half = n / 2;
#pragma omp task if (n > 50)
  sort(a, scratch, half);
#pragma omp task if (n > 50)
  sort(a + half, scratch + half, n - half);
#pragma omp taskwait
  for (int i = 0, j = half, k = 0; k < n; ++k)
    scratch[k] = j >= n || (i < half && a[i] <= a[j]) ? a[i++] : a[j++];
  memcpy(a, scratch, (size_t)n * sizeof *a);
}

int main(void) {
  int result = 0, q = 0;
#pragma omp parallel
#pragma omp single
  {
    result = fib(14);
    q = queens(7, 0, 0, 0, 0);
  }
  printf("fib %d, queens %d\n", result, q);

  struct node* const root = build(1, 300);
#pragma omp parallel
#pragma omp master
  walk(root);
  printf("tree %ld\n", tree_sum);

  int values[500], scratch[500], sorted = 1;
  for (int i = 0; i < 500; ++i) values[i] = i * 7919 % 1009;
#pragma omp parallel
#pragma omp single nowait
  sort(values, scratch, 500);
  for (int i = 1; i < 500; ++i) sorted = sorted && values[i - 1] <= values[i];
  printf("sorted %d\n", sorted);

  int group = 0, before = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskgroup
    for (int i = 0; i < 10; ++i) {
#pragma omp task
      {
#pragma omp task
        {
#pragma omp atomic
          ++group;
        }
      }
    }
    before = group;
  }
  printf("taskgroup waits for descendants: %d %d\n", before, group);

  int order[3] = {0}, position = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp task if (0)
    order[position++] = 1;
    order[position++] = 2;
#pragma omp task final(1)
    {
#pragma omp task
      order[position++] = omp_in_final() ? 3 : 4;
    }
#pragma omp taskwait
  }
  printf("undeferred: %d %d %d\n", order[0], order[1], order[2]);

  int made = 0;
#pragma omp parallel
  {
#pragma omp for nowait
    for (int i = 0; i < 200; ++i) {
#pragma omp task priority(i % 5)
      {
#pragma omp taskyield
#pragma omp atomic
        ++made;
      }
    }
#pragma omp barrier
#pragma omp single
    printf("after the barrier: %d tasks\n", made);
  }

  long looped = 0, parts = 0;
  static int touched[1000];
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskloop grainsize(13)
    for (int i = 0; i < 1000; ++i) ++touched[i];
#pragma omp taskloop num_tasks(7) reduction(+ : looped)
    for (long i = 999; i >= 0; i -= 3) looped += i;
#pragma omp taskloop nogroup firstprivate(looped)
    for (unsigned long long i = 0; i < 100; ++i) {
#pragma omp atomic
      parts += (long)i;
    }
#pragma omp taskwait
#pragma omp taskloop collapse(2) shared(parts) grainsize(strict : 10)
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 10; ++j) {
#pragma omp atomic
        parts += i * j;
      }
  }
  int missed = 0;
  for (int i = 0; i < 1000; ++i) missed += touched[i] != 1;
  printf("taskloop: missed %d, %ld, %ld\n", missed, looped, parts);

  int detached = 0;
#pragma omp parallel
#pragma omp single
  {
    omp_event_handle_t event;
#pragma omp task detach(event) depend(out : detached)
    {
#pragma omp atomic
      detached += 1;
    }
#pragma omp task
    {
#pragma omp atomic
      detached += 10;
      omp_fulfill_event(event);
    }
#pragma omp task depend(in : detached)
    printf("detached before: %d\n", detached);
#pragma omp taskwait
  }
#pragma omp task
  detached += 100;
#pragma omp taskwait
  printf("detached %d\n", detached);

  // Who waits for the event of an undeferred task runs its siblings. (libgomp 12 does not.)
  int ran = 1;
#ifdef __aarch64__
  ran = 0;
  omp_event_handle_t first, second;
  int has_second = 0, link = 0;
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) {
#pragma omp task detach(first) depend(out : link)
    {}
#pragma omp task depend(in : link) shared(ran)
    {
      omp_fulfill_event(second);
#pragma omp atomic write
      ran = 1;
    }
#pragma omp task if (0) detach(second)
    {
      if (omp_get_num_threads() == 1) omp_fulfill_event(first);
#pragma omp atomic write
      has_second = 1;
    }
  } else {
    int seen = 0;
    while (!seen) {
#pragma omp atomic read
      seen = has_second;
    }
    for (volatile int later = 0; later < 100000; ++later) {
    }
    omp_fulfill_event(first);
    for (seen = 0; !seen;) {
#pragma omp atomic read
      seen = ran;
    }
  }
#endif
  printf("a sibling of the task waited for: %d\n", ran);
  return 0;
}
