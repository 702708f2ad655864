#include "device_sim/simd/pace.h"

#include <algorithm>

namespace gpusim::simd {

void Pace::note(bool together, uint64_t instructions, uint64_t atomics,
                std::chrono::duration<double> time) {
  constexpr uint64_t kEnough = 1 << 14;  // instructions; less says little
  constexpr uint64_t kMany = 128;        // one atomic operation in so many instructions
  constexpr double kGain = 1.1;
  constexpr uint32_t kLongestWait = 128;
  if (instructions < kEnough) return;
  if (atomics * kMany < instructions) {
    *this = {};
    return;
  }
  const double speed = static_cast<double>(instructions) / time.count();
  if (together == together_) {
    last_speed_ = speed;
    if (wait_ > 0) --wait_;
    return;
  }
  if (speed > kGain * last_speed_) {
    together_ = together;
    last_speed_ = speed;
    next_wait_ = kFirstWait;
  }
  wait_ = next_wait_;
  next_wait_ = std::min(2 * next_wait_, kLongestWait);
}

}  // namespace gpusim::simd
