// SPDX-License-Identifier: MIT
// Kernels.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int new_kernel(gpusim_program* program, uint64_t function, gpusim_kernel** result) {
  const int status = PORT->check(program->device->port, program->number, function);
  if (status != GPUSIM_OK) return status;
  gpusim_kernel* const kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL) return fail(GPUSIM_OUT_OF_MEMORY, "a kernel: out of memory");
  atomic_init(&kernel->references, 1);
  kernel->program = gpusim_offload_program_retain(program);
  kernel->function = function;
  gpusim_offload_find_signature(program->debug, function, &kernel->signature);
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
  gpusim_offload_parameters_release(&kernel->parameters);
  gpusim_program_release(kernel->program);
  free(kernel);
  return GPUSIM_OK;
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
