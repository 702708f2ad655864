// What tests can ask of our stand-in for libcuda.so.1 beside CUDA's own functions. A GPU that
// executes nothing but takes time and power as a model says, so what a measurement must find is
// known. It speaks the public driver interface only: NVIDIA's runtime library asks more of a driver
// (private tables) and refuses it, so programs of the runtime are linked with stub_runtime.cpp.
#pragma once
#include <cstddef>

extern "C" {

struct gpusim_stub_model {
  double idle_w;        // with a context
  double busy_w;        // added while anything runs: static power of active SMs
  double energy_scale;  // of all instructions
  double o0_scale;      // of instructions assembled at -O0
  int multiprocessors;
};
void gpusim_stub_set_model(const gpusim_stub_model* model);

// Time: CLOCK_MONOTONIC unless a test gives its own.
typedef double (*gpusim_stub_now)(void* user);
typedef void (*gpusim_stub_sleep)(void* user, double until);
// Each kernel and copy, when it is queued: it will run from `begin` to `end`.
typedef void (*gpusim_stub_work)(void* user, const char* name, double begin, double end,
                                 double watts);
void gpusim_stub_set_clock(gpusim_stub_now now, gpusim_stub_sleep sleep, gpusim_stub_work work,
                           void* user);

// Of one PTX statement ("add.s32 %ut, %ux, %uy"), for one thread, at -O3. J, and cycles of a
// multiprocessor.
double gpusim_stub_energy(const char* statement);
double gpusim_stub_cycles(const char* statement);
double gpusim_stub_clock_hz(void);

// How often `name` was called, and how many kernels and copies ran.
size_t gpusim_stub_launches(void);
}
