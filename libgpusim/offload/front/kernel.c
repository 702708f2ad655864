// SPDX-License-Identifier: MIT
// Kernels and their arguments.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int new_kernel(gpusim_program* program, uint64_t function, gpusim_kernel** result) {
  gpusim_kernel* const kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL) return fail(GPUSIM_OUT_OF_MEMORY, "a kernel: out of memory");
  atomic_init(&kernel->references, 1);
  kernel->program = gpusim_offload_program_retain(program);
  kernel->function = function;
  *result = kernel;
  return GPUSIM_OK;
}

int gpusim_kernel_from_name(gpusim_program* program, const char* name, gpusim_kernel** result) {
  if (result != NULL) *result = NULL;
  if (program == NULL || name == NULL || result == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_kernel_from_name: an argument is NULL");
  }
  uint64_t address = 0;
  const int status = gpusim_program_symbol(program, name, &address, NULL);
  return status != GPUSIM_OK ? status : new_kernel(program, address, result);
}

int gpusim_kernel_from_function(gpusim_program* program, const void* function,
                                gpusim_kernel** result) {
  if (result != NULL) *result = NULL;
  if (program == NULL || function == NULL || result == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_kernel_from_function: an argument is NULL");
  }
  if (!program->is_self) {
    return fail(
        GPUSIM_INVALID_ARGUMENT,
        "gpusim_kernel_from_function: the program is not from gpusim_program_from_self; use "
        "gpusim_kernel_from_name");
  }
  const uint64_t address = (uint64_t)(uintptr_t)function;
  for (unsigned i = 0; i < program->self.code_count; ++i) {
    if (program->self.code[i].first <= address && address < program->self.code[i].last) {
      return new_kernel(program, address, result);
    }
  }
  return fail(GPUSIM_NOT_FOUND,
              "gpusim_kernel_from_function: %p is not in the code of this executable (functions of "
              "shared libraries can't be kernels)",
              function);
}

