// SPDX-License-Identifier: MIT
// The commands: building and executing them, and what they leave behind.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "energy/estimate.h"
#include "internal.h"

// ---- Kernels -----------------------------------------------------------------------------------

static uint64_t nanoseconds(double seconds) {
  if (seconds <= 0) return 0;
  // At least one: 0 means no limit.
  return seconds >= 1e9 ? UINT64_C(1000000000000000000) : (uint64_t)(seconds * 1e9) + 1;
}

static void set_limits(struct gpusim_launch* request, const gpusim_limits* limits) {
  request->stack_size_bytes = limits->stack_size_bytes;
  request->max_instructions = limits->max_instructions;
  request->time_limit_ns = nanoseconds(limits->seconds);
}

static gpusim_event* new_launch(gpusim_queue* queue, gpusim_program* program, uint32_t cores) {
  gpusim_event* const event = gpusim_offload_launch_new(queue);
  if (event == NULL) return NULL;
  event->launch->program = gpusim_offload_program_retain(program);
  event->launch->request.program = program->number;
  event->launch->request.cores = cores;
  event->launch->request.queue = queue->number;
  return event;
}

static int check_cores(const gpusim_queue* queue, const gpusim_program* program, uint64_t cores) {
  if (program->device != queue->device) {
    return fail(GPUSIM_INVALID_ARGUMENT, "the kernel belongs to another device than the queue");
  }
  const uint32_t most = queue->device->properties.most_cores;
  if (cores == 0 || cores > most) {
    return fail(GPUSIM_INVALID_ARGUMENT, "%llu cores: 1 to %u are possible",
                (unsigned long long)cores, most);
  }
  return GPUSIM_OK;
}

// The cores as a rectangle.
struct shape {
  uint32_t columns, rows;
};

static int check_tables(const struct gpusim_offload_parameters* parameters, uint32_t cores) {
  for (unsigned i = 0; i < parameters->count; ++i) {
    const struct gpusim_offload_parameter* const p = &parameters->list[i];
    if (p->table_count != 0 && cores > p->table_count) {
      return fail(GPUSIM_INVALID_ARGUMENT, "%u cores, but argument %u has values for %u", cores, i,
                  p->table_count);
    }
  }
  return GPUSIM_OK;
}

static struct gpusim_argument argument_of(enum gpusim_offload_shape of, struct shape shape) {
  struct gpusim_argument a = {.kind = GPUSIM_ARGUMENT_VALUE};
  switch (of) {
    case kShapeX:
      a.kind = GPUSIM_ARGUMENT_REMAINDER;
      a.step = shape.columns;
      break;
    case kShapeY:
      a.kind = GPUSIM_ARGUMENT_QUOTIENT;
      a.step = shape.columns;
      break;
    case kShapeColumns:
      a.value = shape.columns;
      break;
    case kShapeRows:
      a.value = shape.rows;
      break;
    case kShapeNone:
      break;
  }
  return a;
}

static void set_arguments(struct gpusim_offload_launch* launch,
                          const struct gpusim_offload_parameters* parameters, struct shape shape) {
  struct gpusim_launch* const request = &launch->request;
  for (unsigned i = 0; i < parameters->count; ++i) {
    const struct gpusim_offload_parameter* const p = &parameters->list[i];
    for (unsigned word = 0; word < p->word_count; ++word) {
      request->arguments[request->argument_count++] =
          p->shape == kShapeNone ? p->words[word] : argument_of(p->shape, shape);
    }
    if (p->buffer != NULL) {
      launch->buffers[launch->buffer_count++] = gpusim_offload_buffer_retain(p->buffer);
    }
  }
}

static int enqueue_with(gpusim_queue* queue, const gpusim_kernel* kernel,
                        const struct gpusim_offload_parameters* parameters, struct shape shape,
                        unsigned wait_count, gpusim_event* const* wait_list, gpusim_event** event) {
  const uint64_t cores = (uint64_t)shape.columns * shape.rows;
  int status = check_cores(queue, kernel->program, cores);
  if (status == GPUSIM_OK) status = gpusim_offload_parameters_check(kernel, parameters);
  if (status == GPUSIM_OK) status = check_tables(parameters, (uint32_t)cores);
  if (status != GPUSIM_OK) return status;
  gpusim_event* const command = new_launch(queue, kernel->program, (uint32_t)cores);
  if (command == NULL) return GPUSIM_OUT_OF_MEMORY;
  command->launch->request.function = kernel->function;
  set_limits(&command->launch->request, &kernel->limits);
  set_arguments(command->launch, parameters, shape);
  return gpusim_offload_enqueue(queue, command, wait_count, wait_list, event);
}

