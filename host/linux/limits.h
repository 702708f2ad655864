// Resource limits of one guest process.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "host/linux/guest_abi.h"

namespace gpusim::host {

class Limits {
 public:
  // Numbers of asm-generic/resource.h.
  enum Resource : int64_t {
    kCpu = 0,
    kFileSize = 1,
    kData = 2,
    kStack = 3,
    kCore = 4,
    kThreads = 6,
    kOpenFiles = 7,
    kAddressSpace = 9,
    kPendingSignals = 11,
    kCount = 16
  };
  static constexpr uint64_t kInfinite = ~uint64_t{0};

  // What a process starts with. `stack_size_bytes`: of its first thread.
  explicit Limits(uint64_t stack_size_bytes);

  GuestRlimit& operator[](int64_t resource) { return values_[static_cast<size_t>(resource)]; }
  const GuestRlimit& operator[](int64_t resource) const {
    return values_[static_cast<size_t>(resource)];
  }

 private:
  std::array<GuestRlimit, kCount> values_;
};

}  // namespace gpusim::host
