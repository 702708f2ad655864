// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum {
  kKnownFlags = GPUSIM_BUFFER_READ_ONLY | GPUSIM_BUFFER_USE_HOST_PTR | GPUSIM_BUFFER_COPY_HOST_PTR
};

static int make_existing(gpusim_buffer* buffer, bool read_only, void* host_ptr) {
  const uint64_t page = buffer->device->properties.page_size_bytes;
  const uint64_t address = (uint64_t)(uintptr_t)host_ptr;
  const uint64_t end = address + buffer->size_bytes;
  if (end < address || end > UINT64_MAX - page) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_buffer_create: the memory wraps around");
  }
  const uint64_t first = address & ~(page - 1);
  const uint64_t last = (end + page - 1) & ~(page - 1);
  const int status = gpusim_offload_attach(buffer->device, first, last, read_only, &buffer->range);
  if (status != GPUSIM_OK) return status;
  buffer->is_existing = true;
  buffer->pointer = host_ptr;
  buffer->device_address = buffer->range.device_address + (address - first);
  return GPUSIM_OK;
}

static int make_new(gpusim_buffer* buffer, bool read_only, const void* content) {
  const uint64_t page = buffer->device->properties.page_size_bytes;
  const uint64_t size = buffer->size_bytes;
  if (size > UINT64_MAX - page) {
    return fail(GPUSIM_OUT_OF_MEMORY, "gpusim_buffer_create: %zu bytes", buffer->size_bytes);
  }
  const int status = PORT->alloc(buffer->device->port, (size + page - 1) & ~(page - 1), read_only,
                                 &buffer->memory);
  if (status != GPUSIM_OK) return status;
  buffer->pointer = buffer->memory.pointer;
  buffer->device_address = buffer->memory.device_address;
  if (content != NULL) memcpy(buffer->pointer, content, buffer->size_bytes);
  return GPUSIM_OK;
}

int gpusim_buffer_create(gpusim_device* device, uint32_t flags, size_t size_bytes, void* host_ptr,
                         gpusim_buffer** result) {
  if (result != NULL) *result = NULL;
  if (device == NULL || result == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_buffer_create: an argument is NULL");
  }
  if (size_bytes == 0) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_buffer_create: the size is 0");
  }
  if ((flags & ~(uint32_t)kKnownFlags) != 0) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_buffer_create: unknown flags %#x", flags);
  }
  const bool uses = (flags & GPUSIM_BUFFER_USE_HOST_PTR) != 0;
  const bool copies = (flags & GPUSIM_BUFFER_COPY_HOST_PTR) != 0;
  if (uses && copies) {
    return fail(GPUSIM_INVALID_ARGUMENT,
                "gpusim_buffer_create: USE_HOST_PTR and COPY_HOST_PTR exclude each other");
  }
  if ((uses || copies) != (host_ptr != NULL)) {
    return fail(GPUSIM_INVALID_ARGUMENT,
                host_ptr == NULL
                    ? "gpusim_buffer_create: USE_HOST_PTR or COPY_HOST_PTR without a pointer"
                    : "gpusim_buffer_create: a pointer without USE_HOST_PTR or COPY_HOST_PTR");
  }
  gpusim_buffer* const buffer = calloc(1, sizeof *buffer);
  if (buffer == NULL) return fail(GPUSIM_OUT_OF_MEMORY, "gpusim_buffer_create: out of memory");
  buffer->device = device;
  buffer->size_bytes = size_bytes;
  const bool read_only = (flags & GPUSIM_BUFFER_READ_ONLY) != 0;
  const int status =
      uses ? make_existing(buffer, read_only, host_ptr) : make_new(buffer, read_only, host_ptr);
  if (status != GPUSIM_OK) {
    free(buffer);
    return status;
  }
  atomic_init(&buffer->references, 1);
  gpusim_offload_device_retain(device);
  *result = buffer;
  return GPUSIM_OK;
}

gpusim_buffer* gpusim_offload_buffer_retain(gpusim_buffer* buffer) {
  atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
  return buffer;
}

int gpusim_buffer_release(gpusim_buffer* buffer) {
  if (buffer == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_buffer_release: NULL");
  if (atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1) {
    return GPUSIM_OK;
  }
  gpusim_device* const device = buffer->device;
  if (buffer->is_existing) {
    gpusim_offload_detach(device, &buffer->range);
  } else {
    gpusim_offload_free_memory(device, &buffer->memory);
  }
  free(buffer);
  gpusim_offload_device_release(device);
  return GPUSIM_OK;
}

size_t gpusim_buffer_size(const gpusim_buffer* buffer) {
  return buffer != NULL ? buffer->size_bytes : 0;
}

uint64_t gpusim_buffer_device_address(const gpusim_buffer* buffer) {
  return buffer != NULL ? buffer->device_address : 0;
}

int gpusim_buffer_is_unified(const gpusim_buffer* buffer) {
  return buffer != NULL && buffer->device_address == (uint64_t)(uintptr_t)buffer->pointer;
}

void* gpusim_buffer_pointer(gpusim_buffer* buffer) {
  return buffer != NULL ? buffer->pointer : NULL;
}

int gpusim_offload_check_range(const gpusim_buffer* buffer, size_t offset_bytes,
                               size_t size_bytes) {
  if (buffer == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "the buffer is NULL");
  if (offset_bytes > buffer->size_bytes || size_bytes > buffer->size_bytes - offset_bytes) {
    return fail(GPUSIM_INVALID_ARGUMENT, "%zu bytes at offset %zu of a buffer of %zu bytes",
                size_bytes, offset_bytes, buffer->size_bytes);
  }
  return GPUSIM_OK;
}
