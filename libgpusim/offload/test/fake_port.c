// SPDX-License-Identifier: MIT
// A port without a simulator, for tests of the front alone, under sanitizers: kernels are functions
// of this process, run one after the other by a thread that takes its time at random.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "energy/estimate.h"
#include "fake_port.h"
#include "libgpusim/offload/port.h"

struct gpusim_offload_self;
struct gpusim_offload_debug;

struct job {
  struct job* next;
  uint64_t ticket;
  struct gpusim_launch launch;
  bool has_ended;
  struct gpusim_port_end end;
};

struct gpusim_port {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t thread;
  bool is_closing;
  struct job *first, *last;  // not ended: in order
  struct job* ended;
  struct job* running;
  bool cancel_running;
  uint64_t last_ticket;
  uint64_t kernels;
  unsigned memories, programs;
};

atomic_uint fake_live_things;
atomic_uint fake_seed = 1;
atomic_bool fake_is_lost;

static unsigned random_number(void) {
  unsigned x = atomic_fetch_add(&fake_seed, 0x9E3779B1u);
  x ^= x >> 15;
  x *= 0x85EBCA6Bu;
  return x ^ (x >> 13);
}

static struct timespec after_ns(uint64_t ns) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += (time_t)(ns / 1000000000);
  t.tv_nsec += (long)(ns % 1000000000);
  if (t.tv_nsec >= 1000000000) {
    ++t.tv_sec;
    t.tv_nsec -= 1000000000;
  }
  return t;
}

// With the lock. What a kernel does.
static void execute(struct gpusim_port* port, struct job* job) {
  const struct gpusim_launch* const l = &job->launch;
  job->end.status = GPUSIM_OK;
  job->end.reply.report.cores = l->cores;
  if (l->function == kFakeForever) {
    while (!port->cancel_running && !port->is_closing) {
      pthread_cond_wait(&port->changed, &port->mutex);
    }
  } else if (random_number() % 2 == 0) {
    const struct timespec until = after_ns(random_number() % 300000);
    pthread_cond_timedwait(&port->changed, &port->mutex, &until);
  }
  if (port->cancel_running || port->is_closing) {
    job->end.status = GPUSIM_CANCELLED;
    return;
  }
  if (l->function == kFakeFail) {
    job->end.reply.report.exit_status = 139;
    job->end.reply.report.faults = 1;
  }
  if (l->function == kFakeAdd) {
    atomic_fetch_add((atomic_ullong*)(uintptr_t)l->arguments[0].value, l->arguments[1].value);
  }
}

static void finish(struct gpusim_port* port, struct job* job) {
  job->has_ended = true;
  job->next = port->ended;
  port->ended = job;
  ++port->kernels;
  pthread_cond_broadcast(&port->changed);
}

static void* run(void* argument) {
  struct gpusim_port* const port = argument;
  pthread_mutex_lock(&port->mutex);
  while (!port->is_closing) {
    struct job* const job = port->first;
    if (job == NULL) {
      pthread_cond_wait(&port->changed, &port->mutex);
      continue;
    }
    port->first = job->next;
    if (port->first == NULL) port->last = NULL;
    port->running = job;
    port->cancel_running = false;
    execute(port, job);
    port->running = NULL;
    finish(port, job);
  }
  pthread_mutex_unlock(&port->mutex);
  return NULL;
}

static int fake_open(const struct gpusim_port_option* options, unsigned count,
                     struct gpusim_port** result) {
  if (count != 0) return gpusim_offload_fail(GPUSIM_NOT_FOUND, "no option %s", options[0].key);
  struct gpusim_port* const port = calloc(1, sizeof *port);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&port->mutex, NULL);
  pthread_cond_init(&port->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_create(&port->thread, NULL, run, port);
  atomic_fetch_add(&fake_live_things, 1);
  *result = port;
  return GPUSIM_OK;
}

static void fake_close(struct gpusim_port* port) {
  pthread_mutex_lock(&port->mutex);
  port->is_closing = true;
  pthread_cond_broadcast(&port->changed);
  pthread_mutex_unlock(&port->mutex);
  pthread_join(port->thread, NULL);
  // The front has waited for every kernel and freed everything.
  if (port->first != NULL || port->ended != NULL || port->memories != 0 || port->programs != 0) {
    fprintf(stderr, "closed with %u memories, %u programs, %s kernels\n", port->memories,
            port->programs, port->first != NULL || port->ended != NULL ? "some" : "no");
    abort();
  }
  pthread_mutex_destroy(&port->mutex);
  pthread_cond_destroy(&port->changed);
  free(port);
  atomic_fetch_sub(&fake_live_things, 1);
}

