#include "energy/longest_cores.h"

#include <algorithm>
#include <functional>

#include "energy/activity.h"

namespace gpusim::energy {
namespace {

// `a` is at least as long as `b`, whatever the cycles.
bool covers(const ClassCounts& a, const ClassCounts& b) {
  return std::equal(a.begin(), a.end(), b.begin(), std::greater_equal<>());
}

}  // namespace

void LongestCores::add(const ClassCounts& core) {
  const uint64_t instructions = instructions_of(core);
  if (instructions == 0) return;
  ++active_;
  // Only cores with as many instructions can cover this one, only cores after it can be covered.
  const auto at = std::partition_point(list_.begin(), list_.end(), [&](const ClassCounts& other) {
    return instructions_of(other) >= instructions;
  });
  if (std::any_of(list_.begin(), at, [&](const ClassCounts& other) { return covers(other, core); }))
    return;
  const auto here = list_.insert(at, core);
  list_.erase(std::remove_if(here + 1, list_.end(),
                             [&](const ClassCounts& other) { return covers(core, other); }),
              list_.end());
  if (list_.size() > kMost) list_.pop_back();
}

}  // namespace gpusim::energy