int gpusim_kernel_release(gpusim_kernel* kernel) {
  if (kernel == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_kernel_release: NULL");
  if (atomic_fetch_sub_explicit(&kernel->references, 1, memory_order_acq_rel) != 1) {
    return GPUSIM_OK;
  }
  for (unsigned i = 0; i < kernel->parameter_count; ++i) {
    if (kernel->parameters[i].buffer != NULL) gpusim_buffer_release(kernel->parameters[i].buffer);
  }
  gpusim_program_release(kernel->program);
  free(kernel);
  return GPUSIM_OK;
}

// Puts an argument in its place; takes over the reference to `buffer`.
static int set(gpusim_kernel* kernel, unsigned index, bool is_float, int kind, uint64_t value,
               uint64_t step, gpusim_buffer* buffer, uint32_t table_count) {
  const char* problem = NULL;
  unsigned same_kind = 1;
  if (kernel == NULL) {
    problem = "the kernel is NULL";
  } else if (index >= GPUSIM_MOST_ARGUMENTS) {
    problem = "arguments are numbered from 0 to 15";
  } else {
    for (unsigned i = 0; i < kernel->parameter_count; ++i) {
      const struct gpusim_offload_parameter* const p = &kernel->parameters[i];
      if (i != index && p->is_set && (p->argument.is_float != 0) == is_float) ++same_kind;
    }
    if (same_kind > kMostKinds) {
      problem = is_float ? "at most eight floating-point arguments"
                         : "at most eight arguments that are integers or pointers";
    }
  }
  if (problem != NULL) {
    if (buffer != NULL) gpusim_buffer_release(buffer);
    return fail(GPUSIM_INVALID_ARGUMENT, "setting argument %u: %s", index, problem);
  }
  struct gpusim_offload_parameter* const p = &kernel->parameters[index];
  gpusim_buffer* const old = p->buffer;
  memset(p, 0, sizeof *p);
  p->is_set = true;
  p->argument.kind = (gpusim_u8)kind;
  p->argument.is_float = is_float;
  p->argument.value = value;
  p->argument.step = step;
  p->buffer = buffer;
  p->table_count = table_count;
  if (index >= kernel->parameter_count) kernel->parameter_count = index + 1;
  if (old != NULL) gpusim_buffer_release(old);
  return GPUSIM_OK;
}

int gpusim_kernel_set_u64(gpusim_kernel* kernel, unsigned index, uint64_t value) {
  return set(kernel, index, false, GPUSIM_ARGUMENT_VALUE, value, 0, NULL, 0);
}

int gpusim_kernel_set_i64(gpusim_kernel* kernel, unsigned index, int64_t value) {
  return set(kernel, index, false, GPUSIM_ARGUMENT_VALUE, (uint64_t)value, 0, NULL, 0);
}

int gpusim_kernel_set_float(gpusim_kernel* kernel, unsigned index, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return set(kernel, index, true, GPUSIM_ARGUMENT_VALUE, bits, 0, NULL, 0);
}

int gpusim_kernel_set_double(gpusim_kernel* kernel, unsigned index, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return set(kernel, index, true, GPUSIM_ARGUMENT_VALUE, bits, 0, NULL, 0);
}

int gpusim_kernel_set_buffer(gpusim_kernel* kernel, unsigned index, gpusim_buffer* buffer,
                             size_t offset_bytes) {
  if (kernel == NULL || buffer == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_kernel_set_buffer: an argument is NULL");
  }
  if (buffer->device != kernel->program->device) {
    return fail(GPUSIM_INVALID_ARGUMENT,
                "gpusim_kernel_set_buffer: the buffer belongs to another device than the kernel");
  }
  if (gpusim_offload_check_range(buffer, offset_bytes, 0) != GPUSIM_OK) {
    return GPUSIM_INVALID_ARGUMENT;
  }
  return set(kernel, index, false, GPUSIM_ARGUMENT_VALUE, buffer->device_address + offset_bytes, 0,
             gpusim_offload_buffer_retain(buffer), 0);
}

int gpusim_kernel_set_core_id(gpusim_kernel* kernel, unsigned index) {
  return set(kernel, index, false, GPUSIM_ARGUMENT_AFFINE, 0, 1, NULL, 0);
}

int gpusim_kernel_set_core_count(gpusim_kernel* kernel, unsigned index) {
  return set(kernel, index, false, GPUSIM_ARGUMENT_CORES, 0, 0, NULL, 0);
}

int gpusim_kernel_set_affine(gpusim_kernel* kernel, unsigned index, uint64_t base, uint64_t step) {
  return set(kernel, index, false, GPUSIM_ARGUMENT_AFFINE, base, step, NULL, 0);
}

static int set_table(gpusim_kernel* kernel, unsigned index, bool is_float, const void* values,
                     uint32_t count) {
  if (kernel == NULL || values == NULL || count == 0) {
    return fail(GPUSIM_INVALID_ARGUMENT, "setting argument %u: no values", index);
  }
  const size_t size_bytes = (size_t)count * sizeof(uint64_t);
  struct gpusim_offload_parameter* const p =
      index < GPUSIM_MOST_ARGUMENTS ? &kernel->parameters[index] : NULL;
  // The table that is there, if no enqueued command uses it.
  if (p != NULL && p->table_count != 0 && (p->argument.is_float != 0) == is_float &&
      p->buffer->size_bytes >= size_bytes && atomic_load(&p->buffer->references) == 1) {
    memcpy(p->buffer->pointer, values, size_bytes);
    p->table_count = count;
    return GPUSIM_OK;
  }
  gpusim_buffer* table;
  const int status = gpusim_buffer_create(kernel->program->device, 0, size_bytes, NULL, &table);
  if (status != GPUSIM_OK) return status;
  memcpy(table->pointer, values, size_bytes);
  return set(kernel, index, is_float, GPUSIM_ARGUMENT_PER_CORE, table->device_address, 0, table,
             count);
}

int gpusim_kernel_set_per_core_u64(gpusim_kernel* kernel, unsigned index, const uint64_t* values,
                                   uint32_t count) {
  return set_table(kernel, index, false, values, count);
}

int gpusim_kernel_set_per_core_double(gpusim_kernel* kernel, unsigned index, const double* values,
                                      uint32_t count) {
  return set_table(kernel, index, true, values, count);
}

int gpusim_kernel_set_limits(gpusim_kernel* kernel, const gpusim_limits* limits) {
  if (kernel == NULL || limits == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_kernel_set_limits: an argument is NULL");
  }
  if (!(limits->seconds >= 0)) {
    return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_kernel_set_limits: %g seconds", limits->seconds);
  }
  kernel->limits = *limits;
  return GPUSIM_OK;
}