static int fake_properties(struct gpusim_port* port, gpusim_properties* properties) {
  (void)port;
  memset(properties, 0, sizeof *properties);
  properties->most_cores = 4096;
  properties->address_space_bytes = UINT64_C(1) << 47;
  properties->page_size_bytes = 4096;
  return GPUSIM_OK;
}

static int fake_counters(struct gpusim_port* port, gpusim_counters* counters) {
  pthread_mutex_lock(&port->mutex);
  counters->kernels = port->kernels;
  pthread_mutex_unlock(&port->mutex);
  return GPUSIM_OK;
}

// As the real ones: memory and programs cannot go while kernels run.
static bool is_busy(const struct gpusim_port* port) {
  return port->first != NULL || port->running != NULL;
}

static int count_memory(struct gpusim_port* port, void* pointer, uint64_t size_bytes,
                        struct gpusim_port_memory* memory) {
  memory->pointer = pointer;
  memory->device_address = (uint64_t)(uintptr_t)pointer;
  memory->size_bytes = size_bytes;
  pthread_mutex_lock(&port->mutex);
  ++port->memories;
  pthread_mutex_unlock(&port->mutex);
  return GPUSIM_OK;
}

static int fake_alloc(struct gpusim_port* port, uint64_t size_bytes, int read_only,
                      struct gpusim_port_memory* memory) {
  (void)read_only;
  void* const p = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return gpusim_offload_fail(GPUSIM_OUT_OF_MEMORY, "no memory");
  memory->handle = 1;
  return count_memory(port, p, size_bytes, memory);
}

static int fake_attach(struct gpusim_port* port, void* pointer, uint64_t size_bytes, int read_only,
                       struct gpusim_port_memory* memory) {
  (void)read_only;
  memory->handle = 0;
  return count_memory(port, pointer, size_bytes, memory);
}

static int fake_free(struct gpusim_port* port, const struct gpusim_port_memory* memory) {
  pthread_mutex_lock(&port->mutex);
  const bool busy = is_busy(port);
  if (!busy) --port->memories;
  pthread_mutex_unlock(&port->mutex);
  if (busy) return GPUSIM_BUSY;
  if (memory->handle == 1) munmap(memory->pointer, memory->size_bytes);
  return GPUSIM_OK;
}

static int fake_load(struct gpusim_port* port, const void* bytes, size_t size_bytes,
                     const char* name, uint32_t flags, uint32_t* program) {
  (void)bytes;
  (void)size_bytes;
  (void)name;
  (void)flags;
  pthread_mutex_lock(&port->mutex);
  *program = ++port->programs;
  pthread_mutex_unlock(&port->mutex);
  return GPUSIM_OK;
}

static int fake_unload(struct gpusim_port* port, uint32_t program) {
  (void)program;
  pthread_mutex_lock(&port->mutex);
  const bool busy = is_busy(port);
  if (!busy) --port->programs;
  pthread_mutex_unlock(&port->mutex);
  return busy ? GPUSIM_BUSY : GPUSIM_OK;
}

static int fake_symbol(struct gpusim_port* port, uint32_t program, const char* name,
                       uint64_t* address, uint64_t* size_bytes) {
  (void)port;
  (void)program;
  *size_bytes = 4;
  *address = strcmp(name, "add") == 0       ? kFakeAdd
             : strcmp(name, "forever") == 0 ? kFakeForever
             : strcmp(name, "fail") == 0    ? kFakeFail
                                            : kFakeNothing;
  return GPUSIM_OK;
}

static int fake_check(struct gpusim_port* port, uint32_t program, uint64_t function) {
  (void)port;
  (void)program;
  (void)function;
  return GPUSIM_OK;
}

