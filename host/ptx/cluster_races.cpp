#include "host/ptx/cluster_races.h"

#include <algorithm>

namespace gpusim::ptx {

ClusterRaces::ClusterRaces(uint32_t ctas, uint32_t threads, uint64_t bytes)
    : threads_(threads),
      words_per_cta_((bytes + Words::kWordBytes - 1) / Words::kWordBytes),
      clocks_(ctas),
      words_(words_per_cta_ * ctas),
      progress_(ctas, Progress{.left = threads}),
      arrivals_(size_t{ctas} * threads),
      waits_(arrivals_.size()) {}

void ClusterRaces::reset() {
  words_.reset();
  clocks_.reset();
  std::fill(progress_.begin(), progress_.end(), Progress{.left = threads_});
  std::fill(arrivals_.begin(), arrivals_.end(), 0);
  std::fill(waits_.begin(), waits_.end(), 0);
}

void ClusterRaces::access(const Access& access, uint32_t owner, uint64_t offset,
                          std::span<const uint8_t> stored) {
  Words::for_each(offset, access.site->bytes, stored, [&](const WordPart& part) {
    if (part.word < words_per_cta_) access_part(access, owner, part);
  });
}

void ClusterRaces::access_part(const Access& access, uint32_t owner, const WordPart& part) {
  const uint64_t first = owner * words_per_cta_;
  Cell now;
  now.site = access.site;
  now.clock = clocks_.now(access.rank);
  now.value = part.value;
  now.thread = static_cast<uint16_t>(access.thread);
  now.bytes = part.bytes;
  now.has_value = part.has_value;
  now.arrivals = progress_[access.rank].least_arrivals;
  now.rank = static_cast<uint16_t>(access.rank);
  const auto is_before = [&](const Cell& c) { return is_ordered(c, access.rank); };
  words_.add(first + part.word, now, is_before, [&](const Cell& c, uint64_t at, uint32_t bytes) {
    on_race({c.rank, c.thread, c.site}, access, owner, at - first * Words::kWordBytes, bytes);
  });
}

void ClusterRaces::synchronises(const Access& access, uint64_t address) {
  synchronise(clocks_, access.rank, *access.site, address);
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
