#include "host/races/clocks.h"

#include <algorithm>

namespace gpusim::host::races {

Clocks::Clocks(uint32_t cores)
    : cores_(cores), of_core_(size_t{cores} * cores, 0), observed_(cores), acquired_(cores) {
  for (uint32_t core = 0; core < cores; ++core) of_core_[at(core, core)] = 1;
}

void Clocks::reset() {
  std::fill(of_core_.begin(), of_core_.end(), 0);
  for (uint32_t core = 0; core < cores_; ++core) of_core_[at(core, core)] = 1;
  number_of_.clear();
  of_word_.clear();
  for (auto& list : observed_) list.clear();
  for (auto& clocks : acquired_) clocks = {};
  shared_words_ = 0;
}

void Clocks::collect(uint32_t core, std::vector<uint32_t>& seen) const {
  seen.resize(cores_);
  const uint32_t* const own = &of_core_[at(core, 0)];
  for (uint32_t i = 0; i < cores_; ++i) seen[i] = std::max(seen[i], own[i]);
}

void Clocks::absorb(uint32_t core, const std::vector<uint32_t>& seen) {
  if (!seen.empty()) join(core, seen);
}

uint32_t Clocks::clock_of(uint64_t word) {
  const auto [place, is_new] = number_of_.try_emplace(word, 0);
  if (is_new) {
    const uint64_t most = std::max<uint64_t>(1024, kMostBytes / (cores_ * sizeof(uint32_t)));
    if (of_word_.size() < most) {
      place->second = static_cast<uint32_t>(of_word_.size());
      of_word_.emplace_back();
    } else {
      place->second = static_cast<uint32_t>(word * 0x9e3779b97f4a7c15 >> 32) % of_word_.size();
      ++shared_words_;
    }
  }
  return place->second;
}

void Clocks::publish(uint32_t core, uint64_t word) {
  WordClock& clock = of_word_[clock_of(word)];
  if (clock.seen.empty()) clock.seen.assign(cores_, 0);
  const uint32_t at_fence = now(core) - 1;
  // All that the core had seen at that fence is there with its own number.
  if (at_fence == 0 || clock.seen[core] >= at_fence) return;
  const uint32_t* const seen = &of_core_[at(core, 0)];
  for (uint32_t i = 0; i < cores_; ++i)
    clock.seen[i] = std::max(clock.seen[i], i == core ? 0 : seen[i]);
  clock.seen[core] = at_fence;
  ++clock.version;
}

void Clocks::observe(uint32_t core, uint64_t word) {
  const uint32_t number = clock_of(word);
  std::vector<uint32_t>& list = observed_[core];
  const size_t recent = std::min<size_t>(list.size(), 8);
  if (std::find(list.end() - static_cast<ptrdiff_t>(recent), list.end(), number) == list.end())
    list.push_back(number);
}

void Clocks::join(uint32_t core, const std::vector<uint32_t>& seen) {
  uint32_t* const own = &of_core_[at(core, 0)];
  const uint32_t now = own[core];
  for (uint32_t i = 0; i < cores_; ++i) own[i] = std::max(own[i], seen[i]);
  own[core] = now;
}

void Clocks::fence(uint32_t core) {
  for (const uint32_t number : observed_[core]) {
    const WordClock& clock = of_word_[number];
    Acquired& before = acquired_[core][number % acquired_[core].size()];
    if (clock.version == 0 || (before.clock == number && before.version == clock.version)) continue;
    before = {number, clock.version};
    join(core, clock.seen);
  }
  observed_[core].clear();
  ++of_core_[at(core, core)];
}

void Clocks::order(uint32_t from, uint32_t to) {
  if (from == to) return;
  for (uint32_t i = 0; i < cores_; ++i) {
    uint32_t& seen = of_core_[at(to, i)];
    if (i != to) seen = std::max(seen, of_core_[at(from, i)]);
  }
  ++of_core_[at(from, from)];
}

}  // namespace gpusim::host::races
