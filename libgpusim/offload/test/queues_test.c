// SPDX-License-Identifier: MIT
// Order, waiting, cancelling, several queues and threads.
#include <pthread.h>
#include <time.h>

#include "offload_test.h"

static void sleep_ms(long ms) {
  const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

// A kernel that runs until flag[0] is not 0, and then writes it to flag[1].
struct gate {
  gpusim_buffer* buffer;
  gpusim_kernel* kernel;
  volatile uint32_t* flag;
};

static struct gate new_gate(struct fixture* f) {
  struct gate g;
  g.buffer = new_buffer(f->device, 8);
  g.flag = gpusim_buffer_pointer(g.buffer);
  g.kernel = KERNEL(f->program, await);
  OK(gpusim_kernel_set_buffer(g.kernel, 0, g.buffer, 0));
  OK(gpusim_kernel_set_buffer(g.kernel, 1, g.buffer, 4));
  return g;
}

static void release_gate(struct gate* g) {
  OK(gpusim_kernel_release(g->kernel));
  OK(gpusim_buffer_release(g->buffer));
}

static void in_order(struct fixture* f) {
  gpusim_buffer* const b = new_buffer(f->device, 8);
  gpusim_kernel* const k = KERNEL(f->program, times_two_plus);
  OK(gpusim_kernel_set_buffer(k, 0, b, 0));
  uint64_t wanted = 1;
  const uint64_t one = 1;
  OK(gpusim_enqueue_write(f->queue, b, 0, 8, &one, 0, NULL, NULL));
  // Behind a kernel that waits, so that all of it is queued.
  struct gate gate = new_gate(f);
  OK(gpusim_enqueue_kernel(f->queue, gate.kernel, 1, 0, NULL, NULL));
  for (uint64_t i = 0; i < 50; ++i) {
    OK(gpusim_kernel_set_u64(k, 1, i));
    OK(gpusim_enqueue_kernel(f->queue, k, 1, 0, NULL, NULL));
    wanted = wanted * 2 + i;
  }
  uint64_t got = 0;
  gpusim_event* marker;
  gpusim_event* read;
  OK(gpusim_enqueue_read(f->queue, b, 0, 8, &got, 0, NULL, &read));
  OK(gpusim_enqueue_marker(f->queue, &marker));
  CHECK(gpusim_event_status(marker) == GPUSIM_RUNNING);
  EXPECT(GPUSIM_TIMED_OUT, gpusim_event_finish(marker, 0.01));
  EXPECT(GPUSIM_TIMED_OUT, gpusim_event_finish(read, 0));
  gate.flag[0] = 5;
  OK(gpusim_event_finish(marker, -1));
  CHECK(gpusim_event_status(read) == GPUSIM_OK);
  CHECK(got == wanted && gate.flag[1] == 5);
  OK(gpusim_queue_finish(f->queue));
  OK(gpusim_event_release(read));
  OK(gpusim_event_release(marker));
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(b));
  release_gate(&gate);
}

// A command of another queue overtakes a kernel that has not ended.
static void out_of_order(struct fixture* f) {
  gpusim_queue* other;
  OK(gpusim_queue_create(f->device, &other));
  struct gate gate = new_gate(f);
  gpusim_event* first;
  gpusim_event* second;
  OK(gpusim_enqueue_kernel(f->queue, gate.kernel, 1, 0, NULL, &first));
  const uint32_t seven = 7;
  // Which lets the kernel end.
  CHECK(gpusim_event_status(first) == GPUSIM_RUNNING);
  gpusim_event* marker;
  OK(gpusim_enqueue_marker(other, &marker));
  OK(gpusim_event_finish(marker, -1));
  CHECK(gpusim_event_status(first) == GPUSIM_RUNNING);
  gpusim_statistics s;
  EXPECT(GPUSIM_BUSY, gpusim_event_statistics(first, &s));
  OK(gpusim_enqueue_write(other, gate.buffer, 0, 4, &seven, 0, NULL, &second));
  OK(gpusim_event_finish(second, -1));
  OK(gpusim_event_finish(first, -1));
  CHECK(gate.flag[1] == 7);
  OK(gpusim_event_statistics(first, &s));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_statistics(second, &s));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_statistics(first, NULL));
  OK(gpusim_event_release(first));
  OK(gpusim_event_release(second));
  OK(gpusim_event_release(marker));
  OK(gpusim_queue_release(other));
  release_gate(&gate);
}

