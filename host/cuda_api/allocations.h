// The memory that programs have allocated or registered: all of it is this process's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "host/cuda_api/cuda_types.h"

namespace gpusim::cuda_api {

struct Block {
  char* address = nullptr;
  size_t size_bytes = 0;
  MemoryType type = kDeviceMemory;
  unsigned flags = 0;
  bool is_registered = false;  // the program's memory, or a module's variable: not ours to free
  bool is_of_graph = false;    // its addresses stay the graph's
  std::string origin;          // "allocated by cudaMalloc number 3"
};
const char* name_of(MemoryType type);
// "device memory of 64 bytes at 0x7f... (allocated by cudaMalloc number 3)"
std::string text_of(const Block& block);

class Allocations {
 public:
  // What a chip has, or what this machine can give if that is less.
  void limit(uint64_t most_bytes) { most_bytes_ = most_bytes; }
  // What was freed is remembered, and its addresses are not used again (but for the oldest of
  // very many).
  void remember_freed() { remembers_freed_ = true; }
  // From now on what the device's memory holds when it is freed goes into a digest.
  void begin_digest() { has_digest_ = true; }
  // Of that, and of what is there now.
  uint64_t digest() const;
  // Zeroed, on pages of its own. Nothing: there is not enough.
  std::optional<Block> allocate(size_t size_bytes, MemoryType type, std::string origin,
                                unsigned flags = 0);
  // Addresses for a block of a graph, which is not there yet. Null: there are none.
  static char* reserve_for_graph(size_t size_bytes);
  // False: there is not enough memory, or the block is there already.
  bool allocate_of_graph(char* address, size_t size_bytes, std::string origin);
  // False: overlaps what is there.
  bool add(void* address, size_t size_bytes, MemoryType type, std::string origin,
           unsigned flags = 0);
  // The block that begins at `address` goes; nothing: there is none.
  // `by`, of what is remembered: "freed by cudaFree number 2".
  std::optional<Block> remove(const void* address, const std::string& by = {});
  // Where nothing is now: what was there. Its origin says by what it was freed.
  std::optional<Block> find_freed(const void* address) const;
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
  void release(const Block& block, const std::string& by);
  void give_up(const Freed& freed);
  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
  // Small blocks rest before they are used again: kernels that still read them are caught.
  std::deque<Freed> resting_;
  uint64_t large_blocks_ = 0;  // ever made
  uint64_t resting_bytes_ = 0, used_bytes_ = 0, most_bytes_ = ~uint64_t{0};
  bool remembers_freed_ = false, has_digest_ = false;
  uint64_t digest_ = 0;
  std::deque<Freed> kept_;  // addresses without memory
  std::map<uintptr_t, Block> freed_;
};

// Bytes of memory that this machine can give now.
uint64_t available_bytes();

}  // namespace gpusim::cuda_api
