// SPDX-License-Identifier: MIT
// The objects behind libGPUSim's handles.
//
// Locks, in the order in which they may be taken: a queue's, then the device's. No call into the
// port is made with one of them held, except that `regions_mutex` serialises attaching.
//
// Who refers to whom: event -> queue -> device; a command's payload -> buffers, program -> device.
// A queue refers to the events of its commands until they have ended, so there are cycles only
// while something runs.
#ifndef GPUSIM_OFFLOAD_INTERNAL_H
#define GPUSIM_OFFLOAD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "libgpusim/offload/front/signature.h"
#include "libgpusim/offload/port.h"

#define PORT (&gpusim_offload_port)

enum { kTextBytes = 512, kMostKinds = 8, kMostPattern = 128 };

// ---- Errors ------------------------------------------------------------------------------------

#define fail gpusim_offload_fail

// ---- Device ------------------------------------------------------------------------------------

struct gpusim_offload_region;

// Memory or a program that could not go while kernels ran.
struct gpusim_offload_leftover {
  struct gpusim_offload_leftover* next;
  bool is_program;
  uint32_t program;
  struct gpusim_port_memory memory;
};

struct gpusim_device {
  atomic_uint references;
  struct gpusim_port* port;
  gpusim_properties properties;
  atomic_uint launches;      // kernels that the port has not reported as ended
  atomic_ullong last_queue;  // number

  pthread_mutex_t mutex;  // of what follows
  gpusim_queue* queues;
  struct gpusim_offload_leftover* leftovers;
  gpusim_buffer* outputs;                  // spare ones, for what kernels write
  gpusim_output_function output_function;  // NULL: nobody
  void* output_context;

  pthread_mutex_t regions_mutex;
  struct gpusim_offload_region* regions;  // by address
};

gpusim_device* gpusim_offload_device_retain(gpusim_device* device);
void gpusim_offload_device_release(gpusim_device* device);
void gpusim_offload_free_memory(gpusim_device* device, const struct gpusim_port_memory* memory);
void gpusim_offload_unload(gpusim_device* device, uint32_t program);
// A kernel has ended: what could not be freed before may go now.
void gpusim_offload_launch_ended(gpusim_device* device);
// A buffer for a kernel's output, NULL if there is no memory, and its way back.
gpusim_buffer* gpusim_offload_output_take(gpusim_device* device);
void gpusim_offload_output_give(gpusim_buffer* output);
// To whom the device's caller wants it to go.
void gpusim_offload_output_deliver(gpusim_device* device, const char* text, size_t size_bytes);

// ---- Existing memory ---------------------------------------------------------------------------

// Whole pages of the caller that kernels reach at the caller's addresses. Where ranges that are
// asked for overlap, they share regions.
struct gpusim_offload_range {
  uint64_t first, last;  // [first, last), of the caller
  uint64_t device_address;
  bool is_shared;                    // made of regions; else `memory`
  struct gpusim_port_memory memory;  // where device addresses are not the caller's
};
int gpusim_offload_attach(gpusim_device* device, uint64_t first, uint64_t last, bool read_only,
                          struct gpusim_offload_range* range);
void gpusim_offload_detach(gpusim_device* device, const struct gpusim_offload_range* range);
void gpusim_offload_sweep_regions(gpusim_device* device);

// ---- Buffers -----------------------------------------------------------------------------------

struct gpusim_buffer {
  atomic_uint references;
  gpusim_device* device;
  gpusim_buffer* next;  // among spare outputs
  uint8_t* pointer;
  size_t size_bytes;
  uint64_t device_address;
  bool is_existing;
  struct gpusim_port_memory memory;   // the device's
  struct gpusim_offload_range range;  // existing
};

gpusim_buffer* gpusim_offload_buffer_retain(gpusim_buffer* buffer);
int gpusim_offload_check_range(const gpusim_buffer* buffer, size_t offset_bytes, size_t size_bytes);

// ---- Programs and kernels ----------------------------------------------------------------------

// The calling executable: its writable memory, and where its code is.
struct gpusim_offload_self {
  unsigned range_count;
  struct gpusim_offload_range* ranges;
  unsigned code_count;
  struct {
    uint64_t first, last;
  } code[8];
};

struct gpusim_program {
  atomic_uint references;
  gpusim_device* device;
  uint32_t number;  // the port's
  bool is_self;
  struct gpusim_offload_debug* debug;  // NULL: not known
  struct gpusim_offload_self self;
};

gpusim_program* gpusim_offload_program_retain(gpusim_program* program);
// Only with a port that supports_self: self.c.
int gpusim_offload_load_self(gpusim_device* device, struct gpusim_offload_self* self,
                             struct gpusim_offload_debug** debug, uint32_t* program);

// What of the cores' rectangle an argument is, known when the kernel is enqueued.
enum gpusim_offload_shape { kShapeNone, kShapeX, kShapeY, kShapeColumns, kShapeRows };

enum { kMostWords = 4 };

