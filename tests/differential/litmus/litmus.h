// What generate.py writes about the tests, for litmus.c.
#ifndef LITMUS_H
#define LITMUS_H

#include <stdint.h>

enum { kMaxThreads = 4, kMaxLocations = 4, kMaxObserved = 16, kSizes = 5, kSameSize = 255 };

// One thread's instructions once. Results go to out, out + plane, out + 2 * plane ...
typedef void body_fn(char* a, char* b, char* c, char* d, uint64_t random, uint64_t* out,
                     uint64_t plane_bytes);

typedef struct {
  body_fn* body[kSizes][2];  // by log2 of the size; [1]: with delays between the instructions
  uint8_t location[kMaxLocations];  // of a, b, c, d
} thread_t;

typedef struct {
  int8_t thread;   // -1: a final value
  uint8_t plane;   // which result; or the location
  uint8_t offset;  // final value: bytes from the location's start
  uint8_t small;   // a status: not repeated in every byte
  uint8_t log2_size;  // of the value; kSameSize: as the test's accesses
} observed_t;

typedef struct {
  const char* name;
  uint8_t threads, locations, sizes;  // sizes: a bit per log2
  uint8_t initial[kMaxLocations];
  thread_t thread[kMaxThreads];
  uint32_t observed_count, allowed_count;
  observed_t observed[kMaxObserved];
  const uint64_t* allowed;  // outcomes; a nibble per observed value
} test_t;

extern const test_t litmus_tests[];
extern const uint32_t litmus_test_count;

#endif
