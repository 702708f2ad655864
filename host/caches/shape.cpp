#include "host/caches/shape.h"

#include <fmt/format.h>

#include <bit>

#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"

namespace gpusim::host {
namespace {

constexpr uint32_t kMostWays = 64;

uint32_t whole_number(const JsonObject& o, const std::string& key, uint64_t most) {
  const auto& v = o.get(key);
  if (!v.is_number_unsigned() || v.get<uint64_t>() == 0 || v.get<uint64_t>() > most)
    o.fail(fmt::format("\"{}\" must be a whole number from 1 to {}", key, most));
  return v.get<uint32_t>();
}

// 32768, or "32K", "1M".
uint64_t size_of(const JsonObject& o) {
  const auto& v = o.get("size");
  if (v.is_number_unsigned()) return v.get<uint64_t>();
  const std::string text = v.is_string() ? v.get<std::string>() : "";
  size_t end = 0;
  uint64_t number = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9' && number < uint64_t{1} << 40)
    number = 10 * number + static_cast<uint64_t>(text[end++] - '0');
  const std::string unit = text.substr(end);
  const int shift = unit == "K" || unit == "KiB" ? 10 : unit == "M" || unit == "MiB" ? 20 : -1;
  if (end == 0 || shift < 0)
    o.fail("\"size\" must be a number of bytes or a text such as \"32K\" or \"2M\"");
  return number << shift;
}

template <class T>
T one_of(const JsonObject& o, const std::string& key,
         std::initializer_list<std::pair<const char*, T>> values) {
  if (!o.has(key)) return values.begin()->second;
  const std::string text = o.text(key);
  std::string known;
  for (const auto& [name, value] : values) {
    if (text == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  o.fail(fmt::format("\"{}\" is \"{}\"; it must be one of {}", key, text, known));
}

CacheShape parse_level(const JsonObject& o, uint32_t line_bytes) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 32;
  CacheShape s;
  s.name = o.text("name");
  s.size_bytes = size_of(o);
  s.ways = whole_number(o, "ways", kMostWays);
  const bool all = o.has("cores") && o.get("cores").is_string();
  if (all && o.text("cores") != "all") o.fail("\"cores\" must be a number or \"all\"");
  s.cores = all ? 0 : o.has("cores") ? whole_number(o, "cores", 1u << 24) : 1;
  s.replacement = one_of<Replacement>(
      o, "replacement", {{"lru", Replacement::kLru}, {"tree-plru", Replacement::kTreePlru}});
  s.write_back = one_of<bool>(o, "write", {{"back", true}, {"through", false}});
  s.allocates_on_write = one_of<bool>(o, "write_miss", {{"allocate", true}, {"around", false}});
  s.on_chip = one_of<bool>(o, "place", {{"on-chip", true}, {"off-chip", false}});
  o.no_other_keys();
  const uint64_t set_bytes = uint64_t{line_bytes} * s.ways;
  if (s.size_bytes == 0 || s.size_bytes > kMostBytes || s.size_bytes % set_bytes != 0 ||
      !std::has_single_bit(s.size_bytes / set_bytes))
    o.fail(fmt::format("{} bytes in {} ways of {} bytes are not a power of two of sets",
                       s.size_bytes, s.ways, line_bytes));
  if (s.replacement == Replacement::kTreePlru && !std::has_single_bit(s.ways))
    o.fail("tree-plru needs a power of two of ways");
  return s;
}

}  // namespace

HierarchyShape parse_hierarchy(const std::string& text, const std::string& origin) {
  const nlohmann::ordered_json json = parse_json(text, origin);
  const JsonObject file(json, origin);
  HierarchyShape h{.name = origin, .line_bytes = 64, .multiprocessors = 0, .levels = {}};
  if (file.has("title")) file.text("title");
  constexpr uint32_t kLongestLine = 4096;
  if (file.has("line_bytes")) h.line_bytes = whole_number(file, "line_bytes", kLongestLine);
  if (!std::has_single_bit(h.line_bytes)) file.fail("\"line_bytes\" must be a power of two");
  constexpr uint32_t kMostMultiprocessors = 4096;
  if (file.has("multiprocessors"))
    h.multiprocessors = whole_number(file, "multiprocessors", kMostMultiprocessors);
  const auto& levels = file.get("levels");
  if (!levels.is_array() || levels.empty()) file.fail("\"levels\" must be a list of caches");
  for (size_t i = 0; i < levels.size(); ++i) {
    const JsonObject level(levels[i], fmt::format("{}[{}]", file.at("levels"), i));
    h.levels.push_back(parse_level(level, h.line_bytes));
    if (i == 0) continue;
    const uint32_t nearer = h.levels[i - 1].cores, here = h.levels[i].cores;
    if (here != 0 && (nearer == 0 || here % nearer != 0))
      level.fail(fmt::format("{} is shared by a group of cores that {} does not divide",
                             h.levels[i].name, h.levels[i - 1].name));
  }
  file.no_other_keys();
  return h;
}

HierarchyShape load_hierarchy(const std::string& path) {
  return parse_hierarchy(read_text(path), path);
}

}  // namespace gpusim::host
