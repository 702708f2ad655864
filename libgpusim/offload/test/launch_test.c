// SPDX-License-Identifier: MIT
// Launching in one line, what functions take, rectangles of cores, structures, times, printing, and
// kernels of several queues at once.
#include "offload_test.h"

static void one_line(struct fixture* f) {
  gpusim_buffer* const b = new_buffer(f->device, 3 * 400);
  int32_t* const values = gpusim_buffer_pointer(b);
  for (int32_t i = 0; i < 100; ++i) {
    values[i] = i;
    values[100 + i] = 3 * i;
  }
  gpusim_kernel* const k = KERNEL(f->program, add);
  OK(gpusim_launch(f->queue, k, 7, GPUSIM_CORE, GPUSIM_CORES, b, GPUSIM_AT(b, 400),
                   GPUSIM_AT(b, 800), 100));
  OK(gpusim_queue_finish(f->queue));
  for (int32_t i = 0; i < 100; ++i) CHECK(values[200 + i] == 4 * i);
  OK(gpusim_kernel_release(k));

  gpusim_kernel* const kinds = KERNEL(f->program, all_kinds);
  double* const out = gpusim_buffer_pointer(b);
  const int8_t negative = -3;
  const float number = 0.5f;
  gpusim_event* event;
  OK(gpusim_launch_event(f->queue, kinds, &event, 2, GPUSIM_CORE, GPUSIM_CORES, negative,
                         GPUSIM_AFFINE(5, 2), 7u, out, number, 0.25, 0.125));
  OK(gpusim_event_finish(event, 60));
  OK(gpusim_event_release(event));
  CHECK(out[1] == -3 + 7e3 + 7e6 + 0.5 + 0.25 + 0.125 + 2e-3);
  OK(gpusim_kernel_release(kinds));
  gpusim_kernel* const nothing_at_all = KERNEL(f->program, nothing);
  OK(gpusim_launch(f->queue, nothing_at_all, 3));
  OK(gpusim_queue_finish(f->queue));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_launch(f->queue, nothing_at_all, 0));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_launch(NULL, nothing_at_all, 1));
  OK(gpusim_kernel_release(nothing_at_all));
  OK(gpusim_buffer_release(b));
}

// The test program has debug information.
static void what_functions_take(struct fixture* f) {
  gpusim_buffer* const b = new_buffer(f->device, 64);
  gpusim_kernel* const k = KERNEL(f->program, all_kinds);
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_launch(f->queue, k, 1, GPUSIM_CORE, GPUSIM_CORES, 1, 2, 3, b, 0.5f, 0.25));
  CHECK(strstr(gpusim_last_error(), "\"own_double\" of all_kinds() is not set") != NULL);
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_launch(f->queue, k, 1, GPUSIM_CORE, GPUSIM_CORES, 1, 2, 3, b, 0.5, 0.25, 0.125));
  CHECK(strstr(gpusim_last_error(), "\"f\" of all_kinds() is a float; it was set as a double") !=
        NULL);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_u64(k, 8, 1));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_double(k, 0, 1));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_u64(k, 9, 1));
  CHECK(strstr(gpusim_last_error(), "all_kinds() takes 9") != NULL);
  OK(gpusim_kernel_set_u64(k, 0, 1));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_kernel(f->queue, k, 1, 0, NULL, NULL));
  CHECK(strstr(gpusim_last_error(), "argument 1 \"cores\"") != NULL);
  OK(gpusim_kernel_release(k));
  gpusim_kernel* const none = KERNEL(f->program, nothing);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_launch(f->queue, none, 1, 5));
  CHECK(strstr(gpusim_last_error(), "nothing() takes 0") != NULL);
  OK(gpusim_kernel_release(none));
  OK(gpusim_buffer_release(b));
}

