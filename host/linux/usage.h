// What processes used of the host's resources, as struct rusage tells it.
#pragma once
#include <sys/resource.h>

#include <array>
#include <cstdint>

#include "host/linux/timers.h"

namespace gpusim::host {

/// Plain memory: it lies in what processes share.
struct Usage {
  CpuTime cpu;
  int64_t most_resident_kib = 0;
  // ru_ixrss and all that follows it: page faults, blocks, messages, switches of context.
  std::array<int64_t, 13> counts{};

  /// A process's and what it waited for: sums, and the largest resident set.
  Usage& operator+=(const Usage& other);
  /// In the order of struct rusage, times in seconds and microseconds.
  std::array<int64_t, 18> longs() const;
};

Usage usage_of(const rusage& host);

}  // namespace gpusim::host
