// SPDX-License-Identifier: MIT
// Queues: commands one after the other, by whoever is there.
//
// On an idle queue the enqueuing thread executes the command itself. A kernel that the port has not
// finished by then stays `current` with the port's ticket, and the first thread that needs its end
// waits for it in the port ("drives" it). Only a command that finds others before it, or events
// that have not ended, gives the queue a worker thread, which from then on executes what is
// enqueued so.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

enum { kWorkerStackBytes = 256 * 1024 };

uint64_t gpusim_offload_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t gpusim_offload_deadline(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return -1;
  return (int64_t)gpusim_offload_now_ns() + (int64_t)(seconds * 1e9);
}

// With the lock: until something has ended, or the deadline; -1: none.
static void wait_until(gpusim_queue* queue, int64_t deadline) {
  ++queue->waiting;
  if (deadline < 0) {
    pthread_cond_wait(&queue->ended, &queue->mutex);
  } else {
    const struct timespec when = {.tv_sec = deadline / 1000000000,
                                  .tv_nsec = deadline % 1000000000};
    pthread_cond_timedwait(&queue->ended, &queue->mutex, &when);
  }
  --queue->waiting;
}

static void wake_all(gpusim_queue* queue) {
  if (queue->waiting != 0) pthread_cond_broadcast(&queue->ended);
  if (queue->has_worker) pthread_cond_signal(&queue->work);
}

// ---- The end of a command ----------------------------------------------------------------------

// One event less to wait for.
static void tell_dependent(gpusim_event* event, int status) {
  gpusim_queue* const queue = event->queue;
  int none = 0;
  if (status < 0) atomic_compare_exchange_strong(&event->failed_dependency, &none, status);
  // Under the lock: else the worker may look before and sleep after.
  pthread_mutex_lock(&queue->mutex);
  atomic_fetch_sub(&event->unmet, 1);
  if (queue->has_worker) pthread_cond_signal(&queue->work);
  pthread_mutex_unlock(&queue->mutex);
}

static void release_payload(gpusim_event* event) {
  if (event->move != NULL) {
    for (unsigned i = 0; i < 2; ++i) {
      if (event->move->buffers[i] != NULL) gpusim_buffer_release(event->move->buffers[i]);
    }
    free(event->move);
    event->move = NULL;
  }
  struct gpusim_offload_launch* const launch = event->launch;
  if (launch != NULL) {
    for (unsigned i = 0; i < launch->buffer_count; ++i) gpusim_buffer_release(launch->buffers[i]);
    launch->buffer_count = 0;
    if (launch->output != NULL) gpusim_offload_output_give(launch->output);
    launch->output = NULL;
    if (launch->program != NULL) gpusim_program_release(launch->program);
    launch->program = NULL;
  }
}

// With the queue's lock, which it gives up in between. Afterwards the command has ended; it still
// is where it was in the queue. `text`: NULL for the status alone.
static void end_event(gpusim_queue* queue, gpusim_event* event, int status, const char* text) {
  if (event->state == kStateEnded) return;
  event->state = kStateEnded;
  event->status = status;
  event->ticket = 0;
  if (event->ended_ns == 0) event->ended_ns = gpusim_offload_now_ns();
  if (status < 0) {
    snprintf(event->text, sizeof event->text, "%s",
             text != NULL ? text : gpusim_status_name(status));
    if (queue->failure == 0) {
      queue->failure = status;
      memcpy(queue->failure_text, event->text, sizeof queue->failure_text);
    }
  }
  struct gpusim_offload_dependent* dependents = event->dependents;
  event->dependents = NULL;
  wake_all(queue);
  const bool has_more = dependents != NULL || event->move != NULL || event->launch != NULL;
  if (!has_more) return;
  pthread_mutex_unlock(&queue->mutex);
  release_payload(event);
  while (dependents != NULL) {
    struct gpusim_offload_dependent* const one = dependents;
    dependents = one->next;
    tell_dependent(one->event, status);
    gpusim_event_release(one->event);
    free(one);
  }
  pthread_mutex_lock(&queue->mutex);
}

// With the lock: the ended command that was `current` or the head leaves the queue. The caller
// holds a reference to the queue; the event may be gone afterwards.
static void retire(gpusim_queue* queue, gpusim_event* event) {
  if (queue->current == event) {
    queue->current = NULL;
  } else {
    queue->head = event->next;
    if (queue->head == NULL) queue->tail = NULL;
  }
  event->next = NULL;
  queue->retired_sequence = event->sequence;
  wake_all(queue);
  pthread_mutex_unlock(&queue->mutex);
  gpusim_event_release(event);
  pthread_mutex_lock(&queue->mutex);
}

