// SPDX-License-Identifier: MIT
// What a program's debug information (DWARF 4 or 5) says of a function's parameters.
#ifndef GPUSIM_OFFLOAD_SIGNATURE_H
#define GPUSIM_OFFLOAD_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpusim_offload_type {
  kTypeUnknown,
  kTypeInteger,  // also pointers, references, enumerations
  kTypeFloat,
  kTypeDouble,
  kTypeStructure,  // or union
  kTypeFloats,     // structure of nothing but 1 to 4 floats
  kTypeDoubles,    // likewise
};

enum { kMostSignature = 16, kNameBytes = 48 };

struct gpusim_offload_signature {
  bool is_known;
  bool is_open;    // takes any number: nothing is known of further ones
  unsigned count;  // may exceed kMostSignature, which are described
  char name[kNameBytes];
  struct {
    enum gpusim_offload_type type;
    uint64_t size_bytes;  // of structures
    char name[kNameBytes];
  } parameters[kMostSignature];
};

// The debug sections of an ELF file, copied; NULL if it has none that are understood. free() it.
struct gpusim_offload_debug;
struct gpusim_offload_debug* gpusim_offload_debug_read(const void* bytes, size_t size_bytes);
// Of the function that begins at `address`. Whatever the bytes are, nothing worse than an unknown
// signature comes of it.
void gpusim_offload_find_signature(const struct gpusim_offload_debug* debug, uint64_t address,
                                   struct gpusim_offload_signature* signature);

#endif  // GPUSIM_OFFLOAD_SIGNATURE_H
