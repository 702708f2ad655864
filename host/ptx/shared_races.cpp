#include "host/ptx/shared_races.h"

#include <algorithm>

namespace gpusim::ptx {

SharedRaces::SharedRaces(uint32_t threads, uint64_t bytes)
    : threads_(threads),
      clocks_(threads),
      floor_(threads),
      words_((bytes + Words::kWordBytes - 1) / Words::kWordBytes),
      generation_(threads),
      warp_seen_((threads + kWarpLanes - 1) / kWarpLanes) {}

void SharedRaces::reset() {
  words_.reset();
  clocks_.reset();
  std::fill(floor_.begin(), floor_.end(), 0);
  for (Barrier& b : barriers_) b = {};
  for (auto& g : generation_) g = {};
  for (auto& seen : warp_seen_) seen.clear();
}

void SharedRaces::access(const Access& access, uint64_t offset, std::span<const uint8_t> stored) {
  Words::for_each(offset, access.site->bytes, stored, [&](const WordPart& part) {
    if (part.word < words_.size()) access_part(access, part);
  });
}

void SharedRaces::access_part(const Access& access, const WordPart& part) {
  const WordAccess now{.site = access.site,
                       .clock = clocks_.now(access.thread),
                       .value = part.value,
                       .thread = static_cast<uint16_t>(access.thread),
                       .bytes = part.bytes,
                       .has_value = part.has_value};
  if (!now.site->writes())
    for (const WordAccess& c : words_.cells(part.word))
      if (c.thread == now.thread && c.clock == now.clock && (c.bytes & now.bytes) == now.bytes &&
          !c.site->writes())
        return;
  const auto is_before = [&](const WordAccess& c) {
    return c.thread == now.thread || has_seen(access.thread, c);
  };
  words_.add(part.word, now, is_before, [&](const WordAccess& c, uint64_t at, uint32_t bytes) {
    on_race({c.thread, c.site}, access, at, bytes);
  });
}

void SharedRaces::synchronises(uint32_t thread, const CheckSite& site, uint64_t address) {
  synchronise(clocks_, thread, site, address);
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