// ---- Executing and waiting ---------------------------------------------------------------------

// With the lock; `current` has a ticket and nobody drives it. Waits in the port until the deadline.
// Time may stand still only for a caller who waits without a limit: a thread that does something
// else, or the worker on its behalf, needs the clock.
static void drive_current(gpusim_queue* queue, int64_t deadline, bool may_freeze) {
  gpusim_event* const event = queue->current;
  event->is_driven = true;
  const uint64_t ticket = event->ticket;
  pthread_mutex_unlock(&queue->mutex);
  uint64_t timeout_ns = GPUSIM_PORT_NO_LIMIT;
  if (deadline >= 0) {
    const int64_t left = deadline - (int64_t)gpusim_offload_now_ns();
    timeout_ns = left > 0 ? (uint64_t)left : 0;
  }
  // Nobody else ends a driven command, so it stays `current` and alive.
  const int waited =
      PORT->wait(queue->device->port, ticket, timeout_ns, may_freeze, &event->launch->end);
  int status = 0;
  if (waited != GPUSIM_TIMED_OUT) status = gpusim_offload_launch_settle(event, waited);
  pthread_mutex_lock(&queue->mutex);
  event->is_driven = false;
  if (waited == GPUSIM_TIMED_OUT) {
    wake_all(queue);
    return;
  }
  end_event(queue, event, status, event->launch->end.reply.text);
  retire(queue, event);
}

static bool can_drive(const gpusim_queue* queue) {
  return queue->current != NULL && queue->current->ticket != 0 && !queue->current->is_driven;
}

// With the lock; the event is `current`. Executes it.
static void execute_current(gpusim_queue* queue) {
  gpusim_event* const event = queue->current;
  event->state = kStateStarted;
  const int dependency = atomic_load(&event->failed_dependency);
  if (dependency == 0) event->started_ns = gpusim_offload_now_ns();
  if (dependency < 0) {
    char text[kTextBytes];
    snprintf(text, sizeof text, "an event that the command waited for failed: %s",
             gpusim_status_name(dependency));
    end_event(queue, event, dependency, text);
    retire(queue, event);
    return;
  }
  pthread_mutex_unlock(&queue->mutex);
  int status = GPUSIM_OK;
  uint64_t ticket = 0;
  const bool has_ended = gpusim_offload_execute(event, &status, &ticket);
  pthread_mutex_lock(&queue->mutex);
  if (has_ended) {
    end_event(queue, event, status, event->launch != NULL ? event->launch->end.reply.text : NULL);
    retire(queue, event);
    return;
  }
  event->ticket = ticket;
  const bool cancel = event->is_cancelled;
  wake_all(queue);
  if (!cancel) return;
  // Cancelled between the launch and now, when it had no ticket yet.
  gpusim_queue* const held = queue;
  pthread_mutex_unlock(&held->mutex);
  PORT->cancel(held->device->port, ticket);
  pthread_mutex_lock(&held->mutex);
}

static void* work(void* argument) {
  gpusim_queue* const queue = argument;
  pthread_mutex_lock(&queue->mutex);
  for (;;) {
    if (can_drive(queue)) {
      drive_current(queue, -1, false);
    } else if (queue->current != NULL) {
      pthread_cond_wait(&queue->work, &queue->mutex);
    } else if (queue->head != NULL && queue->head->state == kStateEnded) {
      retire(queue, queue->head);
    } else if (queue->head != NULL && atomic_load(&queue->head->unmet) == 0) {
      gpusim_event* const event = queue->head;
      queue->head = event->next;
      if (queue->head == NULL) queue->tail = NULL;
      event->next = NULL;
      queue->current = event;
      execute_current(queue);
    } else if (queue->head == NULL && queue->is_stopping) {
      break;
    } else {
      pthread_cond_wait(&queue->work, &queue->mutex);
    }
  }
  pthread_mutex_unlock(&queue->mutex);
  return NULL;
}

static int start_worker(gpusim_queue* queue) {
  pthread_mutex_lock(&queue->mutex);
  int error = 0;
  // A queue that was released has nothing left to do.
  if (!queue->has_worker && !queue->is_stopping) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kWorkerStackBytes);
    error = pthread_create(&queue->worker, &attributes, work, queue);
    pthread_attr_destroy(&attributes);
    queue->has_worker = error == 0;
  }
  pthread_mutex_unlock(&queue->mutex);
  if (error == 0) return GPUSIM_OK;
  return fail(GPUSIM_OUT_OF_MEMORY, "a thread for the queue: %s", strerror(error));
}