// a waits for b waits for c, each in a queue of its own, enqueued in the wrong order of time.
static void wait_lists(struct fixture* f) {
  gpusim_queue* q[3];
  for (int i = 0; i < 3; ++i) OK(gpusim_queue_create(f->device, &q[i]));
  gpusim_buffer* const b = new_buffer(f->device, 8);
  gpusim_kernel* const k = KERNEL(f->program, times_two_plus);
  OK(gpusim_kernel_set_buffer(k, 0, b, 0));
  struct gate gate = new_gate(f);
  gpusim_event* e[5];
  OK(gpusim_enqueue_kernel(q[0], gate.kernel, 1, 0, NULL, &e[0]));
  const uint64_t three = 3;
  OK(gpusim_enqueue_write(q[1], b, 0, 8, &three, 1, &e[0], &e[1]));
  OK(gpusim_kernel_set_u64(k, 1, 10));
  OK(gpusim_enqueue_kernel(q[2], k, 1, 1, &e[1], &e[2]));
  OK(gpusim_kernel_set_u64(k, 1, 100));
  gpusim_event* const both[] = {e[0], e[2], e[1], e[2]};
  OK(gpusim_enqueue_kernel(q[1], k, 1, 4, both, &e[3]));
  uint64_t got = 0;
  OK(gpusim_enqueue_read(q[0], b, 0, 8, &got, 1, &e[3], &e[4]));
  sleep_ms(20);
  for (int i = 0; i < 5; ++i) CHECK(gpusim_event_status(e[i]) == GPUSIM_RUNNING);
  gate.flag[0] = 1;
  OK(gpusim_event_finish(e[4], 60));
  CHECK(got == (3 * 2 + 10) * 2 + 100);
  for (int i = 0; i < 5; ++i) CHECK(gpusim_event_status(e[i]) == GPUSIM_OK);
  for (int i = 0; i < 5; ++i) OK(gpusim_event_release(e[i]));

  // Of another device.
  gpusim_device* const device = open_device();
  gpusim_queue* foreign;
  OK(gpusim_queue_create(device, &foreign));
  OK(gpusim_enqueue_marker(foreign, &e[0]));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_write(q[0], b, 0, 8, &three, 1, &e[0], NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_write(foreign, b, 0, 8, &three, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_kernel(foreign, k, 1, 0, NULL, NULL));
  OK(gpusim_event_release(e[0]));
  OK(gpusim_queue_release(foreign));
  OK(gpusim_close(device));
  for (int i = 0; i < 3; ++i) OK(gpusim_queue_release(q[i]));
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(b));
  release_gate(&gate);
}

