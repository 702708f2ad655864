#include "device_sim/simd/gear.h"

#include <algorithm>

namespace gpusim::simd {

bool Gear::loses(uint64_t instructions, uint64_t steps) {
  const auto gain = static_cast<int64_t>(instructions) - static_cast<int64_t>(steps) * step_cost_;
  loss_ = std::max(loss_ - gain, -price_);
  if (loss_ == -price_) {
    on_trial_ = false;
    pause_ = first_pause();
  }
  // Who was only tried has not paid for it yet.
  if (loss_ < (on_trial_ ? price_ / 4 : price_)) return false;
  if (on_trial_) pause_ = std::min(2 * pause_, kLongestPause * price_);
  loss_ = apart_ = 0;
  on_trial_ = false;
  return true;
}

void Gear::note_change(int64_t more) {
  price_ = std::clamp(least_price_ + more, price_, kHighestPrice);
  pause_ = std::max(pause_, first_pause());
}

bool Gear::is_sound() const {
  return price_ >= least_price_ && price_ <= kHighestPrice && loss_ >= -price_ &&
         loss_ < price_ && pause_ >= first_pause() && pause_ <= kLongestPause * price_ &&
         apart_ >= 0 && apart_ < pause_;
}

bool Gear::tries(uint64_t instructions, uint64_t cores) {
  if (static_cast<int64_t>(cores) < step_cost_) return false;
  apart_ += static_cast<int64_t>(instructions);
  if (apart_ < pause_) return false;
  loss_ = apart_ = 0;
  on_trial_ = true;
  return true;
}

}  // namespace gpusim::simd
