#include "host/ptx/global_races.h"

#include <algorithm>
#include <bit>

#include "host/ptx/accessed_words.h"

namespace gpusim::ptx {
namespace {

using Words = AccessedWords<WordAccess>;

uint32_t bits_of(uint8_t bytes) {
  uint32_t mask = 0;
  for (uint32_t k = 0; k < Words::kWordBytes; ++k)
    if (bytes >> k & 1) mask |= 0xffu << 8 * k;
  return mask;
}

}  // namespace

void GlobalRaces::begin() {
  words_.clear();
  synchronised_.clear();
  may_have_met_.clear();
  pairs_.clear();
}

uint32_t GlobalRaces::start_unit() {
  synchronised_.push_back(0);
  may_have_met_.push_back(false);
  return static_cast<uint32_t>(synchronised_.size() - 1);
}

void GlobalRaces::access(const Access& access, uint64_t address, std::span<const uint8_t> stored) {
  if (access.site->acquires || access.site->releases) synchronise(access.unit);
  if (access.site->is_strong) {
    may_have_met_[access.unit] = true;
    return;
  }
  Words::for_each(address, access.site->bytes, stored, [&](const WordPart& part) {
    if (words_.size() >= kMostWords && !words_.contains(part.word)) return;
    const Cell now{.site = access.site,
                   .cta = access.cta,
                   .unit = access.unit,
                   .epoch = synchronised_[access.unit],
                   .value = part.value,
                   .thread = static_cast<uint16_t>(access.thread),
                   .bytes = part.bytes,
                   .has_value = part.has_value,
                   .may_have_met = may_have_met_[access.unit]};
    add(words_[part.word], now, part.word);
  });
}

void GlobalRaces::add(Cells& cells, const Cell& now, uint64_t word) {
  const bool writes = now.site->writes();
  Cell *own = nullptr, *free = nullptr;
  bool has_store = false;
  for (Cell& c : cells) {
    if (c.bytes == 0) {
      if (free == nullptr) free = &c;
      continue;
    }
    has_store |= c.site->writes();
    if (c.unit == now.unit) {
      if (c.site->writes() == writes) own = &c;
      continue;
    }
    const auto common = static_cast<uint8_t>(c.bytes & now.bytes);
    if (common == 0 || !(writes || c.site->writes())) continue;
    // Threads that store the same make no difference to each other.
    if (c.has_value && now.has_value && ((c.value ^ now.value) & bits_of(common)) == 0) continue;
    const uint64_t a = line_number(*c.site->insn), b = line_number(*now.site->insn);
    std::vector<Pair>& same = pairs_[{std::min(a, b), std::max(a, b)}];
    if (same.size() < kMostPairs)
      same.push_back({c, now,
                      word * Words::kWordBytes + static_cast<uint64_t>(std::countr_zero(common)),
                      static_cast<uint32_t>(std::popcount(common))});
  }
  if (own != nullptr) {
    const uint8_t before = own->bytes;
    *own = now;
    if (!writes) own->bytes |= before;
  } else if (free != nullptr) {
    *free = now;
  } else if (writes && !has_store) {
    cells.back() = now;
  }
}

bool GlobalRaces::may_be_ordered(const Cell& x, const Cell& y) const {
  const auto before = [&](const Cell& first, const Cell& second) {
    return synchronised_[first.unit] > first.epoch && second.may_have_met;
  };
  return before(x, y) || before(y, x);
}

void GlobalRaces::end() {
  for (auto& [lines, pairs] : pairs_) {
    std::erase_if(pairs, [&](const Pair& p) { return may_be_ordered(p.first, p.second); });
    if (pairs.empty()) continue;
    const Pair& p = pairs.front();
    on_race(p.first.access(), p.second.access(), p.address, p.bytes, pairs.size());
  }
  begin();
}

}  // namespace gpusim::ptx