int gpusim_enqueue_kernel(gpusim_queue* queue, gpusim_kernel* kernel, uint32_t cores,
                          unsigned wait_count, gpusim_event* const* wait_list,
                          gpusim_event** event) {
  return gpusim_enqueue_kernel_2d(queue, kernel, cores, 1, wait_count, wait_list, event);
}

int gpusim_enqueue_kernel_2d(gpusim_queue* queue, gpusim_kernel* kernel, uint32_t columns,
                             uint32_t rows, unsigned wait_count, gpusim_event* const* wait_list,
                             gpusim_event** event) {
  if (event != NULL) *event = NULL;
  if (queue == NULL || kernel == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_kernel: an argument is NULL");
  }
  return enqueue_with(queue, kernel, &kernel->parameters, (struct shape){columns, rows}, wait_count,
                      wait_list, event);
}

int gpusim_launch_values(gpusim_queue* queue, gpusim_kernel* kernel, uint32_t columns,
                         uint32_t rows, unsigned value_count, const gpusim_value* values,
                         gpusim_event** event) {
  if (event != NULL) *event = NULL;
  if (queue == NULL || kernel == NULL || (values == NULL && value_count != 0)) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_launch: an argument is NULL");
  }
  struct gpusim_offload_parameters parameters;
  parameters.count = 0;
  int status = GPUSIM_OK;
  for (unsigned i = 0; i < value_count && status == GPUSIM_OK; ++i) {
    status = gpusim_offload_parameters_add(kernel, &parameters, &values[i]);
  }
  if (status == GPUSIM_OK) {
    const struct shape shape = {columns, rows};
    status = enqueue_with(queue, kernel, &parameters, shape, 0, NULL, event);
  }
  gpusim_offload_parameters_release(&parameters);
  return status;
}

// argv as the device reads it: entries ended by a zero byte each.
static int make_strings(gpusim_queue* queue, const char* const* argv,
                        struct gpusim_offload_launch* launch) {
  size_t size_bytes = 0;
  for (unsigned i = 0; argv[i] != NULL; ++i) size_bytes += strlen(argv[i]) + 1;
  if (size_bytes == 0)
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_program: argv is empty");
  gpusim_buffer* strings;
  const int status = gpusim_buffer_create(queue->device, 0, size_bytes, NULL, &strings);
  if (status != GPUSIM_OK) return status;
  char* to = (char*)strings->pointer;
  for (unsigned i = 0; argv[i] != NULL; ++i) {
    const size_t n = strlen(argv[i]) + 1;
    memcpy(to, argv[i], n);
    to += n;
  }
  launch->buffers[launch->buffer_count++] = strings;
  launch->request.strings = strings->device_address;
  launch->request.strings_size_bytes = size_bytes;
  return GPUSIM_OK;
}

int gpusim_enqueue_program(gpusim_queue* queue, gpusim_program* program, uint32_t cores,
                           const char* const* argv, const gpusim_limits* limits,
                           unsigned wait_count, gpusim_event* const* wait_list,
                           gpusim_event** event) {
  if (event != NULL) *event = NULL;
  if (queue == NULL || program == NULL || argv == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_program: an argument is NULL");
  }
  if (limits != NULL && !(limits->seconds >= 0)) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_program: %g seconds", limits->seconds);
  }
  int status = check_cores(queue, program, cores);
  if (status != GPUSIM_OK) return status;
  gpusim_event* const command = new_launch(queue, program, cores);
  if (command == NULL) return GPUSIM_OUT_OF_MEMORY;
  command->launch->request.flags = GPUSIM_LAUNCH_PROCESS;
  if (limits != NULL) set_limits(&command->launch->request, limits);
  status = make_strings(queue, argv, command->launch);
  if (status != GPUSIM_OK) {
    gpusim_program_release(command->launch->program);
    gpusim_event_release(command);
    return status;
  }
  return gpusim_offload_enqueue(queue, command, wait_count, wait_list, event);
}

