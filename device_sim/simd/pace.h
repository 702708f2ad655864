// Whether host threads are any use.
#pragma once
#include <chrono>
#include <cstdint>

namespace gpusim::simd {

// Cores that contend for a few words by atomic operations are faster on one thread. While there are
// many of these operations, a slice now and then is run the other way.
class Pace {
 public:
  // Whether the next slice is to run on several threads.
  bool together() const { return together_ == (wait_ != 0); }
  // After a slice that ran so. Instructions and atomic operations: of groups, not of cores; of
  // cores alone, whatever synchronises.
  void note(bool together, uint64_t instructions, uint64_t atomics,
            std::chrono::duration<double> time);

 private:
  static constexpr uint32_t kFirstWait = 16;
  bool together_ = true;
  double last_speed_ = 0;  // instructions per second of the last slice that was run so
  uint32_t wait_ = 1, next_wait_ = kFirstWait;  // slices until it is questioned
};

}  // namespace gpusim::simd