// ---- Enqueuing ---------------------------------------------------------------------------------

// `event` waits for `dependency` if that has not ended.
static int depend(gpusim_event* event, gpusim_event* dependency) {
  gpusim_queue* const queue = dependency->queue;
  struct gpusim_offload_dependent* const one = malloc(sizeof *one);
  if (one == NULL) return fail(GPUSIM_OUT_OF_MEMORY, "a wait list: out of memory");
  pthread_mutex_lock(&queue->mutex);
  const bool has_ended = dependency->state == kStateEnded;
  if (!has_ended) {
    one->event = event;
    one->next = dependency->dependents;
    dependency->dependents = one;
    gpusim_event_retain(event);
    atomic_fetch_add(&event->unmet, 1);
  }
  const int status = has_ended ? dependency->status : 0;
  pthread_mutex_unlock(&queue->mutex);
  if (!has_ended) return GPUSIM_OK;
  free(one);
  int none = 0;
  if (status < 0) atomic_compare_exchange_strong(&event->failed_dependency, &none, status);
  return GPUSIM_OK;
}

static int check_wait_list(const gpusim_queue* queue, unsigned wait_count,
                           gpusim_event* const* wait_list) {
  if ((wait_count != 0) != (wait_list != NULL)) {
    return fail(GPUSIM_INVALID_ARGUMENT, "%u events to wait for, and %s list", wait_count,
                wait_list == NULL ? "no" : "a");
  }
  for (unsigned i = 0; i < wait_count; ++i) {
    if (wait_list[i] == NULL) {
      return fail(GPUSIM_INVALID_ARGUMENT, "event %u of the wait list is NULL", i);
    }
    if (wait_list[i]->queue->device != queue->device) {
      return fail(GPUSIM_INVALID_ARGUMENT, "event %u of the wait list is of another device", i);
    }
  }
  return GPUSIM_OK;
}

// With the lock: no command before a new one. Looks whether the last kernel has ended by now.
static bool is_idle(gpusim_queue* queue) {
  if (can_drive(queue) && !queue->has_worker) drive_current(queue, 0, false);
  return queue->current == NULL && queue->head == NULL;
}

// True: executed, or under way. False: something stands before it.
static bool try_inline(gpusim_queue* queue, gpusim_event* event) {
  pthread_mutex_lock(&queue->mutex);
  const bool idle = is_idle(queue);
  if (idle) {
    event->sequence = ++queue->last_sequence;
    queue->current = event;
    execute_current(queue);
  }
  pthread_mutex_unlock(&queue->mutex);
  return idle;
}

// Never begins: its queue has not seen it.
static void discard(gpusim_event* event) {
  pthread_mutex_lock(&event->queue->mutex);
  event->state = kStateEnded;
  event->status = GPUSIM_CANCELLED;
  pthread_mutex_unlock(&event->queue->mutex);
  release_payload(event);
  gpusim_event_release(event);
}

int gpusim_offload_enqueue(gpusim_queue* queue, gpusim_event* event, unsigned wait_count,
                           gpusim_event* const* wait_list, gpusim_event** result) {
  int status = check_wait_list(queue, wait_count, wait_list);
  bool has_unmet = false;
  for (unsigned i = 0; status == GPUSIM_OK && i < wait_count; ++i) {
    const int dependency = gpusim_event_status(wait_list[i]);
    if (dependency == GPUSIM_RUNNING) has_unmet = true;
    int none = 0;
    if (dependency < 0) {
      atomic_compare_exchange_strong(&event->failed_dependency, &none, dependency);
    }
  }
  if (status == GPUSIM_OK && result != NULL) gpusim_event_retain(event);
  if (status == GPUSIM_OK && !has_unmet && try_inline(queue, event)) {
    if (result != NULL) *result = event;
    return GPUSIM_OK;
  }
  if (status != GPUSIM_OK) {
    discard(event);
    return status;
  }
  // All threads first, so that nothing can fail once others know of the event.
  status = start_worker(queue);
  for (unsigned i = 0; status == GPUSIM_OK && i < wait_count; ++i) {
    if (gpusim_event_status(wait_list[i]) == GPUSIM_RUNNING) {
      status = start_worker(wait_list[i]->queue);
    }
  }
  atomic_store(&event->unmet, 1);  // not before it is in the queue
  for (unsigned i = 0; status == GPUSIM_OK && i < wait_count; ++i) {
    status = depend(event, wait_list[i]);
  }
  if (status != GPUSIM_OK) {
    if (result != NULL) gpusim_event_release(event);
    discard(event);
    return status;
  }
  pthread_mutex_lock(&queue->mutex);
  event->sequence = ++queue->last_sequence;
  if (queue->tail != NULL) {
    queue->tail->next = event;
  } else {
    queue->head = event;
  }
  queue->tail = event;
  atomic_fetch_sub(&event->unmet, 1);
  pthread_cond_signal(&queue->work);
  pthread_mutex_unlock(&queue->mutex);
  if (result != NULL) *result = event;
  return GPUSIM_OK;
}