// ---- Memory ------------------------------------------------------------------------------------

static gpusim_event* new_move(gpusim_queue* queue, enum gpusim_offload_command command,
                              gpusim_buffer* first, gpusim_buffer* second, void* to,
                              const void* from, size_t size_bytes) {
  gpusim_event* const event = gpusim_offload_event_new(queue, command);
  if (event == NULL) return NULL;
  event->move = calloc(1, sizeof *event->move);
  if (event->move == NULL) {
    gpusim_event_release(event);
    fail(GPUSIM_OUT_OF_MEMORY, "a command: out of memory");
    return NULL;
  }
  event->move->buffers[0] = gpusim_offload_buffer_retain(first);
  if (second != NULL) event->move->buffers[1] = gpusim_offload_buffer_retain(second);
  event->move->to = to;
  event->move->from = from;
  event->move->size_bytes = size_bytes;
  return event;
}

// Whether a command of this queue may touch these bytes.
static int check_part(const gpusim_queue* queue, const gpusim_buffer* buffer, size_t offset_bytes,
                      size_t size_bytes) {
  if (queue == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "the queue is NULL");
  const int status = gpusim_offload_check_range(buffer, offset_bytes, size_bytes);
  if (status != GPUSIM_OK) return status;
  if (buffer->device != queue->device) {
    return fail(GPUSIM_INVALID_ARGUMENT, "the buffer belongs to another device than the queue");
  }
  return GPUSIM_OK;
}

int gpusim_enqueue_write(gpusim_queue* queue, gpusim_buffer* buffer, size_t offset_bytes,
                         size_t size_bytes, const void* from, unsigned wait_count,
                         gpusim_event* const* wait_list, gpusim_event** event) {
  if (event != NULL) *event = NULL;
  const int status = check_part(queue, buffer, offset_bytes, size_bytes);
  if (status != GPUSIM_OK) return status;
  if (from == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_write: from is NULL");
  gpusim_event* const command = new_move(queue, kCommandWrite, buffer, NULL,
                                         buffer->pointer + offset_bytes, from, size_bytes);
  if (command == NULL) return GPUSIM_OUT_OF_MEMORY;
  return gpusim_offload_enqueue(queue, command, wait_count, wait_list, event);
}

int gpusim_enqueue_read(gpusim_queue* queue, gpusim_buffer* buffer, size_t offset_bytes,
                        size_t size_bytes, void* to, unsigned wait_count,
                        gpusim_event* const* wait_list, gpusim_event** event) {
  if (event != NULL) *event = NULL;
  const int status = check_part(queue, buffer, offset_bytes, size_bytes);
  if (status != GPUSIM_OK) return status;
  if (to == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_read: to is NULL");
  gpusim_event* const command =
      new_move(queue, kCommandRead, buffer, NULL, to, buffer->pointer + offset_bytes, size_bytes);
  if (command == NULL) return GPUSIM_OUT_OF_MEMORY;
  return gpusim_offload_enqueue(queue, command, wait_count, wait_list, event);
}

int gpusim_enqueue_copy(gpusim_queue* queue, gpusim_buffer* from, size_t from_offset_bytes,
                        gpusim_buffer* to, size_t to_offset_bytes, size_t size_bytes,
                        unsigned wait_count, gpusim_event* const* wait_list, gpusim_event** event) {
  if (event != NULL) *event = NULL;
  int status = check_part(queue, from, from_offset_bytes, size_bytes);
  if (status == GPUSIM_OK) status = check_part(queue, to, to_offset_bytes, size_bytes);
  if (status != GPUSIM_OK) return status;
  gpusim_event* const command =
      new_move(queue, kCommandCopy, from, to, to->pointer + to_offset_bytes,
               from->pointer + from_offset_bytes, size_bytes);
  if (command == NULL) return GPUSIM_OUT_OF_MEMORY;
  return gpusim_offload_enqueue(queue, command, wait_count, wait_list, event);
}

int gpusim_enqueue_fill(gpusim_queue* queue, gpusim_buffer* buffer, const void* pattern,
                        size_t pattern_size_bytes, size_t offset_bytes, size_t size_bytes,
                        unsigned wait_count, gpusim_event* const* wait_list, gpusim_event** event) {
  if (event != NULL) *event = NULL;
  const int status = check_part(queue, buffer, offset_bytes, size_bytes);
  if (status != GPUSIM_OK) return status;
  if (pattern == NULL || pattern_size_bytes == 0 || pattern_size_bytes > kMostPattern) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_fill: a pattern of %zu bytes: 1 to %d",
                pattern == NULL ? 0 : pattern_size_bytes, kMostPattern);
  }
  if (size_bytes % pattern_size_bytes != 0) {
    return fail(GPUSIM_INVALID_ARGUMENT,
                "gpusim_enqueue_fill: %zu bytes are not a multiple of the pattern's %zu",
                size_bytes, pattern_size_bytes);
  }
  gpusim_event* const command =
      new_move(queue, kCommandFill, buffer, NULL, buffer->pointer + offset_bytes, NULL, size_bytes);
  if (command == NULL) return GPUSIM_OUT_OF_MEMORY;
  memcpy(command->move->pattern, pattern, pattern_size_bytes);
  command->move->pattern_size_bytes = pattern_size_bytes;
  return gpusim_offload_enqueue(queue, command, wait_count, wait_list, event);
}