static void rectangles(struct fixture* f) {
  enum { kColumns = 13, kRows = 5 };
  gpusim_buffer* const b = new_buffer(f->device, 8 * kColumns * kRows);
  const uint64_t* const out = gpusim_buffer_pointer(b);
  gpusim_kernel* const k = KERNEL(f->program, place);
  OK(gpusim_launch_2d(f->queue, k, kColumns, kRows, GPUSIM_X, GPUSIM_Y, GPUSIM_COLUMNS, GPUSIM_ROWS,
                      b));
  OK(gpusim_queue_finish(f->queue));
  for (uint64_t i = 0; i < kColumns * kRows; ++i) {
    CHECK(out[i] ==
          i % kColumns + 1000 * (i / kColumns) + 1000000 * kColumns + 1000000000ull * kRows);
  }
  // By the set-calls; and as one row where nobody says otherwise.
  OK(gpusim_kernel_set_core_x(k, 0));
  OK(gpusim_kernel_set_core_y(k, 1));
  OK(gpusim_kernel_set_columns(k, 2));
  OK(gpusim_kernel_set_rows(k, 3));
  OK(gpusim_kernel_set_buffer(k, 4, b, 0));
  OK(gpusim_enqueue_kernel_2d(f->queue, k, 3, 2, 0, NULL, NULL));
  OK(gpusim_queue_finish(f->queue));
  CHECK(out[5] == 2 + 1000 * 1 + 1000000 * 3 + 1000000000ull * 2);
  OK(gpusim_enqueue_kernel(f->queue, k, 4, 0, NULL, NULL));
  OK(gpusim_queue_finish(f->queue));
  CHECK(out[3] == 3 + 1000000 * 4 + 1000000000ull);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_kernel_2d(f->queue, k, 0, 3, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_enqueue_kernel_2d(f->queue, k, 1u << 31, 1u << 31, 0, NULL, NULL));
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(b));
}

static void structure_arguments(struct fixture* f) {
  enum { kCores = 70 };
  gpusim_buffer* const b = new_buffer(f->device, 8 * kCores);
  const double* const out = gpusim_buffer_pointer(b);
  gpusim_kernel* const k = KERNEL(f->program, structures);
  const struct small s = {-7, 5};
  const struct large l = {{1, 2, 3, 4, 5}, 0.5f};
  const struct point p = {1, 2, 3};
  for (int round = 0; round < 2; ++round) {
    memset(gpusim_buffer_pointer(b), 0, 8 * kCores);
    if (round == 0) {
      OK(gpusim_launch(f->queue, k, kCores, GPUSIM_CORE, GPUSIM_STRUCTURE(s), GPUSIM_STRUCTURE(l),
                       GPUSIM_STRUCTURE(p), b));
    } else {
      OK(gpusim_kernel_set_core_id(k, 0));
      OK(gpusim_kernel_set_structure(k, 1, &s, sizeof s));
      OK(gpusim_kernel_set_structure(k, 2, &l, sizeof l));
      OK(gpusim_kernel_set_floats(k, 3, &p.x, 3));
      OK(gpusim_kernel_set_buffer(k, 4, b, 0));
      OK(gpusim_enqueue_kernel(f->queue, k, kCores, 0, NULL, NULL));
    }
    OK(gpusim_queue_finish(f->queue));
    for (int core = 0; core < kCores; ++core) {
      CHECK(out[core] == -7 + 50 + (15 + core) * 0.5 + 17e6);
    }
  }
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_structure(k, 2, &l, sizeof l - 8));
  CHECK(strstr(gpusim_last_error(), "\"l\" of structures() has 48 bytes, not 40") != NULL);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_structure(k, 1, NULL, 16));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_floats(k, 3, &p.x, 5));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_u64(k, 2, 1));
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(b));
}

