#include "host/ptx/shared_races.h"

#include <algorithm>
#include <bit>

namespace gpusim::ptx {

SharedRaces::SharedRaces(uint32_t threads, uint64_t bytes)
    : threads_(threads),
      clocks_(threads),
      floor_(threads),
      words_((bytes + kWordBytes - 1) / kWordBytes),
      generation_(threads),
      warp_seen_((threads + kWarpLanes - 1) / kWarpLanes) {}

void SharedRaces::reset() {
  ++cta_;
  clocks_.reset();
  std::fill(floor_.begin(), floor_.end(), 0);
  for (Barrier& b : barriers_) b = {};
  for (auto& g : generation_) g = {};
  for (auto& seen : warp_seen_) seen.clear();
}

void SharedRaces::access(const Access& access, uint64_t offset, std::span<const uint8_t> stored) {
  const uint64_t end = offset + access.site->bytes;
  for (uint64_t at = offset; at < end;) {
    const uint64_t word = at / kWordBytes, begin = at % kWordBytes;
    const uint64_t stop = std::min<uint64_t>(kWordBytes, begin + end - at);
    const auto mask = static_cast<uint8_t>((0xf << begin) & (0xf >> (kWordBytes - stop)));
    uint32_t value = 0;
    for (uint64_t k = begin; k < stop && !stored.empty(); ++k)
      value |= uint32_t{stored[at - offset + k - begin]} << 8 * k;
    if (word < words_.size()) access_word(access, word, mask, stored.empty() ? nullptr : &value);
    at += stop - begin;
  }
}

void SharedRaces::synchronises(uint32_t thread, const CheckSite& site, uint64_t address) {
  if (!site.is_strong) return;
  const uint64_t word = address / 8;
  if (site.releases) clocks_.fence(thread);
  if (site.kind != CheckSite::Kind::kStore) clocks_.observe(thread, word);
  if (site.writes()) clocks_.publish(thread, word);
  if (site.acquires) clocks_.fence(thread);
}

void SharedRaces::access_word(const Access& access, uint64_t number, uint8_t bytes,
                              const uint32_t* value) {
  Word& word = words_[number];
  if (word.cta != cta_) {
    word.cells = {};
    word.cta = cta_;
  }
  const bool writes = access.site->writes();
  const Cell now{.site = access.site,
                 .clock = clocks_.now(access.thread),
                 .value = value ? *value : 0,
                 .thread = static_cast<uint16_t>(access.thread),
                 .bytes = bytes,
                 .has_value = value != nullptr};
  auto& cells = word.cells;
  if (!writes)
    for (const Cell& c : cells)
      if (c.thread == now.thread && c.clock == now.clock && (c.bytes & bytes) == bytes &&
          !c.site->writes())
        return;
  for (Cell& c : cells) {
    const uint8_t common = c.bytes & bytes;
    if (common == 0) continue;
    const bool is_ordered = c.thread == now.thread || has_seen(access.thread, c);
    if (!is_ordered && (writes || c.site->writes()) &&
        !(c.site->is_strong && access.site->is_strong)) {
      uint32_t mask = 0;
      for (uint32_t k = 0; k < kWordBytes; ++k)
        if (common >> k & 1) mask |= 0xffu << 8 * k;
      // Threads that store the same make no difference to each other.
      if (!(c.has_value && now.has_value && ((c.value ^ now.value) & mask) == 0))
        on_race({c.thread, c.site}, access,
                number * kWordBytes + static_cast<uint64_t>(std::countr_zero(common)),
                static_cast<uint32_t>(std::popcount(common)));
    }
    // Whatever races with that one, and comes later, races with this one, too. Not so where only
    // this one is strong.
    const bool is_as_weak = c.site->is_strong || !access.site->is_strong;
    if (is_ordered && is_as_weak && (writes || !c.site->writes()))
      c.bytes &= static_cast<uint8_t>(~bytes);
  }
  auto gone = std::find_if(cells.begin(), cells.end(), [](const Cell& c) { return c.bytes == 0; });
  if (gone == cells.end())
    gone =
        std::find_if(cells.begin(), cells.end(), [](const Cell& c) { return !c.site->writes(); });
  if (gone == cells.end()) gone = cells.begin();
  std::move(gone + 1, cells.end(), gone);
  cells.back() = now;
}

void SharedRaces::arrive(uint32_t thread, const CheckSite& site, uint32_t barrier,
                         uint32_t threads) {
  if (site.is_of_warp) {
    clocks_.collect(thread, warp_seen_[thread / kWarpLanes]);
    clocks_.fence(thread);
    return;
  }
  Barrier& b = barriers_[barrier % kBarriers];
  if (is_of_all(threads)) {
    b.arrivals.push_back({thread, &site});
    generation_[thread][barrier % kBarriers] = b.generation;
    return;
  }
  clocks_.collect(thread, b.seen);
  clocks_.fence(thread);
}

void SharedRaces::pass(uint32_t thread, const CheckSite& site, uint32_t barrier, uint32_t threads) {
  if (site.is_of_warp) return clocks_.absorb(thread, warp_seen_[thread / kWarpLanes]);
  if (!site.waits) return;
  Barrier& b = barriers_[barrier % kBarriers];
  if (!is_of_all(threads)) return clocks_.absorb(thread, b.seen);
  if (!b.arrivals.empty() && generation_[thread][barrier % kBarriers] == b.generation)
    open(b, barrier);
}

// All are behind what all did so far.
void SharedRaces::open(Barrier& barrier, uint32_t number) {
  on_barrier(barrier.arrivals, number);
  for (uint32_t t = 0; t < threads_; ++t) {
    floor_[t] = clocks_.now(t);
    clocks_.fence(t);
  }
  ++barrier.generation;
  barrier.arrivals.clear();
}

}  // namespace gpusim::ptx
