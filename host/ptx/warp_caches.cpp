#include "host/ptx/warp_caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "device_sim/base/error.h"

namespace gpusim::ptx {

CacheProfile& CacheProfile::operator+=(const CacheProfile& o) {
  if (levels.empty()) return *this = o;
  for (size_t k = 0; k < std::min(levels.size(), o.levels.size()); ++k) {
    levels[k].reads += o.levels[k].reads;
    levels[k].read_misses += o.levels[k].read_misses;
    levels[k].writes += o.levels[k].writes;
    levels[k].write_misses += o.levels[k].write_misses;
  }
  memory_reads += o.memory_reads;
  memory_writes += o.memory_writes;
  accesses += o.accesses;
  off_chip_accesses += o.off_chip_accesses;
  return *this;
}

WarpCaches::WarpCaches(host::HierarchyShape shape) : shape_(std::move(shape)) {
  if (shape_.multiprocessors == 0)
    throw Error(shape_.name +
                ": \"multiprocessors\" is missing: kernels need to know how many there are, each "
                "with caches of its own");
  line_shift_ = static_cast<uint32_t>(std::countr_zero(shape_.line_bytes));
  while (private_levels_ < shape_.levels.size() && shape_.levels[private_levels_].cores != 0)
    ++private_levels_;
  for (size_t k = private_levels_; k < shape_.levels.size(); ++k)
    shared_.emplace_back(shape_.levels[k], shape_.line_bytes);
}

void WarpCaches::begin_kernel() {
  private_.clear();
  for (uint32_t m = 0; m < shape_.multiprocessors; ++m) {
    private_.emplace_back();
    for (size_t k = 0; k < private_levels_; ++k)
      private_.back().emplace_back(shape_.levels[k], shape_.line_bytes);
  }
  counts_ = {};
  counts_.line_bytes = shape_.line_bytes;
  for (const host::CacheShape& level : shape_.levels)
    counts_.levels.push_back({.name = level.name});
}

bool WarpCaches::request(size_t multiprocessor, size_t level, uint64_t line, bool is_write) {
  if (level == shape_.levels.size()) {
    ++(is_write ? counts_.memory_writes : counts_.memory_reads);
    return false;
  }
  const host::CacheShape& shape = shape_.levels[level];
  host::Cache& cache =
      level < private_levels_ ? private_[multiprocessor][level] : shared_[level - private_levels_];
  CacheLevelCounts& counts = counts_.levels[level];
  const bool makes_dirty = is_write && shape.write_back;
  const bool is_hit = cache.touch(line, makes_dirty);
  ++(is_write ? counts.writes : counts.reads);
  if (!is_hit) ++(is_write ? counts.write_misses : counts.read_misses);
  bool is_served = shape.on_chip;
  if (!is_hit && (!is_write || shape.allocates_on_write)) {
    is_served = request(multiprocessor, level + 1, line, false);
    const host::Cache::Victim victim = cache.fill(line, makes_dirty);
    if (victim.is_dirty) request(multiprocessor, level + 1, victim.line, true);
  }
  const bool goes_on = is_write && (!shape.write_back || (!is_hit && !shape.allocates_on_write));
  if (goes_on) {
    const bool is_served_there = request(multiprocessor, level + 1, line, true);
    if (!is_hit) is_served = is_served_there;
  }
  return is_served;
}

void WarpCaches::access(uint64_t cta, std::span<const uint64_t> addresses, uint32_t bytes,
                        AccessKind kind) {
  std::vector<std::pair<uint64_t, bool>> lines;  // and whether each is served on the chip
  for (const uint64_t a : addresses)
    for (uint64_t line = a >> line_shift_; line <= (a + bytes - 1) >> line_shift_; ++line)
      lines.emplace_back(line, true);
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  const size_t multiprocessor = cta % shape_.multiprocessors;
  // Atomics are executed where all multiprocessors meet.
  const size_t first = kind == AccessKind::kAtomic ? private_levels_ : 0;
  for (auto& [line, is_served] : lines)
    is_served = request(multiprocessor, first, line, kind != AccessKind::kLoad);
  if (kind == AccessKind::kAtomic) return;
  counts_.accesses += addresses.size();
  for (const uint64_t a : addresses) {
    const auto from =
        std::lower_bound(lines.begin(), lines.end(), std::pair(a >> line_shift_, false));
    const uint64_t last = (a + bytes - 1) >> line_shift_;
    counts_.off_chip_accesses += std::any_of(
        from, lines.end(), [&](const auto& line) { return line.first <= last && !line.second; });
  }
}

nlohmann::ordered_json cache_profile_json(const CacheProfile& profile) {
  nlohmann::ordered_json json = {{"line_bytes", profile.line_bytes},
                                 {"accesses", profile.accesses},
                                 {"off_chip_accesses", profile.off_chip_accesses},
                                 {"memory_reads", profile.memory_reads},
                                 {"memory_writes", profile.memory_writes},
                                 {"levels", nlohmann::ordered_json::array()}};
  for (const CacheLevelCounts& l : profile.levels)
    json["levels"].push_back({{"name", l.name},
                              {"reads", l.reads},
                              {"read_misses", l.read_misses},
                              {"writes", l.writes},
                              {"write_misses", l.write_misses}});
  return json;
}

CacheProfile cache_profile_of_json(const nlohmann::ordered_json& json) {
  const auto get = [](const nlohmann::ordered_json& o, const char* key) {
    return o.at(key).get<uint64_t>();
  };
  CacheProfile p{.line_bytes = json.at("line_bytes").get<uint32_t>(),
                 .levels = {},
                 .memory_reads = get(json, "memory_reads"),
                 .memory_writes = get(json, "memory_writes"),
                 .accesses = get(json, "accesses"),
                 .off_chip_accesses = get(json, "off_chip_accesses")};
  for (const auto& l : json.at("levels"))
    p.levels.push_back({l.at("name").get<std::string>(), get(l, "reads"), get(l, "read_misses"),
                        get(l, "writes"), get(l, "write_misses")});
  return p;
}

std::string cache_profile_text(const CacheProfile& profile) {
  std::string text;
  const auto percent = [](uint64_t part, uint64_t all) {
    return all == 0 ? std::string("-")
                    : fmt::format("{:.1f} %",
                                  100 * static_cast<double>(part) / static_cast<double>(all));
  };
  for (const CacheLevelCounts& l : profile.levels)
    text += fmt::format("  {}: {} lines of {} bytes read, {} missed; {} written, {} missed\n",
                        l.name, l.reads, profile.line_bytes, percent(l.read_misses, l.reads),
                        l.writes, percent(l.write_misses, l.writes));
  text += fmt::format(
      "  memory: {} lines read, {} written; off the chip: {} of the threads' "
      "loads and stores\n",
      profile.memory_reads, profile.memory_writes,
      percent(profile.off_chip_accesses, profile.accesses));
  return text;
}

}  // namespace gpusim::ptx
