#include "host/run/profile_split.h"

#include <algorithm>

namespace gpusim::host {
namespace {

// Parts of `whole`, by weights that add up to `all`; none is more than its weight if the whole is
// no more than all.
std::vector<uint64_t> shares(uint64_t whole, std::span<const uint64_t> weights, uint64_t all) {
  std::vector<uint64_t> parts(weights.size());
  if (all == 0) return parts;
  uint64_t sum = 0, before = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    const auto up_to = static_cast<uint64_t>(static_cast<__uint128_t>(whole) * sum / all);
    parts[i] = up_to - before;
    before = up_to;
  }
  return parts;
}

}  // namespace

std::vector<PlaceUse> split_use(const PlaceUse& use, std::span<const uint64_t> weights) {
  uint64_t sum = 0;
  for (const uint64_t weight : weights) sum += weight;
  const uint64_t all = use.instructions();
  const std::vector<uint64_t> instructions = shares(all, weights, sum);
  std::vector<PlaceUse> uses(weights.size());
  // Of the instructions that have no class yet.
  std::vector<uint64_t> left = instructions;
  uint64_t all_left = all;
  for (size_t c = 0; c < use.classes.size(); ++c) {
    const std::vector<uint64_t> parts = shares(use.classes[c], left, all_left);
    for (size_t i = 0; i < weights.size(); ++i) {
      uses[i].classes[c] = parts[i];
      left[i] -= parts[i];
    }
    all_left -= use.classes[c];
  }
  // Lanes are no less than instructions, where they are counted.
  const uint64_t counted = std::min(all, use.lanes);
  const std::vector<uint64_t> active = shares(counted, instructions, all),
                              lost = shares(use.lanes - counted, weights, sum),
                              in_vain = shares(use.in_vain, instructions, all);
  for (size_t i = 0; i < weights.size(); ++i) {
    uses[i].lanes = active[i] + lost[i];
    uses[i].in_vain = in_vain[i];
  }
  return uses;
}

}  // namespace gpusim::host
