#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "host/ptx/profile.h"

namespace gpusim::ptx {
namespace {

using Json = nlohmann::ordered_json;
using Line = std::pair<std::string, WarpCounts>;

std::vector<Line> by_instructions(const KernelProfile& profile) {
  std::vector<Line> lines(profile.lines.begin(), profile.lines.end());
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.second.instructions > b.second.instructions;
  });
  return lines;
}

double ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

void add(Json& to, const WarpCounts& c) {
  to["instructions"] = c.instructions;
  to["warp_instructions"] = c.warp_instructions;
  to["lanes_per_warp"] = c.lanes();
  to["global_accesses"] = c.global_accesses;
  to["sectors"] = c.sectors;
  to["store_sectors"] = c.store_sectors;
  to["atomic_sectors"] = c.atomic_sectors;
  to["shared_accesses"] = c.shared_accesses;
  to["bank_conflicts"] = c.bank_conflicts;
}

WarpCounts counts_of(const Json& json) {
  const auto get = [&](const char* key) { return json.at(key).get<uint64_t>(); };
  return {get("instructions"),    get("warp_instructions"), get("global_accesses"),
          get("sectors"),         get("store_sectors"),     get("atomic_sectors"),
          get("shared_accesses"), get("bank_conflicts")};
}

std::string row(const std::string& name, const WarpCounts& c, uint64_t all) {
  const auto or_dash = [](double value, bool is_there) {
    return is_there ? fmt::format("{:.2f}", value) : std::string("-");
  };
  return fmt::format("{:>14} {:>6.1f}% {:>6.1f} {:>9} {:>9}  {}\n", c.instructions,
                     100 * ratio(c.instructions, all), c.lanes(),
                     or_dash(ratio(c.sectors, c.global_accesses), c.global_accesses != 0),
                     or_dash(ratio(c.bank_conflicts, c.shared_accesses), c.shared_accesses != 0),
                     name);
}

}  // namespace

Json profile_json(const KernelProfile& profile) {
  Json all = Json::object();
  add(all, profile.all);
  if (profile.caches) all["caches"] = cache_profile_json(*profile.caches);
  all["lines"] = Json::array();
  for (const auto& [name, counts] : by_instructions(profile)) {
    Json line = {{"line", name}};
    add(line, counts);
    all["lines"].push_back(std::move(line));
  }
  return all;
}

KernelProfile profile_of_json(const Json& json) {
  KernelProfile profile{.lines = {}, .all = counts_of(json), .caches = {}};
  if (json.contains("caches")) profile.caches = cache_profile_of_json(json.at("caches"));
  for (const Json& line : json.at("lines"))
    profile.lines[line.at("line").get<std::string>()] = counts_of(line);
  return profile;
}

std::string profile_text(const KernelProfile& profile, const std::string& kernel) {
  constexpr size_t kMostLines = 20;
  std::string text = fmt::format("{}\n{:>14} {:>7} {:>6} {:>9} {:>9}  {}\n", kernel, "instructions",
                                 "", "lanes", "sectors", "conflicts", "line");
  text += row("(all)", profile.all, profile.all.instructions);
  const std::vector<Line> lines = by_instructions(profile);
  for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    text += row(lines[i].first, lines[i].second, profile.all.instructions);
  if (lines.size() > kMostLines)
    text += fmt::format("{:>14} lines more\n", lines.size() - kMostLines);
  if (profile.caches) text += cache_profile_text(*profile.caches);
  return text;
}

}  // namespace gpusim::ptx