static void cancelling(struct fixture* f) {
  gpusim_queue* other;
  OK(gpusim_queue_create(f->device, &other));
  gpusim_kernel* const endless = KERNEL(f->program, forever);
  gpusim_kernel* const quick = KERNEL(f->program, nothing);
  gpusim_event* running;
  gpusim_event* queued;
  gpusim_event* dependent;
  gpusim_event* later;
  OK(gpusim_enqueue_kernel(f->queue, endless, 100, 0, NULL, &running));
  OK(gpusim_enqueue_kernel(f->queue, quick, 1, 0, NULL, &queued));
  OK(gpusim_enqueue_marker(f->queue, &later));
  OK(gpusim_enqueue_kernel(other, quick, 1, 1, &running, &dependent));
  EXPECT(GPUSIM_TIMED_OUT, gpusim_event_finish(running, 0.05));
  OK(gpusim_event_cancel(queued));
  EXPECT(GPUSIM_CANCELLED, gpusim_event_finish(queued, 0));
  CHECK(gpusim_event_status(running) == GPUSIM_RUNNING);
  gpusim_statistics s;
  EXPECT(GPUSIM_NOT_FOUND, gpusim_event_statistics(queued, &s));
  OK(gpusim_event_cancel(running));
  EXPECT(GPUSIM_CANCELLED, gpusim_event_finish(running, 20));
  EXPECT(GPUSIM_CANCELLED, gpusim_event_finish(dependent, 20));
  OK(gpusim_event_finish(later, 20));
  EXPECT(GPUSIM_CANCELLED, gpusim_queue_finish(f->queue));
  OK(gpusim_queue_finish(f->queue));
  EXPECT(GPUSIM_CANCELLED, gpusim_queue_finish(other));
  OK(gpusim_event_cancel(running));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_cancel(NULL));
  // The next kernel works.
  OK(run_kernel(f->queue, quick, 100));
  OK(run_kernel(other, quick, 100));
  OK(gpusim_event_release(running));
  OK(gpusim_event_release(queued));
  OK(gpusim_event_release(dependent));
  OK(gpusim_event_release(later));

  // Without a worker thread: nothing was behind it.
  OK(gpusim_enqueue_kernel(f->queue, endless, 1, 0, NULL, &running));
  OK(gpusim_event_cancel(running));
  EXPECT(GPUSIM_CANCELLED, gpusim_event_finish(running, 20));
  OK(gpusim_event_release(running));
  EXPECT(GPUSIM_CANCELLED, gpusim_queue_finish(f->queue));
  // Cancelled, and nobody looks.
  OK(gpusim_enqueue_kernel(f->queue, endless, 1, 0, NULL, &running));
  OK(gpusim_event_cancel(running));
  OK(gpusim_event_release(running));
  OK(gpusim_kernel_release(endless));
  OK(gpusim_kernel_release(quick));
  OK(gpusim_queue_release(other));
}

static void failed_dependencies(struct fixture* f) {
  gpusim_queue* other;
  OK(gpusim_queue_create(f->device, &other));
  gpusim_kernel* const bad = KERNEL(f->program, undefined_instruction);
  gpusim_buffer* const b = new_buffer(f->device, 4);
  gpusim_event* e[3];
  const uint32_t one = 1;
  OK(gpusim_enqueue_kernel(f->queue, bad, 1, 0, NULL, &e[0]));
  OK(gpusim_enqueue_write(other, b, 0, 4, &one, 1, &e[0], &e[1]));
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_event_finish(e[1], 20));
  CHECK(strstr(gpusim_last_error(), "waited for") != NULL);
  CHECK(*(uint32_t*)gpusim_buffer_pointer(b) == 0);
  // It has ended: the same.
  OK(gpusim_enqueue_write(other, b, 0, 4, &one, 1, &e[0], &e[2]));
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_event_finish(e[2], 20));
  CHECK(*(uint32_t*)gpusim_buffer_pointer(b) == 0);
  // After a failure later commands execute.
  OK(gpusim_enqueue_write(other, b, 0, 4, &one, 0, NULL, NULL));
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_queue_finish(other));
  CHECK(*(uint32_t*)gpusim_buffer_pointer(b) == 1);
  for (int i = 0; i < 3; ++i) OK(gpusim_event_release(e[i]));
  OK(gpusim_kernel_release(bad));
  OK(gpusim_buffer_release(b));
  OK(gpusim_queue_release(other));
}

