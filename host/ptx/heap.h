// The heap of device code: what malloc and free of kernels work on.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>

#include "host/ptx/memory.h"

namespace gpusim::ptx {

/// What reports call its memory.
inline constexpr const char* kHeapName = "the device's heap";

/// Threads of several machines may call at once. Blocks are aligned to 16 bytes.
class DeviceHeap {
 public:
  explicit DeviceHeap(uint64_t size_bytes);
  uint64_t address() const { return pages_.address(); }
  uint64_t size_bytes() const { return pages_.size_bytes(); }

  /// 0: there is no room.
  uint64_t allocate(uint64_t size_bytes);
  /// False: no block begins there.
  bool free(uint64_t address);

 private:
  Pages pages_;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_, used_;  // address to size
};

}  // namespace gpusim::ptx
