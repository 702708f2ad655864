// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static gpusim_program* new_program(gpusim_device* device) {
  gpusim_program* const program = calloc(1, sizeof *program);
  if (program == NULL) {
    fail(GPUSIM_OUT_OF_MEMORY, "a program: out of memory");
    return NULL;
  }
  atomic_init(&program->references, 1);
  program->device = gpusim_offload_device_retain(device);
  return program;
}

static int finish_program(gpusim_program* program, int status, gpusim_program** result) {
  if (status == GPUSIM_OK) {
    *result = program;
  } else {
    gpusim_offload_device_release(program->device);
    free(program);
  }
  return status;
}

int gpusim_program_from_self(gpusim_device* device, gpusim_program** result) {
  if (result != NULL) *result = NULL;
  if (device == NULL || result == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_program_from_self: an argument is NULL");
  }
  if (!PORT->supports_self) {
    return fail(GPUSIM_NOT_SUPPORTED,
                "gpusim_program_from_self: this program is not of the simulated instruction set; "
                "build its kernels as a program for that and use gpusim_program_from_file");
  }
  gpusim_program* const program = new_program(device);
  if (program == NULL) return GPUSIM_OUT_OF_MEMORY;
  program->is_self = true;
  const int status =
      gpusim_offload_load_self(device, &program->self, &program->debug, &program->number);
  return finish_program(program, status, result);
}

static int load(gpusim_device* device, const void* bytes, size_t size_bytes, const char* name,
                gpusim_program** result) {
  gpusim_program* const program = new_program(device);
  if (program == NULL) return GPUSIM_OUT_OF_MEMORY;
  const int status = PORT->load(device->port, bytes, size_bytes, name, 0, &program->number);
  if (status == GPUSIM_OK) program->debug = gpusim_offload_debug_read(bytes, size_bytes);
  return finish_program(program, status, result);
}

int gpusim_program_from_memory(gpusim_device* device, const void* bytes, size_t size_bytes,
                               gpusim_program** result) {
  if (result != NULL) *result = NULL;
  if (device == NULL || bytes == NULL || result == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_program_from_memory: an argument is NULL");
  }
  if (size_bytes == 0) {
    return fail(GPUSIM_INVALID_PROGRAM, "gpusim_program_from_memory: it is empty");
  }
  return load(device, bytes, size_bytes, "program in memory", result);
}

// The whole of a file; its length is not known before (it may be a pipe).
static char* read_all(FILE* file, size_t* size_bytes) {
  size_t room = 1 << 16;
  size_t size = 0;
  char* bytes = malloc(room);
  while (bytes != NULL) {
    size += fread(bytes + size, 1, room - size, file);
    if (size < room) break;
    room *= 2;
    char* const larger = realloc(bytes, room);
    if (larger == NULL) free(bytes);
    bytes = larger;
  }
  *size_bytes = size;
  return bytes;
}

int gpusim_program_from_file(gpusim_device* device, const char* path, gpusim_program** result) {
  if (result != NULL) *result = NULL;
  if (device == NULL || path == NULL || result == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_program_from_file: an argument is NULL");
  }
  FILE* const file = fopen(path, "rbe");
  if (file == NULL) {
    return fail(errno == ENOENT ? GPUSIM_NOT_FOUND : GPUSIM_INVALID_PROGRAM, "%s: %s", path,
                strerror(errno));
  }
  size_t size_bytes = 0;
  errno = 0;
  char* const bytes = read_all(file, &size_bytes);
  const int error = ferror(file) ? errno : 0;
  fclose(file);
  int status;
  if (bytes == NULL) {
    status = fail(GPUSIM_OUT_OF_MEMORY, "%s: out of memory", path);
  } else if (error != 0) {
    status = fail(GPUSIM_INVALID_PROGRAM, "%s: %s", path, strerror(error));
  } else if (size_bytes == 0) {
    status = fail(GPUSIM_INVALID_PROGRAM, "%s: it is empty", path);
  } else {
    status = load(device, bytes, size_bytes, path, result);
  }
  free(bytes);
  return status;
}

gpusim_program* gpusim_offload_program_retain(gpusim_program* program) {
  atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
  return program;
}

int gpusim_program_release(gpusim_program* program) {
  if (program == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_program_release: NULL");
  if (atomic_fetch_sub_explicit(&program->references, 1, memory_order_acq_rel) != 1) {
    return GPUSIM_OK;
  }
  gpusim_device* const device = program->device;
  gpusim_offload_unload(device, program->number);
  for (unsigned i = 0; i < program->self.range_count; ++i) {
    gpusim_offload_detach(device, &program->self.ranges[i]);
  }
  free(program->self.ranges);
  free(program->debug);
  free(program);
  gpusim_offload_device_release(device);
  return GPUSIM_OK;
}

int gpusim_program_symbol(gpusim_program* program, const char* name, uint64_t* device_address,
                          uint64_t* size_bytes) {
  if (program == NULL || name == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_program_symbol: an argument is NULL");
  }
  if (strlen(name) >= GPUSIM_REQUEST_TEXT) {
    return fail(GPUSIM_NOT_FOUND, "a symbol of %zu characters: at most %d are looked for",
                strlen(name), GPUSIM_REQUEST_TEXT - 1);
  }
  uint64_t address = 0;
  uint64_t size = 0;
  const int status = PORT->symbol(program->device->port, program->number, name, &address, &size);
  if (status != GPUSIM_OK) return status;
  if (device_address != NULL) *device_address = address;
  if (size_bytes != NULL) *size_bytes = size;
  return GPUSIM_OK;
}