static int fake_launch(struct gpusim_port* port, const struct gpusim_launch* launch,
                       uint64_t* ticket, struct gpusim_port_end* end) {
  if (atomic_load(&fake_is_lost))
    return gpusim_offload_fail(GPUSIM_DEVICE_LOST, "the device is gone");
  struct job* const job = calloc(1, sizeof *job);
  job->launch = *launch;
  // A simulator that has two classes more than this library.
  job->end.reply.classes.count = GPUSIM_CLASS_COUNT + 2;
  for (unsigned c = 0; c < GPUSIM_CLASS_COUNT + 2; ++c)
    job->end.reply.classes.instructions[c] = c + 1;
  pthread_mutex_lock(&port->mutex);
  job->ticket = ++port->last_ticket;
  // Some have ended when the call returns.
  if (launch->function != kFakeForever && !is_busy(port) && random_number() % 2 == 0) {
    port->cancel_running = false;
    job->end.status = GPUSIM_OK;
    if (launch->function == kFakeAdd) {
      atomic_fetch_add((atomic_ullong*)(uintptr_t)launch->arguments[0].value,
                       launch->arguments[1].value);
    }
    if (launch->function == kFakeFail) job->end.reply.report.exit_status = 139;
    *end = job->end;
    *ticket = 0;
    ++port->kernels;
    free(job);
  } else {
    *ticket = job->ticket;
    if (port->last != NULL) {
      port->last->next = job;
    } else {
      port->first = job;
    }
    port->last = job;
    pthread_cond_broadcast(&port->changed);
  }
  pthread_mutex_unlock(&port->mutex);
  return GPUSIM_OK;
}

static struct job* take_ended(struct gpusim_port* port, uint64_t ticket) {
  for (struct job** place = &port->ended; *place != NULL; place = &(*place)->next) {
    struct job* const job = *place;
    if (job->ticket != ticket) continue;
    *place = job->next;
    return job;
  }
  return NULL;
}

static int fake_wait(struct gpusim_port* port, uint64_t ticket, uint64_t timeout_ns, int may_freeze,
                     struct gpusim_port_end* end) {
  (void)may_freeze;
  const bool forever = timeout_ns == GPUSIM_PORT_NO_LIMIT;
  const struct timespec until = after_ns(forever ? 0 : timeout_ns);
  pthread_mutex_lock(&port->mutex);
  struct job* job;
  int late = 0;
  while ((job = take_ended(port, ticket)) == NULL && late == 0) {
    late = forever ? pthread_cond_wait(&port->changed, &port->mutex)
                   : pthread_cond_timedwait(&port->changed, &port->mutex, &until);
  }
  pthread_mutex_unlock(&port->mutex);
  if (job == NULL) return GPUSIM_TIMED_OUT;
  *end = job->end;
  free(job);
  return GPUSIM_OK;
}

static int fake_cancel(struct gpusim_port* port, uint64_t ticket) {
  pthread_mutex_lock(&port->mutex);
  if (port->running != NULL && port->running->ticket == ticket) {
    port->cancel_running = true;
    pthread_cond_broadcast(&port->changed);
  }
  struct job* previous = NULL;
  for (struct job* job = port->first; job != NULL; previous = job, job = job->next) {
    if (job->ticket != ticket) continue;
    if (previous != NULL) {
      previous->next = job->next;
    } else {
      port->first = job->next;
    }
    if (port->last == job) port->last = previous;
    job->end.status = GPUSIM_CANCELLED;
    finish(port, job);
    break;
  }
  pthread_mutex_unlock(&port->mutex);
  return GPUSIM_OK;
}

const struct gpusim_port_operations gpusim_offload_port = {
    .default_options_hint = "none",
    .supports_self = 0,
    .open = fake_open,
    .close = fake_close,
    .properties = fake_properties,
    .counters = fake_counters,
    .alloc = fake_alloc,
    .attach = fake_attach,
    .free = fake_free,
    .load = fake_load,
    .unload = fake_unload,
    .symbol = fake_symbol,
    .check = fake_check,
    .launch = fake_launch,
    .wait = fake_wait,
    .cancel = fake_cancel,
};

int gpusim_offload_load_self(gpusim_device* device, struct gpusim_offload_self* self,
                             struct gpusim_offload_debug** debug, uint32_t* program);
int gpusim_offload_load_self(gpusim_device* device, struct gpusim_offload_self* self,
                             struct gpusim_offload_debug** debug, uint32_t* program) {
  (void)device;
  (void)self;
  (void)debug;
  (void)program;
  return GPUSIM_NOT_SUPPORTED;
}

int gpusim_energy_joules(const char* target, const uint64_t* classes, double* joules) {
  (void)target;
  (void)classes;
  (void)joules;
  return -1;
}

const char* gpusim_energy_target_names(void) { return "none"; }
