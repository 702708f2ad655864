#include "host/cuda_api/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "host/cuda_api/arrays.h"

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

// Throws Refusal unless the device may use those bytes, and says why with --check.
void check_side(const char* address, size_t size_bytes, bool is_written) {
  Runtime& r = runtime();
  if (size_bytes == 0 || r.has_memory(address, size_bytes)) return;
  if (r.checks.memory) {
    const auto block = r.memory.find(address), freed = r.memory.find_freed(address);
    const std::string what =
        block   ? fmt::format("only {} bytes are there, in {}",
                              block->size_bytes - static_cast<size_t>(address - block->address),
                              text_of(*block))
        : freed ? "there was " + text_of(*freed)
                : "no memory of the device is there";
    r.report.add_misuse(
        block || !freed ? "out of bounds" : "use after free", address,
        fmt::format("{} {} {} bytes at {}: {}", called_function(), is_written ? "writes" : "reads",
                    size_bytes, static_cast<const void*>(address), what));
  }
  refuse(kInvalidValue);
}

void check(const Box& box, CopyKind kind) {
  require(kind >= kHostToHost && kind <= kCopyDefault, kInvalidMemcpyDirection);
  if (box.width == 0 || box.height == 0 || box.depth == 0) return;
  require(box.to != nullptr && box.from != nullptr);
  if (box.height > 1)
    require(box.width <= box.to_pitch && box.width <= box.from_pitch, kInvalidPitchValue);
  const size_t to = span_bytes(box.width, box.to_pitch, box.height, box.to_slice, box.depth);
  const size_t from = span_bytes(box.width, box.from_pitch, box.height, box.from_slice, box.depth);
  // A block that it begins in must hold all of it, whatever direction was named.
  const Runtime& r = runtime();
  if (kind == kHostToDevice || kind == kDeviceToDevice || r.memory.find(box.to))
    check_side(box.to, to, true);
  if (kind == kDeviceToHost || kind == kDeviceToDevice || r.memory.find(box.from))
    check_side(box.from, from, false);
}

// Bytes in a block of ours, if they are. Graphs may run when it has gone.
class BytesOfBlock {
 public:
  BytesOfBlock(const char* address, size_t size_bytes) : address_(address) {
    const std::optional<Block> block = runtime().memory.find(address);
    // Registered memory stays the host's.
    const bool may_go = block && (block->type != kHostMemory || !block->is_registered);
    if (may_go) size_bytes_ = size_bytes;
  }
  // Throws Refusal.
  void check_is_there() const {
    if (size_bytes_ == 0 || runtime().memory.has(address_, size_bytes_)) return;
    say(
        fmt::format("a graph cannot run: memory at {}, {} bytes, that one of its nodes copies or "
                    "sets was freed",
                    static_cast<const void*>(address_), size_bytes_));
    refuse(kIllegalAddress);
  }

 private:
  const char* address_;
  size_t size_bytes_ = 0;  // 0: it is in none
};

// As profilers name it. What cudaMemcpyDefault means, the addresses tell.
const char* direction(const Box& box, CopyKind kind) {
  const auto is_device = [](const char* address) {
    const std::optional<Block> block = runtime().memory.find(address);
    return block ? block->type != kHostMemory : runtime().graph_memory(address) != nullptr;
  };
  const bool to_device =
      kind == kCopyDefault ? is_device(box.to) : kind == kHostToDevice || kind == kDeviceToDevice;
  const bool from_device =
      kind == kCopyDefault ? is_device(box.from) : kind == kDeviceToHost || kind == kDeviceToDevice;
  return to_device ? (from_device ? "DtoD" : "HtoD") : (from_device ? "DtoH" : "HtoH");
}

void do_copy(const Box& box) {
  for (size_t z = 0; z < box.depth; ++z)
    for (size_t y = 0; y < box.height; ++y)
      std::memmove(box.to + z * box.to_slice + y * box.to_pitch,
                   box.from + z * box.from_slice + y * box.from_pitch, box.width);
}