// ---- Queues ------------------------------------------------------------------------------------

int gpusim_queue_create(gpusim_device* device, gpusim_queue** result) {
  if (result != NULL) *result = NULL;
  if (device == NULL || result == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_queue_create: an argument is NULL");
  }
  gpusim_queue* const queue = calloc(1, sizeof *queue);
  if (queue == NULL) return fail(GPUSIM_OUT_OF_MEMORY, "gpusim_queue_create: out of memory");
  atomic_init(&queue->references, 1);
  queue->device = gpusim_offload_device_retain(device);
  queue->number = atomic_fetch_add(&device->last_queue, 1) + 1;
  pthread_mutex_init(&queue->mutex, NULL);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&queue->ended, &monotonic);
  pthread_cond_init(&queue->work, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_lock(&device->mutex);
  queue->next = device->queues;
  if (queue->next != NULL) queue->next->previous = queue;
  device->queues = queue;
  pthread_mutex_unlock(&device->mutex);
  *result = queue;
  return GPUSIM_OK;
}

static void free_event(gpusim_event* event) {
  if (event == NULL) return;
  if (event->launch != NULL) free(event->launch->output_text);
  free(event->launch);
  free(event);
}

void gpusim_offload_queue_release_reference(gpusim_queue* queue) {
  if (atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel) != 1) return;
  gpusim_device* const device = queue->device;
  pthread_mutex_lock(&device->mutex);
  if (queue->previous != NULL) {
    queue->previous->next = queue->next;
  } else {
    device->queues = queue->next;
  }
  if (queue->next != NULL) queue->next->previous = queue->previous;
  pthread_mutex_unlock(&device->mutex);
  pthread_cond_destroy(&queue->ended);
  pthread_cond_destroy(&queue->work);
  pthread_mutex_destroy(&queue->mutex);
  free_event(queue->spare);
  free(queue);
  gpusim_offload_device_release(device);
}

static void wait_for_sequence(gpusim_queue* queue, uint64_t sequence) {
  while (queue->retired_sequence < sequence) {
    if (can_drive(queue)) {
      drive_current(queue, -1, true);
    } else {
      wait_until(queue, -1);
    }
  }
}

