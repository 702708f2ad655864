// Copies and sets as work for streams, for the runtime's and the driver's functions.
#pragma once
#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {

// A box of bytes: `width` bytes in a row, rows `pitch` apart, slices `slice` apart.
struct Box {
  char* to;
  size_t to_pitch, to_slice;
  const char* from;
  size_t from_pitch, from_slice;
  size_t width, height = 1, depth = 1;
};

// From the first byte of slices of rows to a place in them. Throws Refusal where that is no number.
size_t offset_of(const Pos& at, size_t pitch, size_t slice);
// What cudaMemcpy3D copies, between pitched memory and arrays. Throws Refusal.
Box box_of(const Memcpy3DParms& p);

// Checks the device's side against the allocations, submits, and waits where `is_waiting`, or
// where memory takes part that is not pinned: the program may change that at once.
void copy(const Box& box, CopyKind kind, void* stream, bool is_waiting);
void copy(void* to, const void* from, size_t size_bytes, CopyKind kind, void* stream,
          bool is_waiting);
// `element_bytes` 1, 2 or 4; `width` in elements.
void set(void* to, size_t pitch, uint32_t value, size_t element_bytes, size_t width, size_t height,
         void* stream, bool is_waiting);

// The same as nodes of graphs, which nobody waits for.
Node copy_node(const Box& box, CopyKind kind);
Node set_node(void* to, size_t pitch, uint32_t value, size_t element_bytes, size_t width,
              size_t height);

void* allocate(size_t size_bytes, MemoryType type, unsigned flags = 0);
// Waits for all work first. Throws Refusal unless a block of one of those types begins there.
void release(void* address, bool is_host);
// Throws Refusal unless the block can be freed so, and says why with --check. `by`: the call.
void check_release(const void* address, bool is_host, const std::string& by);

}  // namespace gpusim::cuda_api
