// SPDX-License-Identifier: MIT
// Random commands from several threads on a port without a simulator: order within queues, wait
// lists between them, cancelling, releasing at once. For the address and the thread sanitizer.
//
//   front_stress [SECONDS]; GPUSIM_SEED=n replays the choices (not the threads' timing).
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_port.h"
#include "libgpusim/offload/gpusim.h"

enum { kThreads = 4, kQueues = 3, kRecent = 16, kCommands = 60 };

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "%s:%d: %s: %s (replay: GPUSIM_SEED=%u)\n", __FILE__, __LINE__, #condition, \
              gpusim_last_error(), seed);                                                         \
      abort();                                                                                    \
    }                                                                                             \
  } while (0)

static unsigned seed;

// What the threads of one round share.
struct round {
  gpusim_device* device;
  gpusim_program* program;
  gpusim_queue* queues[kQueues];
  pthread_mutex_t mutex;
  gpusim_event* recent[kRecent];  // of any thread: things to wait for and to cancel
  atomic_uint added;              // by kernels that ended well
};

struct worker {
  pthread_t thread;
  struct round* round;
  unsigned state;
};

static unsigned roll(struct worker* w, unsigned sides) {
  w->state = w->state * 1664525u + 1013904223u;
  return (w->state >> 8) % sides;
}

// A reference to one of the recent events, or NULL.
static gpusim_event* pick(struct worker* w) {
  struct round* const r = w->round;
  pthread_mutex_lock(&r->mutex);
  gpusim_event* const event = r->recent[roll(w, kRecent)];
  if (event != NULL) gpusim_event_retain(event);
  pthread_mutex_unlock(&r->mutex);
  return event;
}

static void keep(struct worker* w, gpusim_event* event) {
  struct round* const r = w->round;
  const unsigned place = roll(w, kRecent);
  pthread_mutex_lock(&r->mutex);
  gpusim_event* const old = r->recent[place];
  r->recent[place] = event;
  pthread_mutex_unlock(&r->mutex);
  if (old != NULL) gpusim_event_release(old);
}

static int enqueue_kernel(struct worker* w, gpusim_queue* queue, const char* name,
                          gpusim_buffer* buffer, unsigned waits, gpusim_event* const* list,
                          gpusim_event** event) {
  gpusim_kernel* kernel;
  CHECK(gpusim_kernel_from_name(w->round->program, name, &kernel) == GPUSIM_OK);
  CHECK(gpusim_kernel_set_buffer(kernel, 0, buffer, 0) == GPUSIM_OK);
  CHECK(gpusim_kernel_set_u64(kernel, 1, 1) == GPUSIM_OK);
  const uint64_t table[4] = {1, 2, 3, 4};
  CHECK(gpusim_kernel_set_per_core_u64(kernel, 2, table, 4) == GPUSIM_OK);
  const int status = gpusim_enqueue_kernel(queue, kernel, 4, waits, list, event);
  CHECK(gpusim_kernel_release(kernel) == GPUSIM_OK);
  return status;
}

static void one_command(struct worker* w) {
  gpusim_queue* const queue = w->round->queues[roll(w, kQueues)];
  gpusim_event* waits[3];
  unsigned wait_count = 0;
  for (unsigned i = roll(w, 4); i-- > 0;) {
    waits[wait_count] = pick(w);
    if (waits[wait_count] != NULL) ++wait_count;
  }
  gpusim_event* const* const list = wait_count != 0 ? waits : NULL;
  gpusim_buffer* buffer;
  CHECK(gpusim_buffer_create(w->round->device, 0, 8192, NULL, &buffer) == GPUSIM_OK);
  gpusim_event* event = NULL;
  uint64_t word = 5;
  int may_wait_for_ever = 0;
  switch (roll(w, 7)) {
    case 0:
      CHECK(enqueue_kernel(w, queue, "fail", buffer, wait_count, list, &event) == GPUSIM_OK);
      break;
    case 1:
      if (roll(w, 4) == 0) {
        CHECK(enqueue_kernel(w, queue, "forever", buffer, wait_count, list, &event) == GPUSIM_OK);
        may_wait_for_ever = 1;
      } else {
        CHECK(gpusim_enqueue_marker(queue, &event) == GPUSIM_OK);
      }
      break;
    case 2:
      CHECK(gpusim_enqueue_fill(queue, buffer, &word, 8, 0, 8192, wait_count, list, &event) ==
            GPUSIM_OK);
      break;
    case 3:
      // Nobody keeps the event.
      CHECK(enqueue_kernel(w, queue, "add", buffer, wait_count, list, NULL) == GPUSIM_OK);
      break;
    default:
      CHECK(enqueue_kernel(w, queue, "add", buffer, wait_count, list, &event) == GPUSIM_OK);
      break;
  }
  for (unsigned i = 0; i < wait_count; ++i) gpusim_event_release(waits[i]);
  CHECK(gpusim_buffer_release(buffer) == GPUSIM_OK);
  if (event == NULL) return;
  switch (may_wait_for_ever ? 0 : roll(w, 5)) {
    case 0:
      gpusim_event_cancel(event);
      break;
    case 1: {
      // Others may wait for one that never ends only until its owner cancels it, which it does at
      // once.
      const int status = gpusim_event_finish(event, -1);
      CHECK(status == GPUSIM_OK || status == GPUSIM_KERNEL_FAILED || status == GPUSIM_CANCELLED);
      CHECK(gpusim_event_status(event) == status);
      gpusim_statistics s;
      if (gpusim_event_statistics(event, &s) == GPUSIM_OK && status == GPUSIM_OK) {
        // What a newer simulator counts in classes of its own is counted in the last one here.
        CHECK(s.classes[0] == 1 && s.classes[GPUSIM_CLASS_COUNT - 2] == GPUSIM_CLASS_COUNT - 1);
        CHECK(s.classes[GPUSIM_CLASS_COUNT - 1] == 3 * GPUSIM_CLASS_COUNT + 3);
      }
      break;
    }
    case 2:
      (void)gpusim_event_finish(event, 0.0001);
      break;
    default:
      break;
  }
  keep(w, event);
}

