#include "device_sim/simd/block_counter.h"

#include <utility>

namespace gpusim::simd {

void BlockCounter::resize(size_t blocks, bool counts_lanes) {
  counts_.resize(blocks);
  if (!counts_lanes) return;
  both_.resize(blocks);
  lanes_.resize(blocks);
}

void BlockCounter::note_steps(uint64_t steps) {
  if (!both_.empty() && (steps_ += steps) > kMostSteps) take_apart();
}

void BlockCounter::take_apart() {
  for (size_t b = 0; b < both_.size(); ++b) {
    counts_[b] += static_cast<uint32_t>(both_[b]);
    lanes_[b] += both_[b] >> 32;
    both_[b] = 0;
  }
  steps_ = 0;
}

void BlockCounter::take_over(BlockCounter& other) {
  other.take_apart();
  for (size_t b = 0; b < counts_.size(); ++b) counts_[b] += std::exchange(other.counts_[b], 0);
  for (size_t b = 0; b < lanes_.size(); ++b) lanes_[b] += std::exchange(other.lanes_[b], 0);
}

const std::vector<uint64_t>& BlockCounter::counts() {
  take_apart();
  return counts_;
}

const std::vector<uint64_t>& BlockCounter::lanes() {
  take_apart();
  return lanes_;
}

void BlockCounter::set(std::vector<uint64_t> counts, std::vector<uint64_t> lanes) {
  take_apart();
  counts_ = std::move(counts);
  lanes_ = std::move(lanes);
}

}  // namespace gpusim::simd
