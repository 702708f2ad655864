#include "host/ptx/cluster_races.h"

#include <algorithm>
#include <bit>

namespace gpusim::ptx {

ClusterRaces::ClusterRaces(uint32_t ctas, uint32_t threads, uint64_t bytes)
    : threads_(threads),
      words_per_cta_((bytes + kWordBytes - 1) / kWordBytes),
      clocks_(ctas),
      words_(words_per_cta_ * ctas),
      progress_(ctas, Progress{.left = threads}),
      arrivals_(size_t{ctas} * threads),
      waits_(arrivals_.size()) {}

void ClusterRaces::reset() {
  ++cluster_;
  clocks_.reset();
  std::fill(progress_.begin(), progress_.end(), Progress{.left = threads_});
  std::fill(arrivals_.begin(), arrivals_.end(), 0);
  std::fill(waits_.begin(), waits_.end(), 0);
}

void ClusterRaces::access(const Access& access, uint32_t owner, uint64_t offset,
                          std::span<const uint8_t> stored) {
  const uint64_t end = offset + access.site->bytes;
  for (uint64_t at = offset; at < end;) {
    const uint64_t word = at / kWordBytes, begin = at % kWordBytes;
    const uint64_t stop = std::min<uint64_t>(kWordBytes, begin + end - at);
    const auto mask = static_cast<uint8_t>((0xf << begin) & (0xf >> (kWordBytes - stop)));
    uint32_t value = 0;
    for (uint64_t k = begin; k < stop && !stored.empty(); ++k)
      value |= uint32_t{stored[at - offset + k - begin]} << 8 * k;
    if (word < words_per_cta_)
      access_word(access, owner, word, mask, stored.empty() ? nullptr : &value);
    at += stop - begin;
  }
}

void ClusterRaces::access_word(const Access& access, uint32_t owner, uint64_t number, uint8_t bytes,
                               const uint32_t* value) {
  Word& word = words_[owner * words_per_cta_ + number];
  if (word.cluster != cluster_) {
    word.cells = {};
    word.cluster = cluster_;
  }
  const bool writes = access.site->writes();
  const Cell now{.site = access.site,
                 .clock = clocks_.now(access.rank),
                 .arrivals = progress_[access.rank].least_arrivals,
                 .value = value != nullptr ? *value : 0,
                 .rank = static_cast<uint16_t>(access.rank),
                 .thread = static_cast<uint16_t>(access.thread),
                 .bytes = bytes,
                 .has_value = value != nullptr};
  for (Cell& c : word.cells) {
    const uint8_t common = c.bytes & bytes;
    if (common == 0) continue;
    const bool ordered = is_ordered(c, access.rank);
    if (!ordered && (writes || c.site->writes()) &&
        !(c.site->is_strong && access.site->is_strong)) {
      uint32_t mask = 0;
      for (uint32_t k = 0; k < kWordBytes; ++k)
        if (common >> k & 1) mask |= 0xffu << 8 * k;
      // Threads that store the same make no difference to each other.
      if (!(c.has_value && now.has_value && ((c.value ^ now.value) & mask) == 0))
        on_race({c.rank, c.thread, c.site}, access, owner,
                number * kWordBytes + static_cast<uint64_t>(std::countr_zero(common)),
                static_cast<uint32_t>(std::popcount(common)));
    }
    // What races with that one, and comes later, races with this one, too.
    const bool is_as_weak = c.site->is_strong || !access.site->is_strong;
    if (ordered && is_as_weak && (writes || !c.site->writes()))
      c.bytes &= static_cast<uint8_t>(~bytes);
  }
  auto& cells = word.cells;
  auto gone = std::find_if(cells.begin(), cells.end(), [](const Cell& c) { return c.bytes == 0; });
  if (gone == cells.end())
    gone =
        std::find_if(cells.begin(), cells.end(), [](const Cell& c) { return !c.site->writes(); });
  if (gone == cells.end()) gone = cells.begin();
  std::move(gone + 1, cells.end(), gone);
  cells.back() = now;
}

void ClusterRaces::synchronises(const Access& access, uint64_t address) {
  const CheckSite& site = *access.site;
  if (!site.is_strong) return;
  const uint64_t word = address / 8;
  if (site.releases) clocks_.fence(access.rank);
  if (site.kind != CheckSite::Kind::kStore) clocks_.observe(access.rank, word);
  if (site.writes()) clocks_.publish(access.rank, word);
  if (site.acquires) clocks_.fence(access.rank);
}

void ClusterRaces::arrive(uint32_t rank, uint32_t thread) {
  const uint32_t* const first = &arrivals_[size_t{rank} * threads_];
  Progress& p = progress_[rank];
  const bool was_last = arrivals_[size_t{rank} * threads_ + thread]++ == p.least_arrivals;
  if (!was_last || --p.left != 0) return;
  p.least_arrivals = *std::min_element(first, first + threads_);
  p.left = static_cast<uint32_t>(std::count(first, first + threads_, p.least_arrivals));
}

void ClusterRaces::pass(uint32_t rank, uint32_t thread) {
  uint32_t& waits = waits_[size_t{rank} * threads_ + thread];
  ++waits;
  progress_[rank].most_waits = std::max(progress_[rank].most_waits, waits);
}

}  // namespace gpusim::ptx
