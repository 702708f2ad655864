// A program checks its own results: status 1 and a line for each that is wrong.
#pragma once
#include <cstdio>
#include <cstdlib>

inline int failures = 0;

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                          \
    }                                                                      \
  } while (0)

#define FINE(call)                                                       \
  do {                                                                   \
    const cudaError_t error = (call);                                    \
    if (error != cudaSuccess) {                                          \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(error));                           \
      ++failures;                                                        \
    }                                                                    \
  } while (0)

inline int finish() {
  std::puts(failures == 0 ? "all fine" : "FAILED");
  return failures == 0 ? 0 : 1;
}
