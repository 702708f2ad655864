// SPDX-License-Identifier: MIT
// Tests of libGPUSim's calls, in C, for both settings.
#ifndef GPUSIM_OFFLOAD_TEST_H
#define GPUSIM_OFFLOAD_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "libgpusim/offload/gpusim.h"

// What most tests need; made anew for each.
struct fixture {
  gpusim_device* device;
  gpusim_program* program;
  gpusim_queue* queue;
};

struct test {
  const char* name;
  void (*run)(struct fixture* f);
};

extern const struct test tests_of_calls[];
extern const struct test tests_of_queues[];
extern const struct test tests_of_programs[];
extern const struct test tests_of_launches[];

extern const char* open_options;
extern const char* kernels_file;  // natively
extern const char* program_file;  // natively: this program for the guest

// Ends the test with a message.
_Noreturn void fail_test(const char* file, int line, const char* what);
_Noreturn void skip_test(const char* why);

#define CHECK(condition)                                         \
  do {                                                           \
    if (!(condition)) fail_test(__FILE__, __LINE__, #condition); \
  } while (0)
// The status that a call has to return; for failures there must be a text.
#define EXPECT(status, call) expect(__FILE__, __LINE__, #call, (status), (call))
#define OK(call) expect(__FILE__, __LINE__, #call, GPUSIM_OK, (call))  // as it is written
void expect(const char* file, int line, const char* call, int wanted, int got);

gpusim_device* open_device(void);
gpusim_program* load_kernels(gpusim_device* device);
gpusim_kernel* kernel_of(gpusim_program* program, const char* name, const void* function);
#ifdef GPUSIM_NATIVE
#define KERNEL(program, function) kernel_of((program), #function, NULL)
#else
#define KERNEL(program, function) \
  kernel_of((program), #function, (const void*)(uintptr_t)(function))
#endif
gpusim_buffer* new_buffer(gpusim_device* device, size_t size_bytes);
// Runs to its end; returns the event's status.
int run_kernel(gpusim_queue* queue, gpusim_kernel* kernel, uint32_t cores);

#endif  // GPUSIM_OFFLOAD_TEST_H
