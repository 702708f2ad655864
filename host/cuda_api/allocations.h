// The memory that programs have allocated or registered: all of it is this process's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "host/cuda_api/cuda_types.h"

namespace gpusim::cuda_api {

struct Block {
  char* address = nullptr;
  size_t size_bytes = 0;
  MemoryType type = kDeviceMemory;
  unsigned flags = 0;
  bool is_registered = false;  // the program's memory, or a module's variable: not ours to free
  uint64_t number = 0;         // in order of allocation
};

class Allocations {
 public:
  // What a chip has, or what this machine can give if that is less.
  void limit(uint64_t most_bytes) { most_bytes_ = most_bytes; }
  // Zeroed, on pages of its own. Nothing: there is not enough.
  std::optional<Block> allocate(size_t size_bytes, MemoryType type, unsigned flags = 0);
  // False: overlaps what is there.
  bool add(void* address, size_t size_bytes, MemoryType type, unsigned flags = 0);
  // The block that begins at `address` goes; nothing: there is none.
  std::optional<Block> remove(const void* address);
  // The block that has `address` in it.
  std::optional<Block> find(const void* address) const;
  // Whether `size_bytes` bytes from `address` on are in one block.
  bool has(const void* address, size_t size_bytes) const;
  // Device memory.
  uint64_t free_bytes() const;
  uint64_t total_bytes() const { return most_bytes_; }
  void clear();
  template <typename F>
  void for_each(F&& f) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, block] : blocks_) f(block);
  }

 private:
  struct Freed {
    char* address;
    size_t size_bytes;
  };
  void release(const Block& block);
  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
  // Small blocks rest before they are used again: kernels that still read them are caught.
  std::deque<Freed> resting_;
  uint64_t resting_bytes_ = 0, used_bytes_ = 0, most_bytes_ = ~uint64_t{0}, count_ = 0;
};

// Bytes of memory that this machine can give now.
uint64_t available_bytes();

}  // namespace gpusim::cuda_api