// Memory is where both sides see it, so that mapping is a matter of order alone. A command that
// keeps a reference and moves nothing.
static int enqueue_nothing(gpusim_queue* queue, gpusim_buffer* buffer, unsigned wait_count,
                           gpusim_event* const* wait_list, gpusim_event** event) {
  gpusim_event* const command = new_move(queue, kCommandMarker, buffer, NULL, NULL, NULL, 0);
  if (command == NULL) return GPUSIM_OUT_OF_MEMORY;
  return gpusim_offload_enqueue(queue, command, wait_count, wait_list, event);
}

int gpusim_enqueue_map(gpusim_queue* queue, gpusim_buffer* buffer, size_t offset_bytes,
                       size_t size_bytes, void** pointer, unsigned wait_count,
                       gpusim_event* const* wait_list, gpusim_event** event) {
  if (event != NULL) *event = NULL;
  if (pointer == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_map: pointer is NULL");
  *pointer = NULL;
  int status = check_part(queue, buffer, offset_bytes, size_bytes);
  if (status != GPUSIM_OK) return status;
  uint8_t* const mapped = buffer->pointer + offset_bytes;
  status = enqueue_nothing(queue, buffer, wait_count, wait_list, event);
  if (status == GPUSIM_OK) *pointer = mapped;
  return status;
}

int gpusim_enqueue_unmap(gpusim_queue* queue, gpusim_buffer* buffer, void* pointer,
                         unsigned wait_count, gpusim_event* const* wait_list,
                         gpusim_event** event) {
  if (event != NULL) *event = NULL;
  const int status = check_part(queue, buffer, 0, 0);
  if (status != GPUSIM_OK) return status;
  const uintptr_t first = (uintptr_t)buffer->pointer;
  if ((uintptr_t)pointer < first || (uintptr_t)pointer - first > buffer->size_bytes) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_unmap: %p is not in the buffer", pointer);
  }
  return enqueue_nothing(queue, buffer, wait_count, wait_list, event);
}

