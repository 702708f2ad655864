#include "host/cuda_api/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gpusim::cuda_api {
namespace {

// From the first byte of a box to behind its last. Throws Refusal where that is no number.
size_t span_bytes(size_t width, size_t pitch, size_t height, size_t slice, size_t depth) {
  size_t rows = 0, slices = 0, sum = 0;
  require(!__builtin_mul_overflow(pitch, height - 1, &rows) &&
          !__builtin_mul_overflow(slice, depth - 1, &slices) &&
          !__builtin_add_overflow(rows, slices, &sum) && !__builtin_add_overflow(sum, width, &sum));
  return sum;
}

void check(const Box& box, CopyKind kind) {
  require(kind >= kHostToHost && kind <= kCopyDefault, kInvalidMemcpyDirection);
  if (box.width == 0 || box.height == 0 || box.depth == 0) return;
  require(box.to != nullptr && box.from != nullptr);
  if (box.height > 1)
    require(box.width <= box.to_pitch && box.width <= box.from_pitch, kInvalidPitchValue);
  const size_t to = span_bytes(box.width, box.to_pitch, box.height, box.to_slice, box.depth);
  const size_t from = span_bytes(box.width, box.from_pitch, box.height, box.from_slice, box.depth);
  const Runtime& r = runtime();
  if (kind == kHostToDevice || kind == kDeviceToDevice) r.check_device(box.to, to);
  if (kind == kDeviceToHost || kind == kDeviceToDevice) r.check_device(box.from, from);
  // A block that it begins in must hold all of it, whatever direction was named.
  for (const auto& [address, size] : {std::pair<const char*, size_t>{box.to, to}, {box.from, from}})
    if (r.memory.find(address)) r.check_device(address, size);
}

void do_copy(const Box& box) {
  for (size_t z = 0; z < box.depth; ++z)
    for (size_t y = 0; y < box.height; ++y)
      std::memmove(box.to + z * box.to_slice + y * box.to_pitch,
                   box.from + z * box.from_slice + y * box.from_pitch, box.width);
}

template <typename T>
void fill(char* row, size_t width, uint32_t value) {
  // Rows need not be aligned for the program's type of element.
  const T element = static_cast<T>(value);
  for (size_t x = 0; x < width; ++x) std::memcpy(row + x * sizeof(T), &element, sizeof(T));
}

void submit(void* stream, Node node, bool is_waiting) {
  Runtime& r = runtime();
  r.submit(stream, std::move(node));
  if (!is_waiting) return;
  uint64_t last = 0;
  {
    const std::lock_guard lock(r.mutex);
    Stream& s = r.stream(stream);
    if (s.capture != nullptr) return;
    last = s.last;
  }
  r.wait_for(last);
}

}  // namespace

Box box_of(const Memcpy3DParms& p) {
  require(p.src_array == nullptr && p.dst_array == nullptr, kNotSupported);
  const auto at = [](const PitchedPtr& base, const Pos& pos) {
    return static_cast<char*>(base.ptr) + pos.z * base.pitch * base.ysize + pos.y * base.pitch +
           pos.x;
  };
  return {.to = at(p.dst_ptr, p.dst_pos),
          .to_pitch = p.dst_ptr.pitch,
          .to_slice = p.dst_ptr.pitch * p.dst_ptr.ysize,
          .from = at(p.src_ptr, p.src_pos),
          .from_pitch = p.src_ptr.pitch,
          .from_slice = p.src_ptr.pitch * p.src_ptr.ysize,
          .width = p.extent.width,
          .height = p.extent.height,
          .depth = p.extent.depth};
}

Node copy_node(const Box& box, CopyKind kind) {
  check(box, kind);
  return {.type = NodeType::kCopy, .work = [box] { do_copy(box); }};
}

void copy(const Box& box, CopyKind kind, void* stream, bool is_waiting) {
  Runtime& r = runtime();
  Node node = copy_node(box, kind);
  const bool is_pageable = !r.memory.find(box.to) || !r.memory.find(box.from);
  submit(stream, std::move(node), is_waiting || is_pageable);
}

void copy(void* to, const void* from, size_t size_bytes, CopyKind kind, void* stream,
          bool is_waiting) {
  copy(Box{.to = static_cast<char*>(to),
           .to_pitch = 0,
           .to_slice = 0,
           .from = static_cast<const char*>(from),
           .from_pitch = 0,
           .from_slice = 0,
           .width = size_bytes},
       kind, stream, is_waiting);
}

Node set_node(void* to, size_t pitch, uint32_t value, size_t element_bytes, size_t width,
              size_t height) {
  size_t row = 0;
  require(element_bytes == 1 || element_bytes == 2 || element_bytes == 4);
  require(!__builtin_mul_overflow(width, element_bytes, &row));
  if (width != 0 && height != 0) {
    if (height > 1) require(row <= pitch, kInvalidPitchValue);
    runtime().check_device(to, span_bytes(row, pitch, height, 0, 1));
  }
  char* const begin = static_cast<char*>(to);
  return {.type = NodeType::kSet, .work = [=] {
            for (size_t y = 0; y < height; ++y) {
              char* const line = begin + y * pitch;
              if (element_bytes == 1) std::memset(line, static_cast<int>(value & 0xff), width);
              if (element_bytes == 2) fill<uint16_t>(line, width, value);
              if (element_bytes == 4) fill<uint32_t>(line, width, value);
            }
          }};
}

void set(void* to, size_t pitch, uint32_t value, size_t element_bytes, size_t width, size_t height,
         void* stream, bool is_waiting) {
  submit(stream, set_node(to, pitch, value, element_bytes, width, height), is_waiting);
}

void* allocate(size_t size_bytes, MemoryType type, unsigned flags) {
  if (size_bytes == 0) return nullptr;
  Runtime& r = runtime();
  r.chip();  // which says how much there is
  const std::optional<Block> block = r.memory.allocate(size_bytes, type, flags);
  require(block.has_value(), kMemoryAllocation);
  static constexpr const char* kNames[] = {"", "host memory", "device memory", "managed memory"};
  r.engine_for_memory().add_memory(block->address, size_bytes,
                                   fmt::format("{} {}", kNames[type], block->number));
  return block->address;
}

void release(void* address, bool is_host) {
  if (address == nullptr) return;
  Runtime& r = runtime();
  const std::optional<Block> block = r.memory.find(address);
  require(block && block->address == address && !block->is_registered &&
          (block->type == kHostMemory) == is_host);
  r.synchronize_device();
  r.engine_for_memory().remove_memory(address);
  r.memory.remove(address);
}

}  // namespace gpusim::cuda_api
