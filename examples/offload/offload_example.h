// What the offload examples share: a job that many cores do on the device and the program's own
// processor does as well, with equal results.
//
// A job is one block of memory without pointers: a header, inputs, outputs. A kernel gets its
// address and does the part of core `core` of `cores`; with 0 of 1 it is an ordinary function.
#ifndef GPUSIM_OFFLOAD_EXAMPLE_H
#define GPUSIM_OFFLOAD_EXAMPLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t cores;
  uint64_t size;  // what it means is the example's; 0: its default
  uint32_t repeat;
  const char* in;  // pictures
  const char* out;
  const char* open;     // options of gpusim_open
  const char* kernels;  // natively: the file with the kernels
  int on_device, on_cpu;
} example_options_t;

typedef struct {
  const char* name;
  uint64_t default_size;
  // Checks the size or reads the input. Returns the bytes of the job, 0 after a message.
  size_t (*plan)(example_options_t* options);
  void (*prepare)(void* job, const example_options_t* options);
  void (*kernel)(void* job, uint64_t core, uint64_t cores);
  const char* kernel_name;
  // Where the results are in the job.
  const void* (*results)(const void* job, size_t* size_bytes);
  // May be NULL. Returns 0, or -1 after a message.
  int (*save)(const void* job, const example_options_t* options);
} example_t;

// The exit status: 0 equal, 1 different, 2 errors.
int example_run(const example_t* example, int argc, char** argv);

// Between two steps of a kernel: all cores have done the first one.
#ifdef GPUSIM_NATIVE
static inline void example_barrier(uint64_t cores) { (void)cores; }  // one core
#else
#include "gpusim_guest.h"
static inline void example_barrier(uint64_t cores) {
  if (cores > 1) gpusim_barrier();
}
#endif

// Equal inputs, equal "random" numbers, in [-1, 1), exact in float: 24 bits.
static inline float example_random(uint32_t x) {
  x ^= x >> 16;
  x *= UINT32_C(0x9E3779B1);
  x ^= x >> 13;
  x *= UINT32_C(0xB5297A4D);
  x ^= x >> 16;
  return (float)((int32_t)(x >> 8) - (1 << 23)) * (1.0f / (1 << 23));
}

#endif  // GPUSIM_OFFLOAD_EXAMPLE_H
