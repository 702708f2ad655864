// malloc by all threads, omp_alloc, allocate, output from threads.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  int wrong = 0;
#pragma omp parallel for reduction(+ : wrong) schedule(dynamic)
  for (int i = 0; i < 300; ++i) {
    const size_t size = (size_t)(i * 37 % 2000 + 1);
    unsigned char* const p = malloc(size);
    memset(p, i & 255, size);
    unsigned char* const q = realloc(p, 2 * size);
    for (size_t j = 0; j < size; ++j) wrong += q[j] != (i & 255);
    free(q);
  }
  printf("malloc: %d wrong\n", wrong);
  const omp_alloctrait_t traits[] = {
      {omp_atk_alignment, 128}, {omp_atk_pool_size, 4096}, {omp_atk_fallback, omp_atv_null_fb}};
  const omp_allocator_handle_t pool = omp_init_allocator(omp_default_mem_space, 3, traits);
  void* const block = omp_alloc(1000, pool);
  void* const too_much = omp_alloc(8000, pool);
  printf("omp_alloc: %d %d %d\n", block != 0, (uintptr_t)block % 128 == 0, too_much == 0);
  omp_free(block, pool);
  omp_destroy_allocator(pool);
  int x = 3;
#pragma omp parallel allocate(omp_default_mem_alloc : x) firstprivate(x) reduction(+ : wrong)
  {
    x += omp_get_thread_num();
    wrong += x != 3 + omp_get_thread_num();
  }
  printf("allocate: %d wrong\n", wrong);
  char lines[10][32];
#pragma omp parallel for
  for (int i = 0; i < 10; ++i) snprintf(lines[i], sizeof lines[i], "line %d: %.3f", i, i / 7.0);
  for (int i = 0; i < 10; ++i) puts(lines[i]);
  int written = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : written)
  for (int i = 0; i < 20; ++i) {
#pragma omp critical
    written += fprintf(stderr, "from a thread\n");
  }
  printf("written %d\n", written);
  return 0;
}