// Tells the engine what work of the queue wrote, row by row, where it wants to know.
template <typename F>
void note_rows(size_t height, size_t depth, F&& row) {
  Runtime& r = runtime();
  if (!r.checks.uninitialised) return;
  r.with_engine([&](KernelEngine& engine) {
    for (size_t z = 0; z < depth; ++z)
      for (size_t y = 0; y < height; ++y) row(engine, y, z);
  });
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

size_t offset_of(const Pos& at, size_t pitch, size_t slice) {
  size_t rows = 0, slices = 0, sum = 0;
  require(!__builtin_mul_overflow(pitch, at.y, &rows) &&
          !__builtin_mul_overflow(slice, at.z, &slices) &&
          !__builtin_add_overflow(rows, slices, &sum) && !__builtin_add_overflow(sum, at.x, &sum));
  return sum;
}

Box box_of(const Memcpy3DParms& p) {
  // Each side is an array or memory, not both. Where an array takes part, widths count its
  // elements.
  require((p.src_array == nullptr) != (p.src_ptr.ptr == nullptr));
  require((p.dst_array == nullptr) != (p.dst_ptr.ptr == nullptr));
  const auto array_of = [](void* handle) {
    return handle == nullptr ? nullptr : &Arrays::instance().array(handle);
  };
  const Array *const from = array_of(p.src_array), *const to = array_of(p.dst_array);
  const auto bytes = [](const Array* a) { return a == nullptr ? size_t{1} : a->format.bytes(); };
  require(from == nullptr || to == nullptr || bytes(from) == bytes(to));
  Extent size = p.extent;
  require(!__builtin_mul_overflow(size.width, std::max(bytes(from), bytes(to)), &size.width));
  struct Rows {
    char* first;
    size_t pitch, slice;
  };
  const auto rows_of = [&](const Array* a, const PitchedPtr& memory, Pos at) -> Rows {
    if (a != nullptr) {
      require(!__builtin_mul_overflow(at.x, size_t{a->format.bytes()}, &at.x));
      return {a->at(at, size), a->row_bytes(), a->slice_bytes()};
    }
    size_t slice = 0;
    require(!__builtin_mul_overflow(memory.pitch, memory.ysize, &slice));
    return {static_cast<char*>(memory.ptr) + offset_of(at, memory.pitch, slice), memory.pitch,
            slice};
  };
  const Rows source = rows_of(from, p.src_ptr, p.src_pos);
  const Rows target = rows_of(to, p.dst_ptr, p.dst_pos);
  return {.to = target.first,
          .to_pitch = target.pitch,
          .to_slice = target.slice,
          .from = source.first,
          .from_pitch = source.pitch,
          .from_slice = source.slice,
          .width = size.width,
          .height = size.height,
          .depth = size.depth};
}

Node copy_node(const Box& box, CopyKind kind) {
  check(box, kind);
  const bool is_empty = box.width == 0 || box.height == 0 || box.depth == 0;
  const auto bytes_at = [&](const char* address, size_t pitch, size_t slice) {
    return BytesOfBlock(address,
                        is_empty ? 0 : span_bytes(box.width, pitch, box.height, slice, box.depth));
  };
  const BytesOfBlock to = bytes_at(box.to, box.to_pitch, box.to_slice),
                     from = bytes_at(box.from, box.from_pitch, box.from_slice);
  return {.type = NodeType::kCopy,
          .work =
              [box, to, from] {
                to.check_is_there();
                from.check_is_there();
                do_copy(box);
                note_rows(box.height, box.depth, [&](KernelEngine& engine, size_t y, size_t z) {
                  engine.copy_written(box.to + z * box.to_slice + y * box.to_pitch,
                                      box.from + z * box.from_slice + y * box.from_pitch,
                                      box.width);
                });
              },
          .size_bytes = box.width * box.height * box.depth,
          .direction = direction(box, kind)};
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
    check_side(static_cast<const char*>(to), span_bytes(row, pitch, height, 0, 1), true);
  }
  char* const begin = static_cast<char*>(to);
  const BytesOfBlock bytes(begin,
                           width == 0 || height == 0 ? 0 : span_bytes(row, pitch, height, 0, 1));
  return {.type = NodeType::kSet,
          .work =
              [=] {
                bytes.check_is_there();
                for (size_t y = 0; y < height; ++y) {
                  char* const line = begin + y * pitch;
                  if (element_bytes == 1) std::memset(line, static_cast<int>(value & 0xff), width);
                  if (element_bytes == 2) fill<uint16_t>(line, width, value);
                  if (element_bytes == 4) fill<uint32_t>(line, width, value);
                }
                note_rows(height, 1, [&](KernelEngine& engine, size_t y, size_t) {
                  engine.mark_written(begin + y * pitch, row);
                });
              },
          .size_bytes = row * height};
}

void set(void* to, size_t pitch, uint32_t value, size_t element_bytes, size_t width, size_t height,
         void* stream, bool is_waiting) {
  submit(stream, set_node(to, pitch, value, element_bytes, width, height), is_waiting);
}

void* allocate(size_t size_bytes, MemoryType type, unsigned flags) {
  const std::string origin = "allocated by " + numbered_call();
  if (size_bytes == 0) return nullptr;
  Runtime& r = runtime();
  r.chip();  // which says how much there is
  const std::optional<Block> block = r.memory.allocate(size_bytes, type, origin, flags);
  require(block.has_value(), kMemoryAllocation);
  // The host may write to all but device memory without a call.
  r.engine_for_memory().add_memory(block->address, size_bytes, name_of(type), origin,
                                   type == kDeviceMemory);
  return block->address;
}

void check_release(const void* address, bool is_host, const std::string& by) {
  Runtime& r = runtime();
  const std::optional<Block> block = r.memory.find(address);
  const bool is_type = block && (block->type == kHostMemory) == is_host;
  if (block && block->address == address && !block->is_registered && is_type) return;
  if (r.checks.memory) {
    const std::optional<Block> freed = r.memory.find_freed(address);
    const bool is_double = !block && freed && freed->address == address;
    const std::string what =
        is_double                   ? "there was " + text_of(*freed)
        : freed && !block           ? "that is within what was " + text_of(*freed)
        : !block                    ? "nothing was allocated there"
        : block->address != address ? "that is within " + text_of(*block)
        : block->is_registered      ? "that is memory of the program, " + text_of(*block)
        : is_host                   ? fmt::format("that is {}, not host memory", text_of(*block))
                  : fmt::format("that is {}: a function for host memory frees it", text_of(*block));
    r.report.add_misuse(is_double ? "double free" : "invalid free", address,
                        fmt::format("{} of {}: {}", by, address, what));
  }
  refuse(kInvalidValue);
}

void release(void* address, bool is_host) {
  const std::string by = numbered_call();
  if (address == nullptr) return;
  Runtime& r = runtime();
  r.leave_graph(address);
  check_release(address, is_host, by);
  r.synchronize_device();
  r.engine_for_memory().remove_memory(address, "freed by " + by);
  if (r.memory.remove(address, "freed by " + by)) return;
  check_release(address, is_host, by);  // a stream has freed it meanwhile
}

}  // namespace gpusim::cuda_api