// Objects may be released while commands use them, the device first.
static void releasing_early(struct fixture* f) {
  (void)f;
  for (int round = 0; round < 20; ++round) {
    gpusim_device* const device = open_device();
    gpusim_program* const program = load_kernels(device);
    gpusim_queue* queue;
    OK(gpusim_queue_create(device, &queue));
    struct fixture own = {device, program, queue};
    struct gate gate = new_gate(&own);
    gpusim_buffer* const b = new_buffer(device, 8);
    gpusim_kernel* const k = KERNEL(program, times_two_plus);
    OK(gpusim_kernel_set_buffer(k, 0, b, 0));
    OK(gpusim_kernel_set_u64(k, 1, 21));
    gpusim_event* gated;
    gpusim_event* event;
    OK(gpusim_enqueue_kernel(queue, gate.kernel, 1, 0, NULL, &gated));
    OK(gpusim_enqueue_kernel(queue, k, 1, 0, NULL, NULL));
    uint64_t got = 0;
    OK(gpusim_enqueue_read(queue, b, 0, 8, &got, 0, NULL, &event));
    gpusim_buffer* const unused = new_buffer(device, 1 << 16);
    OK(gpusim_buffer_release(unused));  // kernels run: it goes later
    OK(gpusim_kernel_release(k));
    OK(gpusim_buffer_release(b));
    OK(gpusim_kernel_release(gate.kernel));
    OK(gpusim_program_release(program));
    gate.flag[0] = 1;
    if (round % 2 == 0) {
      OK(gpusim_close(device));
      OK(gpusim_queue_release(queue));
    } else {
      OK(gpusim_queue_release(queue));
      OK(gpusim_close(device));
    }
    CHECK(got == 21);
    CHECK(gpusim_event_status(event) == GPUSIM_OK);
    OK(gpusim_buffer_release(gate.buffer));
    OK(gpusim_event_release(gated));
    OK(gpusim_event_release(event));
  }
}

static void event_calls(struct fixture* f) {
  gpusim_event* e;
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_status(NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_finish(NULL, 0));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_retain(NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_release(NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_queue_finish(NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_queue_release(NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_queue_create(f->device, NULL));
  OK(gpusim_enqueue_marker(f->queue, &e));
  OK(gpusim_event_retain(e));
  OK(gpusim_event_release(e));
  OK(gpusim_event_finish(e, -1));
  OK(gpusim_event_finish(e, 0));
  double joules;
  const char* text;
  size_t size;
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_energy(e, "fermi", &joules));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_output(e, &text, &size));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_output(NULL, &text, &size));
  OK(gpusim_event_release(e));
}

// ---- Threads -----------------------------------------------------------------------------------

enum { kThreads = 6, kRounds = 40, kElements = 300 };

struct thread {
  pthread_t thread;
  struct fixture* fixture;
  gpusim_queue* shared;
  unsigned number;
  bool is_right;
};

static bool add_once(struct thread* t, gpusim_queue* queue, gpusim_kernel* k, gpusim_buffer* b,
                     int32_t base) {
  int32_t* const a = gpusim_buffer_pointer(b);
  for (int32_t i = 0; i < kElements; ++i) {
    a[i] = base + i;
    a[kElements + i] = (int32_t)t->number * i;
    a[2 * kElements + i] = 0;
  }
  gpusim_event* event;
  if (gpusim_enqueue_kernel(queue, k, 1 + t->number * 5, 0, NULL, &event) != GPUSIM_OK)
    return false;
  int32_t last = 0;
  gpusim_event* read;
  if (gpusim_enqueue_read(t->shared, b, (3 * kElements - 1) * 4, 4, &last, 1, &event, &read) !=
      GPUSIM_OK) {
    return false;
  }
  bool right = gpusim_event_finish(event, 60) == GPUSIM_OK;
  for (int32_t i = 0; i < kElements; ++i) right &= a[2 * kElements + i] == a[i] + a[kElements + i];
  right &= gpusim_event_finish(read, 60) == GPUSIM_OK && last == a[3 * kElements - 1];
  gpusim_event_release(event);
  gpusim_event_release(read);
  return right;
}

