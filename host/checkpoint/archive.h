// What checkpoints are described to, and how points in time are: a checkpoint stops the clock.
#pragma once
#include <chrono>
#include <cstdint>

#include "device_sim/base/archive.h"
#include "host/checkpoint/chunk_file.h"

namespace gpusim::host {

using Saving = ArchiveWriter<ChunkWriter>;
using Loading = ArchiveReader<ChunkReader>;

// Of one list: what readers take for possible.
inline constexpr uint64_t kMostEntries = uint64_t{1} << 24;

// A point on this process's clock, as the time left until then.
template <class Archive>
void describe_deadline(Archive& a, std::chrono::steady_clock::time_point& t,
                       std::chrono::steady_clock::time_point now) {
  int64_t left = std::chrono::nanoseconds(t - now).count();
  a.value(left);
  constexpr int64_t kMost = int64_t{1} << 62;
  a.require(left > -kMost && left < kMost, "a point in time");
  if constexpr (Archive::kReading) t = now + std::chrono::nanoseconds(left);
}

template <class Archive>
void describe_duration(Archive& a, std::chrono::nanoseconds& d) {
  int64_t count = d.count();
  a.value(count);
  a.require(count >= 0 && count < int64_t{1} << 62, "a duration");
  d = std::chrono::nanoseconds(count);
}

}  // namespace gpusim::host