static void* work(void* argument) {
  struct worker* const w = argument;
  for (int i = 0; i < kCommands; ++i) {
    one_command(w);
    if (roll(w, 20) == 0) gpusim_queue_finish(w->round->queues[roll(w, kQueues)]);
  }
  return NULL;
}

static void one_round(unsigned number) {
  struct round r;
  struct worker workers[kThreads];
  memset(&r, 0, sizeof r);
  pthread_mutex_init(&r.mutex, NULL);
  CHECK(gpusim_open(NULL, &r.device) == GPUSIM_OK);
  CHECK(gpusim_program_from_memory(r.device, "x", 1, &r.program) == GPUSIM_OK);
  for (int i = 0; i < kQueues; ++i) {
    CHECK(gpusim_queue_create(r.device, &r.queues[i]) == GPUSIM_OK);
  }
  for (unsigned i = 0; i < kThreads; ++i) {
    workers[i].round = &r;
    workers[i].state = seed + number * 7919 + i * 104729;
    CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(workers[i].thread, NULL);
  if (number % 2 == 0) CHECK(gpusim_close(r.device) == GPUSIM_OK);
  for (int i = 0; i < kQueues; ++i) CHECK(gpusim_queue_release(r.queues[i]) == GPUSIM_OK);
  for (int i = 0; i < kRecent; ++i) {
    if (r.recent[i] == NULL) continue;
    CHECK(gpusim_event_status(r.recent[i]) != GPUSIM_RUNNING);
    CHECK(gpusim_event_release(r.recent[i]) == GPUSIM_OK);
  }
  CHECK(gpusim_program_release(r.program) == GPUSIM_OK);
  if (number % 2 != 0) CHECK(gpusim_close(r.device) == GPUSIM_OK);
  pthread_mutex_destroy(&r.mutex);
  CHECK(atomic_load(&fake_live_things) == 0);
}

// Commands of a device that is lost fail, and everything can still be released.
static void lose_device(void) {
  gpusim_device* device;
  gpusim_program* program;
  gpusim_kernel* kernel;
  gpusim_queue* queue;
  gpusim_event* event;
  CHECK(gpusim_open(NULL, &device) == GPUSIM_OK);
  CHECK(gpusim_program_from_memory(device, "x", 1, &program) == GPUSIM_OK);
  CHECK(gpusim_kernel_from_name(program, "nothing", &kernel) == GPUSIM_OK);
  CHECK(gpusim_queue_create(device, &queue) == GPUSIM_OK);
  atomic_store(&fake_is_lost, true);
  CHECK(gpusim_enqueue_kernel(queue, kernel, 1, 0, NULL, &event) == GPUSIM_OK);
  CHECK(gpusim_event_finish(event, -1) == GPUSIM_DEVICE_LOST);
  CHECK(strcmp(gpusim_last_error(), "the device is gone") == 0);
  CHECK(gpusim_queue_finish(queue) == GPUSIM_DEVICE_LOST);
  atomic_store(&fake_is_lost, false);
  gpusim_event_release(event);
  gpusim_kernel_release(kernel);
  gpusim_program_release(program);
  gpusim_queue_release(queue);
  gpusim_close(device);
  CHECK(atomic_load(&fake_live_things) == 0);
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
  const char* const chosen = getenv("GPUSIM_SEED");
  seed = chosen != NULL ? (unsigned)strtoul(chosen, NULL, 10) : (unsigned)time(NULL);
  atomic_store(&fake_seed, seed | 1);
  printf("GPUSIM_SEED=%u\n", seed);
  fflush(stdout);
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  unsigned rounds = 0;
  for (;;) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if ((double)(t.tv_sec - begin.tv_sec) + (double)(t.tv_nsec - begin.tv_nsec) / 1e9 > seconds &&
        rounds >= 3) {
      break;
    }
    one_round(rounds++);
  }
  lose_device();
  printf("%u rounds\n", rounds);
  return 0;
}
