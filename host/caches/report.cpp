#include "host/caches/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace gpusim::host {
namespace {

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string size_text(uint64_t bytes) {
  constexpr uint64_t kKi = 1024, kMi = kKi * kKi;
  if (bytes % kMi == 0) return fmt::format("{} MiB", bytes / kMi);
  return bytes % kKi == 0 ? fmt::format("{} KiB", bytes / kKi) : fmt::format("{} B", bytes);
}

std::string shared_text(const CacheShape& s) {
  if (s.cores == 0) return "of all cores";
  return s.cores == 1 ? "per core" : fmt::format("per {} cores", s.cores);
}

}  // namespace

std::string caches_text(const HierarchyShape& shape, const CacheReport& report) {
  std::string text = fmt::format("caches of {} ({} B lines):\n  {:<24}{:>14}{:>14}{:>10}{:>16}\n",
                                 shape.name, shape.line_bytes, "", "accesses", "misses", "share",
                                 "written back");
  for (size_t l = 0; l < shape.levels.size(); ++l) {
    const CacheShape& s = shape.levels[l];
    const CacheCounts& c = report.levels[l];
    const std::string title =
        fmt::format("{} {} {}", s.name, size_text(s.size_bytes), shared_text(s));
    const uint64_t all = c.reads + c.writes;
    text += fmt::format("  {:<24}{:>14}{:>14}{:>9.2f}%{:>16}\n", title, all, c.misses(),
                        100 * share(c.misses(), all), c.write_backs);
  }
  return text + fmt::format("  {:<24}{:>14} lines read, {} written\n", "memory", report.memory_reads,
                            report.memory_writes);
}

nlohmann::ordered_json caches_json(const HierarchyShape& shape, const CacheReport& report) {
  auto levels = nlohmann::ordered_json::array();
  for (size_t l = 0; l < shape.levels.size(); ++l) {
    const CacheShape& s = shape.levels[l];
    const CacheCounts& c = report.levels[l];
    nlohmann::ordered_json level = {
        {"name", s.name},
        {"size_bytes", s.size_bytes},
        {"ways", s.ways},
        {"cores", s.cores == 0 ? nlohmann::ordered_json("all") : nlohmann::ordered_json(s.cores)},
        {"replacement", s.replacement == Replacement::kLru ? "lru" : "tree-plru"},
        {"write", s.write_back ? "back" : "through"},
        {"write_miss", s.allocates_on_write ? "allocate" : "around"},
        {"reads", c.reads},
        {"read_misses", c.read_misses},
        {"writes", c.writes},
        {"write_misses", c.write_misses},
        {"write_backs", c.write_backs}};
    levels.push_back(std::move(level));
  }
  return {{"file", shape.name},
          {"line_bytes", shape.line_bytes},
          {"levels", std::move(levels)},
          {"memory", {{"line_reads", report.memory_reads}, {"line_writes", report.memory_writes}}}};
}

}  // namespace gpusim::host