int gpusim_queue_release(gpusim_queue* queue) {
  if (queue == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_queue_release: NULL");
  pthread_mutex_lock(&queue->mutex);
  wait_for_sequence(queue, queue->last_sequence);
  queue->is_stopping = true;
  const bool has_worker = queue->has_worker;
  if (has_worker) pthread_cond_signal(&queue->work);
  pthread_mutex_unlock(&queue->mutex);
  if (has_worker) pthread_join(queue->worker, NULL);
  gpusim_offload_queue_release_reference(queue);
  return GPUSIM_OK;
}

int gpusim_queue_finish(gpusim_queue* queue) {
  if (queue == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_queue_finish: NULL");
  pthread_mutex_lock(&queue->mutex);
  wait_for_sequence(queue, queue->last_sequence);
  const int failure = queue->failure;
  queue->failure = GPUSIM_OK;
  if (failure < 0) fail(failure, "%s", queue->failure_text);
  pthread_mutex_unlock(&queue->mutex);
  return failure;
}

// ---- Events ------------------------------------------------------------------------------------

static void begin_event(gpusim_event* event, gpusim_queue* queue,
                        enum gpusim_offload_command command) {
  atomic_init(&event->references, 1);
  atomic_init(&event->unmet, 0);
  atomic_init(&event->failed_dependency, 0);
  atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
  event->queue = queue;
  event->command = command;
  event->queued_ns = gpusim_offload_now_ns();
  event->started_ns = event->ended_ns = 0;
}

gpusim_event* gpusim_offload_event_new(gpusim_queue* queue, enum gpusim_offload_command command) {
  gpusim_event* const event = calloc(1, sizeof *event);
  if (event == NULL) {
    fail(GPUSIM_OUT_OF_MEMORY, "a command: out of memory");
    return NULL;
  }
  begin_event(event, queue, command);
  return event;
}

static void clear_launch(gpusim_event* event) {
  struct gpusim_offload_launch* const launch = event->launch;
  memset(&launch->request, 0, offsetof(struct gpusim_launch, arguments));
  launch->buffer_count = 0;
  launch->has_begun = false;
  memset(&launch->end.reply.report, 0, sizeof launch->end.reply.report);
  launch->end.reply.classes.count = 0;
  launch->end.status = 0;
  launch->end.reply.text[0] = 0;
  event->next = NULL;
  event->state = kStateQueued;
  event->status = 0;
  event->is_cancelled = event->is_driven = false;
  event->ticket = 0;
  event->dependents = NULL;
  event->text[0] = 0;
}

gpusim_event* gpusim_offload_launch_new(gpusim_queue* queue) {
  gpusim_event* event = atomic_exchange(&queue->spare, NULL);
  if (event != NULL) {
    clear_launch(event);
    begin_event(event, queue, kCommandLaunch);
    return event;
  }
  event = gpusim_offload_event_new(queue, kCommandLaunch);
  if (event == NULL) return NULL;
  event->launch = calloc(1, sizeof *event->launch);
  if (event->launch != NULL) return event;
  gpusim_event_release(event);
  fail(GPUSIM_OUT_OF_MEMORY, "a command: out of memory");
  return NULL;
}

int gpusim_event_retain(gpusim_event* event) {
  if (event == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_event_retain: NULL");
  atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
  return GPUSIM_OK;
}

int gpusim_event_release(gpusim_event* event) {
  if (event == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_event_release: NULL");
  if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) != 1) {
    return GPUSIM_OK;
  }
  gpusim_queue* const queue = event->queue;
  gpusim_event* none = NULL;
  const bool can_serve_again = event->launch != NULL && event->launch->output_text == NULL;
  if (!can_serve_again || !atomic_compare_exchange_strong(&queue->spare, &none, event))
    free_event(event);
  gpusim_offload_queue_release_reference(queue);
  return GPUSIM_OK;
}

int gpusim_event_status(gpusim_event* event) {
  if (event == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_event_status: NULL");
  gpusim_queue* const queue = event->queue;
  pthread_mutex_lock(&queue->mutex);
  if (queue->current == event && can_drive(queue) && !queue->has_worker)
    drive_current(queue, 0, false);
  const int status = event->state == kStateEnded ? event->status : GPUSIM_RUNNING;
  pthread_mutex_unlock(&queue->mutex);
  return status;
}

int gpusim_event_finish(gpusim_event* event, double seconds) {
  if (event == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_event_finish: NULL");
  const int64_t deadline = gpusim_offload_deadline(seconds);
  gpusim_queue* const queue = event->queue;
  pthread_mutex_lock(&queue->mutex);
  bool is_late = false;
  while (event->state != kStateEnded && !is_late) {
    // A short time limit, too, is long enough for one look.
    is_late = deadline >= 0 && (int64_t)gpusim_offload_now_ns() >= deadline;
    if (can_drive(queue)) {
      drive_current(queue, deadline, deadline < 0);
    } else if (!is_late) {
      wait_until(queue, deadline);
    }
  }
  const bool has_ended = event->state == kStateEnded;
  const int status = has_ended ? event->status : GPUSIM_TIMED_OUT;
  if (has_ended && status < 0) fail(status, "%s", event->text);
  pthread_mutex_unlock(&queue->mutex);
  if (has_ended) return status;
  return fail(GPUSIM_TIMED_OUT, "the command has not ended after %g s; it goes on", seconds);
}

int gpusim_event_cancel(gpusim_event* event) {
  if (event == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_event_cancel: NULL");
  gpusim_queue* const queue = event->queue;
  uint64_t ticket = 0;
  pthread_mutex_lock(&queue->mutex);
  if (event->state == kStateQueued) {
    event->is_cancelled = true;
    end_event(queue, event, GPUSIM_CANCELLED, "cancelled before it began");
  } else if (event->state == kStateStarted) {
    event->is_cancelled = true;
    ticket = event->ticket;
  }
  pthread_mutex_unlock(&queue->mutex);
  return ticket != 0 ? PORT->cancel(queue->device->port, ticket) : GPUSIM_OK;
}
