#include "device_sim/simd/gear.h"

#include <algorithm>

namespace gpusim::simd {

int64_t Gear::gain(uint64_t instructions, uint64_t steps) const {
  const auto ran = static_cast<int64_t>(instructions);
  const int64_t saved = ran * (step_cost_.few - step_cost_.all) / lanes_;
  return ran + saved - static_cast<int64_t>(steps) * step_cost_.few;
}

bool Gear::loses(uint64_t instructions, uint64_t steps, const AccessCost& accesses) {
  accesses_ += accesses;
  if (accesses_.steps > kMostSampled) {
    accesses_.steps /= 2;
    accesses_.cost /= 2;
  }
  const uint64_t of_accesses =
      accesses_.steps == 0 ? 0 : steps * accesses_.cost / accesses_.steps;
  loss_ = std::max(loss_ - gain(instructions, steps) + static_cast<int64_t>(of_accesses), -price_);
  if (loss_ == -price_) {
    on_trial_ = false;
    pause_ = first_pause();
  }
  // Who was only tried has not paid for it yet.
  if (loss_ < (on_trial_ ? price_ / 4 : price_)) return false;
  if (on_trial_) pause_ = std::min(kLonger * pause_, kLongestPause * price_);
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
         apart_ >= 0 && apart_ < pause_ && accesses_.steps <= kMostSampled &&
         accesses_.cost <= kMostSampled * kHighestCost;
}

bool Gear::tries(uint64_t instructions, uint64_t cores) {
  if (gain(cores, 1) < 0) return false;
  apart_ += static_cast<int64_t>(instructions);
  if (apart_ < pause_) return false;
  try_now();
  return true;
}

void Gear::try_now() {
  loss_ = apart_ = 0;
  accesses_ = {};
  on_trial_ = true;
}

}  // namespace gpusim::simd