int gpusim_enqueue_marker(gpusim_queue* queue, gpusim_event** event) {
  if (event != NULL) *event = NULL;
  if (queue == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_enqueue_marker: NULL");
  gpusim_event* const command = gpusim_offload_event_new(queue, kCommandMarker);
  if (command == NULL) return GPUSIM_OUT_OF_MEMORY;
  return gpusim_offload_enqueue(queue, command, 0, NULL, event);
}

// ---- Executing ---------------------------------------------------------------------------------

static void fill(uint8_t* to, size_t size_bytes, const uint8_t* pattern, size_t pattern_bytes) {
  if (size_bytes == 0) return;
  memcpy(to, pattern, pattern_bytes);
  // What is there twice as often each time.
  for (size_t done = pattern_bytes; done < size_bytes;) {
    const size_t more = done < size_bytes - done ? done : size_bytes - done;
    memcpy(to + done, to, more);
    done += more;
  }
}

static void keep_output(struct gpusim_offload_launch* launch) {
  if (launch->output == NULL || launch->end.reply.report.output_kept_bytes == 0) return;
  const uint64_t kept = launch->end.reply.report.output_kept_bytes;
  const size_t size = kept < launch->output->size_bytes ? (size_t)kept : launch->output->size_bytes;
  launch->output_text = malloc(size + 1);
  if (launch->output_text == NULL) return;
  memcpy(launch->output_text, launch->output->pointer, size);
  launch->output_text[size] = 0;
  launch->output_size = size;
}

// When the device began and ended, on this clock: it says how long it took by its own.
static void set_times(gpusim_event* event) {
  const struct gpusim_report* const report = &event->launch->end.reply.report;
  const uint64_t now = gpusim_offload_now_ns();
  const uint64_t passed = now - event->started_ns;
  const uint64_t waited = report->waited_ns < passed ? report->waited_ns : passed;
  const uint64_t lasted = report->lasted_ns < passed - waited ? report->lasted_ns : passed - waited;
  event->started_ns += waited;
  event->ended_ns = event->started_ns + lasted;
}

int gpusim_offload_launch_settle(gpusim_event* event, int wait_status) {
  struct gpusim_offload_launch* const launch = event->launch;
  struct gpusim_port_end* const end = &launch->end;
  end->reply.text[sizeof end->reply.text - 1] = 0;
  if (wait_status != GPUSIM_OK) {
    end->status = wait_status;
    snprintf(end->reply.text, sizeof end->reply.text, "%s", gpusim_last_error());
  } else {
    launch->has_begun = true;
    set_times(event);
    keep_output(launch);
    if (launch->output_text != NULL && (launch->request.flags & GPUSIM_LAUNCH_PROCESS) == 0) {
      gpusim_offload_output_deliver(event->queue->device, launch->output_text, launch->output_size);
    }
    // TIMED_OUT of a command would mean that it goes on.
    if (end->status == GPUSIM_TIMED_OUT) end->status = GPUSIM_KERNEL_FAILED;
    if (end->status == GPUSIM_OK &&
        (end->reply.report.exit_status != 0 || end->reply.report.faults != 0)) {
      end->status = GPUSIM_KERNEL_FAILED;
      if (end->reply.text[0] == 0 && end->reply.report.faults != 0) {
        snprintf(end->reply.text, sizeof end->reply.text,
                 "core %u faulted at %#llx, exit status %d", end->reply.report.fault_core,
                 (unsigned long long)end->reply.report.fault_pc, end->reply.report.exit_status);
      } else if (end->reply.text[0] == 0) {
        snprintf(end->reply.text, sizeof end->reply.text, "the kernel ended with exit status %d",
                 end->reply.report.exit_status);
      }
    }
  }
  gpusim_offload_launch_ended(event->queue->device);
  return end->status;
}

static bool execute_launch(gpusim_event* event, int* status, uint64_t* ticket) {
  struct gpusim_offload_launch* const launch = event->launch;
  gpusim_device* const device = event->queue->device;
  launch->output = gpusim_offload_output_take(device);
  if (launch->output != NULL) {
    launch->request.output = launch->output->device_address;
    launch->request.output_size_bytes = launch->output->size_bytes;
  }
  atomic_fetch_add(&device->launches, 1);
  const int started = PORT->launch(device->port, &launch->request, ticket, &launch->end);
  if (started == GPUSIM_OK && *ticket != 0) return false;
  *status = gpusim_offload_launch_settle(event, started);
  return true;
}

bool gpusim_offload_execute(gpusim_event* event, int* status, uint64_t* ticket) {
  struct gpusim_offload_move* const move = event->move;
  *status = GPUSIM_OK;
  switch (event->command) {
    case kCommandMarker:
      return true;
    case kCommandLaunch:
      return execute_launch(event, status, ticket);
    case kCommandFill:
      fill(move->to, move->size_bytes, move->pattern, move->pattern_size_bytes);
      return true;
    case kCommandWrite:
    case kCommandRead:
    case kCommandCopy:
      memmove(move->to, move->from, move->size_bytes);
      return true;
  }
  return true;
}

// ---- What kernels leave behind -----------------------------------------------------------------

// The launch of a kernel that has ended, or NULL and *status.
static struct gpusim_offload_launch* ended_launch(gpusim_event* event, const char* function,
                                                  int* status) {
  if (event == NULL) {
    *status = fail(GPUSIM_INVALID_ARGUMENT, "%s: an argument is NULL", function);
    return NULL;
  }
  if (event->launch == NULL) {
    *status = fail(GPUSIM_INVALID_ARGUMENT, "%s: the event is not a kernel's", function);
    return NULL;
  }
  if (gpusim_event_status(event) == GPUSIM_RUNNING) {
    *status = fail(GPUSIM_BUSY, "%s: the kernel has not ended", function);
    return NULL;
  }
  if (!event->launch->has_begun) {
    *status = fail(GPUSIM_NOT_FOUND, "%s: the kernel did not begin", function);
    return NULL;
  }
  return event->launch;
}

// The simulator may be newer than this library: classes that came after the last one, "other", are
// counted as that.
static void known_classes(const struct gpusim_classes* from, uint64_t* classes) {
  memset(classes, 0, GPUSIM_CLASS_COUNT * sizeof *classes);
  for (unsigned i = 0; i < from->count && i < GPUSIM_MOST_CLASSES; ++i)
    classes[i < GPUSIM_CLASS_COUNT ? i : GPUSIM_CLASS_COUNT - 1] += from->instructions[i];
}

int gpusim_event_statistics(gpusim_event* event, gpusim_statistics* statistics) {
  int status = GPUSIM_OK;
  const struct gpusim_offload_launch* const launch =
      ended_launch(statistics != NULL ? event : NULL, "gpusim_event_statistics", &status);
  if (launch == NULL) return status;
  const struct gpusim_report* const report = &launch->end.reply.report;
  memset(statistics, 0, sizeof *statistics);
  statistics->guest_instructions = report->guest_instructions;
  known_classes(&launch->end.reply.classes, statistics->classes);
  statistics->seconds = (double)report->run_ns / 1e9;
  if (report->run_ns != 0) {
    statistics->mips = (double)report->guest_instructions * 1e3 / (double)report->run_ns;
  }
  statistics->cores = report->cores;
  statistics->exit_status = report->exit_status;
  statistics->faults = report->faults;
  statistics->fault_core = report->fault_core;
  statistics->fault_pc = report->fault_pc;
  statistics->output_bytes = report->output_bytes;
  statistics->copied_bytes = report->copied_bytes;
  return GPUSIM_OK;
}

int gpusim_event_times(gpusim_event* event, gpusim_times* times) {
  if (event == NULL || times == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_event_times: an argument is NULL");
  }
  if (gpusim_event_status(event) == GPUSIM_RUNNING) {
    return fail(GPUSIM_BUSY, "gpusim_event_times: the command has not ended");
  }
  pthread_mutex_lock(&event->queue->mutex);
  times->queued_ns = event->queued_ns;
  times->started_ns = event->started_ns;
  times->ended_ns = event->ended_ns;
  pthread_mutex_unlock(&event->queue->mutex);
  return GPUSIM_OK;
}

int gpusim_event_energy(gpusim_event* event, const char* target, double* joules) {
  int status = GPUSIM_OK;
  const struct gpusim_offload_launch* const launch =
      ended_launch(target != NULL && joules != NULL ? event : NULL, "gpusim_event_energy", &status);
  if (launch == NULL) return status;
  *joules = 0;
  uint64_t classes[GPUSIM_CLASS_COUNT];
  known_classes(&launch->end.reply.classes, classes);
  if (gpusim_energy_joules(target, classes, joules) == 0) return GPUSIM_OK;
  return fail(GPUSIM_NOT_FOUND, "no energy target \"%s\"; there are %s", target,
              gpusim_energy_target_names());
}

int gpusim_event_output(gpusim_event* event, const char** text, size_t* size_bytes) {
  int status = GPUSIM_OK;
  const struct gpusim_offload_launch* const launch = ended_launch(
      text != NULL && size_bytes != NULL ? event : NULL, "gpusim_event_output", &status);
  if (launch == NULL) return status;
  *text = launch->output_text != NULL ? launch->output_text : "";
  *size_bytes = launch->output_size;
  return GPUSIM_OK;
}