static void* use_device(void* argument) {
  struct thread* const t = argument;
  struct fixture* const f = t->fixture;
  gpusim_queue* own;
  gpusim_kernel* k;
  gpusim_buffer* b;
  t->is_right = false;
#ifdef GPUSIM_NATIVE
  if (gpusim_kernel_from_name(f->program, "add", &k) != GPUSIM_OK) return NULL;
#else
  if (gpusim_kernel_from_function(f->program, (const void*)(uintptr_t)add, &k) != GPUSIM_OK) {
    return NULL;
  }
#endif
  if (gpusim_queue_create(f->device, &own) != GPUSIM_OK) return NULL;
  bool right = true;
  for (int32_t round = 0; round < kRounds && right; ++round) {
    // Memory comes and goes while kernels of others run.
    if (gpusim_buffer_create(f->device, 0, 3 * kElements * 4, NULL, &b) != GPUSIM_OK) return NULL;
    gpusim_kernel_set_core_id(k, 0);
    gpusim_kernel_set_core_count(k, 1);
    for (unsigned i = 0; i < 3; ++i) gpusim_kernel_set_buffer(k, 2 + i, b, i * kElements * 4);
    gpusim_kernel_set_u64(k, 5, kElements);
    right = add_once(t, round % 3 == 0 ? t->shared : own, k, b, round);
    gpusim_buffer_release(b);
  }
  gpusim_kernel_release(k);
  gpusim_queue_release(own);
  t->is_right = right;
  return NULL;
}

static void many_threads(struct fixture* f) {
  struct thread threads[kThreads];
  for (unsigned i = 0; i < kThreads; ++i) {
    threads[i] = (struct thread){.fixture = f, .shared = f->queue, .number = i};
    CHECK(pthread_create(&threads[i].thread, NULL, use_device, &threads[i]) == 0);
  }
  for (unsigned i = 0; i < kThreads; ++i) pthread_join(threads[i].thread, NULL);
  for (unsigned i = 0; i < kThreads; ++i) CHECK(threads[i].is_right);
  OK(gpusim_queue_finish(f->queue));
  gpusim_counters c;
  OK(gpusim_device_counters(f->device, &c));
  CHECK(c.kernels == kThreads * kRounds);
}

static void* wait_for_event(void* argument) {
  return gpusim_event_finish(argument, -1) == GPUSIM_OK ? argument : NULL;
}

// Several threads wait for one kernel, some not long enough.
static void many_waiters(struct fixture* f) {
  if (open_options != NULL && strstr(open_options, "frozen") != NULL) {
    skip_test("the clock that this thread's time limit needs stands still");
  }
  struct gate gate = new_gate(f);
  gpusim_event* event;
  pthread_t threads[4];
  OK(gpusim_enqueue_kernel(f->queue, gate.kernel, 1, 0, NULL, &event));
  for (int i = 0; i < 4; ++i) {
    CHECK(pthread_create(&threads[i], NULL, wait_for_event, event) == 0);
  }
  EXPECT(GPUSIM_TIMED_OUT, gpusim_event_finish(event, 0.02));
  CHECK(gpusim_event_status(event) == GPUSIM_RUNNING);
  gate.flag[0] = 1;
  for (int i = 0; i < 4; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    CHECK(result == event);
  }
  OK(gpusim_event_finish(event, 0));
  OK(gpusim_event_release(event));
  release_gate(&gate);
}

const struct test tests_of_queues[] = {
    {"in_order", in_order},
    {"out_of_order", out_of_order},
    {"wait_lists", wait_lists},
    {"cancelling", cancelling},
    {"failed_dependencies", failed_dependencies},
    {"releasing_early", releasing_early},
    {"event_calls", event_calls},
    {"many_threads", many_threads},
    {"many_waiters", many_waiters},
    {NULL, NULL},
};
