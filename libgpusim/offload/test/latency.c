// SPDX-License-Identifier: MIT
// What a kernel that does nothing costs, from the call to its end: the median of many.
//
//   offload_latency [--rounds N] [--cores N] [--open OPTIONS] [--kernels FILE]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libgpusim/offload/gpusim.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(int status, const char* what) {
  if (status == GPUSIM_OK) return;
  fprintf(stderr, "offload_latency: %s: %s\n", what, gpusim_last_error());
  exit(2);
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

#ifndef GPUSIM_NATIVE
void nothing(void);
void nothing(void) {}
#endif

int main(int argc, char** argv) {
  const char* options = NULL;
  const char* file = "offload_kernels.elf";
  uint32_t cores = 1;
  int rounds = 2000;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--cores") == 0) cores = (uint32_t)atoi(argv[i + 1]);
    if (strcmp(argv[i], "--open") == 0) options = argv[i + 1];
    if (strcmp(argv[i], "--kernels") == 0) file = argv[i + 1];
  }
  gpusim_device* device;
  gpusim_program* program;
  gpusim_kernel* kernel;
  gpusim_queue* queue;
  const double begin = now();
  must(gpusim_open(options, &device), "opening the device");
  const double opened = now();
#ifdef GPUSIM_NATIVE
  must(gpusim_program_from_file(device, file, &program), "loading the kernels");
  must(gpusim_kernel_from_name(program, "nothing", &kernel), "the kernel");
#else
  (void)file;
  must(gpusim_program_from_self(device, &program), "loading the kernels");
  must(gpusim_kernel_from_function(program, (const void*)(uintptr_t)nothing, &kernel),
       "the kernel");
#endif
  const double loaded = now();
  must(gpusim_queue_create(device, &queue), "a queue");
  double* const times = calloc((size_t)(rounds > 0 ? rounds : 1), sizeof *times);
  if (times == NULL || rounds < 1) return 2;
  for (int i = 0; i < rounds; ++i) {
    const double start = now();
    gpusim_event* event;
    must(gpusim_enqueue_kernel(queue, kernel, cores, 0, NULL, &event), "starting");
    must(gpusim_event_finish(event, -1), "the kernel");
    times[i] = now() - start;
    gpusim_event_release(event);
  }
  const double first = times[0];
  qsort(times, (size_t)rounds, sizeof *times, compare);
  printf("open_us=%.1f\nload_us=%.1f\nfirst_us=%.1f\nmedian_us=%.2f\nbest_us=%.2f\np99_us=%.2f\n",
         opened - begin, loaded - opened, first, times[rounds / 2], times[0],
         times[rounds - 1 - rounds / 100]);
  free(times);
  gpusim_kernel_release(kernel);
  gpusim_program_release(program);
  gpusim_queue_release(queue);
  gpusim_close(device);
  return 0;
}
