// Names of the same function for programs whose default stream is the thread's (`_ptsz`, `_ptds`,
// nvcc --default-stream per-thread). One queue keeps the order of all streams, so both are one.
#pragma once

#define GPUSIM_ALIAS(name, suffix) \
  extern "C" __attribute__((visibility("default"), alias(#name))) decltype(name) name##suffix;