static void times(struct fixture* f) {
  gpusim_kernel* const k = KERNEL(f->program, nothing);
  gpusim_event* e[3];
  gpusim_times t[3];
  gpusim_queue* other;
  OK(gpusim_queue_create(f->device, &other));
  OK(gpusim_enqueue_kernel(f->queue, k, 100, 0, NULL, &e[0]));
  OK(gpusim_enqueue_marker(f->queue, &e[1]));
  OK(gpusim_enqueue_kernel(other, k, 3, 2, e, &e[2]));
  OK(gpusim_event_finish(e[2], 60));
  for (int i = 0; i < 3; ++i) {
    OK(gpusim_event_times(e[i], &t[i]));
    CHECK(t[i].queued_ns != 0 && t[i].queued_ns <= t[i].started_ns &&
          t[i].started_ns <= t[i].ended_ns);
  }
  CHECK(t[0].ended_ns <= t[1].started_ns && t[1].ended_ns <= t[2].started_ns);
  CHECK(t[0].queued_ns <= t[1].queued_ns && t[1].queued_ns <= t[2].queued_ns);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_times(NULL, &t[0]));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_times(e[0], NULL));
  for (int i = 0; i < 3; ++i) OK(gpusim_event_release(e[i]));
  // One that never began.
  gpusim_kernel* const endless = KERNEL(f->program, forever);
  OK(gpusim_enqueue_kernel(f->queue, endless, 1, 0, NULL, &e[0]));
  OK(gpusim_enqueue_kernel(f->queue, k, 1, 0, NULL, &e[1]));
  EXPECT(GPUSIM_BUSY, gpusim_event_times(e[0], &t[0]));
  OK(gpusim_event_cancel(e[1]));
  OK(gpusim_event_cancel(e[0]));
  EXPECT(GPUSIM_CANCELLED, gpusim_event_finish(e[0], 60));
  OK(gpusim_event_times(e[1], &t[1]));
  CHECK(t[1].queued_ns != 0 && t[1].started_ns == 0 && t[1].ended_ns >= t[1].queued_ns);
  for (int i = 0; i < 2; ++i) OK(gpusim_event_release(e[i]));
  gpusim_queue_finish(f->queue);
  OK(gpusim_kernel_release(endless));
  OK(gpusim_kernel_release(k));
  OK(gpusim_queue_release(other));
}

struct printed {
  size_t size;
  unsigned calls;
  char text[4096];
};

static void gather(void* context, const char* text, size_t size) {
  struct printed* const p = context;
  if (size > sizeof p->text - p->size) size = sizeof p->text - p->size;
  memcpy(p->text + p->size, text, size);
  p->size += size;
  ++p->calls;
}

static void printing(struct fixture* f) {
  struct printed got = {0, 0, ""};
  OK(gpusim_device_set_output(f->device, gather, &got));
  gpusim_buffer* const name = new_buffer(f->device, 16);
  strcpy(gpusim_buffer_pointer(name), "row");
  gpusim_kernel* const k = KERNEL(f->program, print);
  gpusim_event* event;
  OK(gpusim_launch_event(f->queue, k, &event, 70, GPUSIM_CORE, name, 1.25));
  OK(gpusim_event_finish(event, 60));
  // In the order of cores, whole lines, at once.
  char wanted[4096];
  size_t size = 0;
  for (int core = 0; core < 70; ++core) {
    size += (size_t)snprintf(wanted + size, sizeof wanted - size, "core %2d of row: %.3f\n", core,
                             1.25 * core);
  }
  CHECK(got.calls == 1 && got.size == size && memcmp(got.text, wanted, size) == 0);
  const char* text;
  size_t kept;
  OK(gpusim_event_output(event, &text, &kept));
  CHECK(kept == size && memcmp(text, wanted, size) == 0);
  OK(gpusim_event_release(event));
  // To nobody.
  OK(gpusim_device_set_output(f->device, NULL, NULL));
  OK(gpusim_launch(f->queue, k, 1, GPUSIM_CORE, name, 1.0));
  OK(gpusim_queue_finish(f->queue));
  CHECK(got.calls == 1);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_device_set_output(NULL, NULL, NULL));
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(name));
}

#ifndef GPUSIM_NATIVE
static int (*volatile print_line)(const char*) = puts;
static void print_by_pointer(void) {
  if (print_line("from a core") < 0) print_line = NULL;
}
static void print_in_sight(void) { printf("from a core %p\n", (void*)&print_line); }