// A parameter of the function, and the registers that it takes: structures take several.
struct gpusim_offload_parameter {
  bool is_set;
  uint8_t word_count;
  enum gpusim_offload_type type;
  enum gpusim_offload_shape shape;
  struct gpusim_argument words[kMostWords];
  gpusim_buffer* buffer;  // that it points into, or the table or copy; may be NULL
  uint32_t table_count;   // of a table
};

struct gpusim_offload_parameters {
  unsigned count;  // highest set + 1
  struct gpusim_offload_parameter list[GPUSIM_MOST_ARGUMENTS];
};

struct gpusim_kernel {
  atomic_uint references;
  gpusim_program* program;
  uint64_t function;
  struct gpusim_offload_signature signature;
  struct gpusim_offload_parameters parameters;
  gpusim_limits limits;
};

void gpusim_offload_parameters_release(struct gpusim_offload_parameters* parameters);
// One more, behind the others: for a launch with its arguments.
int gpusim_offload_parameters_add(const gpusim_kernel* kernel,
                                  struct gpusim_offload_parameters* parameters,
                                  const gpusim_value* value);
// Whether they are the function's, as far as that is known.
int gpusim_offload_parameters_check(const gpusim_kernel* kernel,
                                    const struct gpusim_offload_parameters* parameters);

// ---- Queues and events -------------------------------------------------------------------------

enum gpusim_offload_command {
  kCommandMarker,  // also map and unmap
  kCommandLaunch,
  kCommandWrite,
  kCommandRead,
  kCommandCopy,
  kCommandFill,
};

struct gpusim_offload_launch {
  struct gpusim_launch request;  // arguments beyond argument_count: anything
  gpusim_program* program;
  gpusim_buffer* output;
  unsigned buffer_count;
  gpusim_buffer* buffers[GPUSIM_MOST_ARGUMENTS + 1];
  bool has_begun;
  struct gpusim_port_end end;
  char* output_text;
  size_t output_size;
};

struct gpusim_offload_move {
  gpusim_buffer* buffers[2];
  uint8_t* to;
  const uint8_t* from;
  size_t size_bytes;
  size_t pattern_size_bytes;
  uint8_t pattern[kMostPattern];
};

// A command that waits for an event of another queue.
struct gpusim_offload_dependent {
  struct gpusim_offload_dependent* next;
  gpusim_event* event;  // a reference
};

enum gpusim_offload_state { kStateQueued, kStateStarted, kStateEnded };

struct gpusim_event {
  atomic_uint references;
  gpusim_queue* queue;
  enum gpusim_offload_command command;
  struct gpusim_offload_launch* launch;  // kCommandLaunch
  struct gpusim_offload_move* move;

  atomic_uint unmet;             // events that it waits for
  atomic_int failed_dependency;  // status of the first that failed

  // Under the queue's lock.
  gpusim_event* next;
  enum gpusim_offload_state state;
  int status;
  bool is_cancelled;
  bool is_driven;   // a thread is in the port's wait() for it
  uint64_t ticket;  // of the port, once launched and not ended at once
  uint64_t sequence;
  uint64_t queued_ns, started_ns, ended_ns;  // 0: not yet
  struct gpusim_offload_dependent* dependents;
  char text[kTextBytes];  // of the failure
};

struct gpusim_queue {
  atomic_uint references;
  gpusim_device* device;
  uint64_t number;                // of the device's, from 1 on
  gpusim_queue *next, *previous;  // of the device; under its lock

  pthread_mutex_t mutex;
  pthread_cond_t ended;       // a command has ended, or a thread has stopped waiting in the port
  pthread_cond_t work;        // for the worker: the same, and new commands
  gpusim_event* current;      // executing
  gpusim_event *head, *tail;  // behind it
  uint64_t last_sequence;     // enqueued
  uint64_t retired_sequence;  // all up to here have ended
  int failure;                // the first since the last finish
  char failure_text[kTextBytes];
  unsigned waiting;  // threads, for `ended`
  bool has_worker, is_stopping;
  pthread_t worker;

  // A launch that has ended and nobody knows any more, for the next one.
  gpusim_event* _Atomic spare;
};

void gpusim_offload_queue_release_reference(gpusim_queue* queue);
// Takes over the caller's reference to `event`, which has one more if `result` is not NULL. On
// failure the event is gone.
int gpusim_offload_enqueue(gpusim_queue* queue, gpusim_event* event, unsigned wait_count,
                           gpusim_event* const* wait_list, gpusim_event** result);
gpusim_event* gpusim_offload_event_new(gpusim_queue* queue, enum gpusim_offload_command command);
// One that is free of what it did before, or NULL.
gpusim_event* gpusim_offload_launch_new(gpusim_queue* queue);
// Executes outside of all locks. True: it has ended, with *status; false: event->ticket... is
// *ticket.
bool gpusim_offload_execute(gpusim_event* event, int* status, uint64_t* ticket);
// The port has reported the end of a launch. Returns the command's status.
int gpusim_offload_launch_settle(gpusim_event* event, int wait_status);
// -1: never.
int64_t gpusim_offload_deadline(double seconds);
uint64_t gpusim_offload_now_ns(void);

#endif  // GPUSIM_OFFLOAD_INTERNAL_H
