// SPDX-License-Identifier: MIT
// Opening and closing, properties, and what can only go when no kernel runs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { kMostOptions = 16, kOutputBytes = 1 << 20 };

static void write_to_standard_output(void* context, const char* text, size_t size_bytes) {
  (void)context;
  fwrite(text, 1, size_bytes, stdout);
}

int gpusim_open(const char* options, gpusim_device** result) {
  if (result == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_open: device is NULL");
  *result = NULL;
  char* const copy = strdup(options != NULL ? options : "");
  gpusim_device* const device = calloc(1, sizeof *device);
  if (copy == NULL || device == NULL) {
    free(copy);
    free(device);
    return fail(GPUSIM_OUT_OF_MEMORY, "gpusim_open: out of memory");
  }
  struct gpusim_port_option list[kMostOptions];
  unsigned count = 0;
  int status = GPUSIM_OK;
  char* rest;
  for (char* entry = strtok_r(copy, ",", &rest); entry != NULL;
       entry = strtok_r(NULL, ",", &rest)) {
    char* const equals = strchr(entry, '=');
    if (equals == NULL || equals == entry) {
      status =
          fail(GPUSIM_INVALID_ARGUMENT, "gpusim_open: \"%s\" is not of the form key=value", entry);
      break;
    }
    if (count == kMostOptions) {
      status = fail(GPUSIM_INVALID_ARGUMENT, "gpusim_open: more than %d options", kMostOptions);
      break;
    }
    *equals = 0;
    list[count].key = entry;
    list[count].value = equals + 1;
    ++count;
  }
  if (status == GPUSIM_OK) status = PORT->open(list, count, &device->port);
  free(copy);
  if (status != GPUSIM_OK) {
    free(device);
    return status;
  }
  status = PORT->properties(device->port, &device->properties);
  if (status != GPUSIM_OK) {
    PORT->close(device->port);
    free(device);
    return status;
  }
  device->properties.api_version = GPUSIM_API_VERSION;
  atomic_init(&device->references, 1);
  atomic_init(&device->launches, 0);
  atomic_init(&device->last_queue, 0);
  device->output_function = write_to_standard_output;
  pthread_mutex_init(&device->mutex, NULL);
  pthread_mutex_init(&device->regions_mutex, NULL);
  *result = device;
  return GPUSIM_OK;
}

gpusim_device* gpusim_offload_device_retain(gpusim_device* device) {
  atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
  return device;
}

static void free_leftovers(gpusim_device* device) {
  pthread_mutex_lock(&device->mutex);
  struct gpusim_offload_leftover* list = device->leftovers;
  device->leftovers = NULL;
  pthread_mutex_unlock(&device->mutex);
  struct gpusim_offload_leftover* kept = NULL;
  while (list != NULL) {
    struct gpusim_offload_leftover* const one = list;
    list = one->next;
    const int status = one->is_program ? PORT->unload(device->port, one->program)
                                       : PORT->free(device->port, &one->memory);
    if (status == GPUSIM_BUSY) {
      one->next = kept;
      kept = one;
    } else {
      free(one);
    }
  }
  pthread_mutex_lock(&device->mutex);
  while (kept != NULL) {
    struct gpusim_offload_leftover* const one = kept;
    kept = one->next;
    one->next = device->leftovers;
    device->leftovers = one;
  }
  pthread_mutex_unlock(&device->mutex);
}

static void leave_over(gpusim_device* device, const struct gpusim_port_memory* memory,
                       uint32_t program) {
  struct gpusim_offload_leftover* const one = calloc(1, sizeof *one);
  if (one == NULL) return;  // closing the device frees it
  one->is_program = memory == NULL;
  if (memory != NULL) one->memory = *memory;
  one->program = program;
  pthread_mutex_lock(&device->mutex);
  one->next = device->leftovers;
  device->leftovers = one;
  pthread_mutex_unlock(&device->mutex);
  // The last kernel may have ended in between.
  if (atomic_load(&device->launches) == 0) free_leftovers(device);
}

void gpusim_offload_free_memory(gpusim_device* device, const struct gpusim_port_memory* memory) {
  if (atomic_load(&device->launches) != 0 || PORT->free(device->port, memory) == GPUSIM_BUSY) {
    leave_over(device, memory, 0);
  }
}

void gpusim_offload_unload(gpusim_device* device, uint32_t program) {
  if (PORT->unload(device->port, program) == GPUSIM_BUSY) leave_over(device, NULL, program);
}

int gpusim_device_set_output(gpusim_device* device, gpusim_output_function function,
                             void* context) {
  if (device == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_device_set_output: NULL");
  pthread_mutex_lock(&device->mutex);
  device->output_function = function;
  device->output_context = context;
  pthread_mutex_unlock(&device->mutex);
  return GPUSIM_OK;
}

void gpusim_offload_output_deliver(gpusim_device* device, const char* text, size_t size_bytes) {
  pthread_mutex_lock(&device->mutex);
  const gpusim_output_function function = device->output_function;
  void* const context = device->output_context;
  pthread_mutex_unlock(&device->mutex);
  if (function != NULL) function(context, text, size_bytes);
}

void gpusim_offload_launch_ended(gpusim_device* device) {
  if (atomic_fetch_sub(&device->launches, 1) != 1) return;
  pthread_mutex_lock(&device->mutex);
  const bool has_leftovers = device->leftovers != NULL;
  pthread_mutex_unlock(&device->mutex);
  if (has_leftovers) free_leftovers(device);
  gpusim_offload_sweep_regions(device);
}

static void free_outputs(gpusim_device* device) {
  while (device->outputs != NULL) {
    gpusim_buffer* const output = device->outputs;
    device->outputs = output->next;
    PORT->free(device->port, &output->memory);
    free(output);
  }
}

void gpusim_offload_device_release(gpusim_device* device) {
  if (atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) != 1) return;
  free_outputs(device);
  free_leftovers(device);
  gpusim_offload_sweep_regions(device);
  PORT->close(device->port);
  while (device->leftovers != NULL) {
    struct gpusim_offload_leftover* const one = device->leftovers;
    device->leftovers = one->next;
    free(one);
  }
  pthread_mutex_destroy(&device->mutex);
  pthread_mutex_destroy(&device->regions_mutex);
  free(device);
}

int gpusim_close(gpusim_device* device) {
  if (device == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_close: device is NULL");
  // One queue after the other: each is held while it is waited for, and found again by its mark.
  gpusim_queue* done = NULL;
  for (;;) {
    pthread_mutex_lock(&device->mutex);
    gpusim_queue* queue = done != NULL ? done->next : device->queues;
    while (queue != NULL) {
      unsigned references = atomic_load(&queue->references);
      // Zero: another thread is about to take it out of the list.
      while (references != 0 &&
             !atomic_compare_exchange_weak(&queue->references, &references, references + 1)) {
      }
      if (references != 0) break;
      queue = queue->next;
    }
    pthread_mutex_unlock(&device->mutex);
    if (done != NULL) gpusim_offload_queue_release_reference(done);
    if (queue == NULL) break;
    gpusim_queue_finish(queue);  // its failures are not this call's
    done = queue;
  }
  gpusim_offload_device_release(device);
  return GPUSIM_OK;
}

int gpusim_device_properties(gpusim_device* device, gpusim_properties* properties) {
  if (device == NULL || properties == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_device_properties: an argument is NULL");
  }
  *properties = device->properties;
  return GPUSIM_OK;
}

int gpusim_device_counters(gpusim_device* device, gpusim_counters* counters) {
  if (device == NULL || counters == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_device_counters: an argument is NULL");
  }
  memset(counters, 0, sizeof *counters);
  return PORT->counters(device->port, counters);
}

// A spare output is a buffer without a reference to the device, which owns it then.
gpusim_buffer* gpusim_offload_output_take(gpusim_device* device) {
  pthread_mutex_lock(&device->mutex);
  gpusim_buffer* output = device->outputs;
  if (output != NULL) device->outputs = output->next;
  pthread_mutex_unlock(&device->mutex);
  if (output == NULL) {
    output = calloc(1, sizeof *output);
    if (output == NULL) return NULL;
    if (PORT->alloc(device->port, kOutputBytes, 0, &output->memory) != GPUSIM_OK) {
      free(output);
      return NULL;
    }
    output->pointer = output->memory.pointer;
    output->size_bytes = kOutputBytes;
    output->device_address = output->memory.device_address;
    output->device = device;
  }
  output->next = NULL;
  return output;
}

void gpusim_offload_output_give(gpusim_buffer* output) {
  gpusim_device* const device = output->device;
  pthread_mutex_lock(&device->mutex);
  output->next = device->outputs;
  device->outputs = output;
  pthread_mutex_unlock(&device->mutex);
}