static void locks_of_the_caller(struct fixture* f) {
  gpusim_kernel* k;
  EXPECT(GPUSIM_NOT_SUPPORTED,
         gpusim_kernel_from_function(f->program, (const void*)(uintptr_t)print_in_sight, &k));
  CHECK(strstr(gpusim_last_error(), "print_in_sight() cannot be a kernel: it calls printf()") !=
        NULL);
  CHECK(strstr(gpusim_last_error(), "gpusim_printf()") != NULL);
  k = KERNEL(f->program, print_by_pointer);
  EXPECT(GPUSIM_KERNEL_FAILED, run_kernel(f->queue, k, 3));
  gpusim_event* event;
  OK(gpusim_launch_event(f->queue, k, &event, 1));
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_event_finish(event, 60));
  CHECK(strstr(gpusim_last_error(), "called puts() from print_by_pointer") != NULL);
  OK(gpusim_event_release(event));
  // Which would wait for ever had the core kept the lock.
  printf("the lock of standard output is free\n");
  fflush(stdout);
  OK(gpusim_kernel_release(k));
}
#else
static void locks_of_the_caller(struct fixture* f) {
  (void)f;
  skip_test("kernels of a file have no variables of the caller's");
}
#endif

// Each of the two kernels waits for what the other one writes.
static void queues_overlap(struct fixture* f) {
  gpusim_queue* other;
  OK(gpusim_queue_create(f->device, &other));
  gpusim_kernel* const k = KERNEL(f->program, signal_and_await);
  gpusim_buffer* const b = new_buffer(f->device, 128);
  for (int round = 0; round < 20; ++round) {
    memset(gpusim_buffer_pointer(b), 0, 128);
    gpusim_event* e[2];
    const unsigned cores = round % 2 == 0 ? 1 : 40;
    OK(gpusim_launch_event(f->queue, k, &e[0], cores, b, GPUSIM_AT(b, 64)));
    OK(gpusim_launch_event(other, k, &e[1], cores, GPUSIM_AT(b, 64), b));
    OK(gpusim_event_finish(e[0], 60));
    OK(gpusim_event_finish(e[1], 60));
    for (int i = 0; i < 2; ++i) OK(gpusim_event_release(e[i]));
  }
  OK(gpusim_queue_release(other));
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(b));
}

// gpusim_barrier() and the reductions count the cores of one kernel, whatever else runs.
static void barriers_of_two_kernels(struct fixture* f) {
  enum { kQueues = 3, kMost = 100 };
  const uint64_t rounds = 200;
  gpusim_queue* queues[kQueues];
  gpusim_event* e[kQueues];
  gpusim_kernel* const k = KERNEL(f->program, many_barriers);
  gpusim_buffer* const b = new_buffer(f->device, kQueues * kMost * 8);
  const uint64_t* const sums = gpusim_buffer_pointer(b);
  for (unsigned q = 0; q < kQueues; ++q) {
    OK(gpusim_queue_create(f->device, &queues[q]));
    OK(gpusim_launch_event(queues[q], k, &e[q], kMost - 30 * q, GPUSIM_CORE, GPUSIM_CORES, rounds,
                           GPUSIM_AT(b, q * kMost * 8)));
  }
  for (unsigned q = 0; q < kQueues; ++q) {
    OK(gpusim_event_finish(e[q], 60));
    OK(gpusim_event_release(e[q]));
    const uint64_t cores = kMost - 30 * q;
    const uint64_t one = cores * (cores - 1) / 2;
    const uint64_t wanted = rounds * one + cores * (rounds * (rounds - 1) / 2) + cores;
    for (uint64_t core = 0; core < cores; ++core) CHECK(sums[q * kMost + core] == wanted);
    OK(gpusim_queue_release(queues[q]));
  }
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(b));
}

const struct test tests_of_launches[] = {
    {"one_line", one_line},
    {"what_functions_take", what_functions_take},
    {"rectangles", rectangles},
    {"structure_arguments", structure_arguments},
    {"times", times},
    {"printing", printing},
    {"locks_of_the_caller", locks_of_the_caller},
    {"queues_overlap", queues_overlap},
    {"barriers_of_two_kernels", barriers_of_two_kernels},
    {NULL, NULL},
};
