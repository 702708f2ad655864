#include "host/chip/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "host/chip/builtin_chips.h"
#include "host/chip/changes.h"

namespace gpusim::host::chip {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostCycles = 1e6, kMostHz = 1e12;

uint32_t whole(const JsonObject& o, const std::string& key, uint32_t fallback, uint32_t least = 1,
               uint32_t most = 1u << 20) {
  if (!o.has(key)) return fallback;
  const Json& v = o.get(key);
  if (!v.is_number_unsigned() || v.get<uint64_t>() < least || v.get<uint64_t>() > most)
    o.fail(fmt::format("\"{}\" must be a whole number from {} to {}", key, least, most));
  return v.get<uint32_t>();
}
uint32_t power_of_two(const JsonObject& o, const std::string& key, uint32_t fallback,
                      uint32_t least, uint32_t most) {
  const uint32_t value = whole(o, key, fallback, least, most);
  if (!std::has_single_bit(value)) o.fail(fmt::format("\"{}\" must be a power of two", key));
  return value;
}
double cycles(const JsonObject& o, const std::string& key, double fallback, double least = 0) {
  const double value = o.number_or(key, fallback, least);
  if (value > kMostCycles) o.fail(fmt::format("\"{}\" must be at most {:.0f}", key, kMostCycles));
  return value;
}
// 32768, or "32K", "1M".
uint64_t size_of(const JsonObject& o, const std::string& key) {
  constexpr uint64_t kMost = uint64_t{1} << 32;
  const Json& v = o.get(key);
  uint64_t bytes = 0;
  if (v.is_number_unsigned()) {
    bytes = v.get<uint64_t>();
  } else {
    const std::string text = v.is_string() ? v.get<std::string>() : "";
    size_t end = 0;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9' && bytes < kMost)
      bytes = 10 * bytes + static_cast<uint64_t>(text[end++] - '0');
    const std::string unit = text.substr(end);
    const int shift = unit == "K" || unit == "KiB" ? 10 : unit == "M" || unit == "MiB" ? 20 : -1;
    if (end == 0 || shift < 0)
      bytes = 0;
    else
      bytes <<= shift;
  }
  if (bytes == 0 || bytes > kMost)
    o.fail(
        fmt::format("\"{}\" must be a number of bytes or a text such as \"32K\" or \"2M\", at "
                    "most 4 GiB",
                    key));
  return bytes;
}
template <class T>
T one_of(const JsonObject& o, const std::string& key, T fallback,
         std::initializer_list<std::pair<const char*, T>> values) {
  if (!o.has(key)) return fallback;
  const std::string text = o.text(key);
  std::string known;
  for (const auto& [name, value] : values) {
    if (text == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  o.fail(fmt::format("\"{}\" is \"{}\"; it must be one of {}", key, text, known));
}

// After all keys were read that mean something.
void finish(const JsonObject& o) {
  o.no_other_keys("; there are: " + o.known_keys() + " (docs/chip.md)");
}

Latencies parse_latencies(const JsonObject& o) {
  constexpr double kMost = 1000;
  const auto latency = [&](const std::string& key, double fallback) {
    const double value = o.number_or(key, fallback, 1);
    if (value > kMost) o.fail(fmt::format("\"{}\" must be at most {:.0f}", key, kMost));
    return value;
  };
  Latencies s;
  s.of_class.fill(1);
  for (size_t c = 0; c < s.of_class.size(); ++c) {
    const auto cls = static_cast<InsnClass>(c);
    // What these take caches and the network say.
    if (cls == InsnClass::kOnChipMemory || cls == InsnClass::kOffChipMemory ||
        cls == InsnClass::kParallelism)
      continue;
    s.of_class[c] = latency(kInsnClassNames[c], 1);
  }
  s.multiplication = latency("integer_multiplication",
                             s.of_class[static_cast<size_t>(InsnClass::kIntegerArithmetic)]);
  o.no_other_keys("; there are: " + o.known_keys() +
                  " (of loads, \"l1_data.hit_cycles\" says it: docs/chip.md)");
  return s;
}

CoreShape parse_cores(const JsonObject& o) {
  CoreShape s;
  if (!o.has("count")) o.fail("\"count\" is missing");
  s.count = whole(o, "count", 1, 1, 65536);
  s.per_tile = whole(o, "per_tile", 1, 1, 65536);
  if (s.count % s.per_tile != 0) o.fail("\"per_tile\" does not divide \"count\"");
  s.issue_width = cycles(o, "issue_width", 1, 0.01);
  s.taken_branch_cycles = cycles(o, "taken_branch_cycles", 0);
  s.outstanding_loads = whole(o, "outstanding_loads", 1, 1, 256);
  s.store_buffer = whole(o, "store_buffer", 8, 0, 256);
  s.cycles.fill(1);
  if (o.has("cycles")) {
    const JsonObject classes = o.object("cycles");
    for (int c = 0; c < kInsnClassCount; ++c)
      s.cycles[c] = cycles(classes, kInsnClassNames[c], 1, 1);
    classes.no_other_keys(" (docs/instruction_classes.md lists the classes)");
  }
  if (o.has("latency")) s.latency = parse_latencies(o.object("latency"));
  // A memory instruction has one class here: where it is served, caches say.
  s.cycles[static_cast<size_t>(InsnClass::kOnChipMemory)] =
      s.cycles[static_cast<size_t>(InsnClass::kOffChipMemory)];
  finish(o);
  return s;
}

CacheShape parse_cache(const JsonObject& o, uint32_t line_bytes, bool is_l2) {
  CacheShape s;
  s.size_bytes = size_of(o, "size");
  s.ways = whole(o, "ways", 1, 1, 1024);
  s.hit_cycles = cycles(o, "hit_cycles", 1, is_l2 ? 0 : 1);
  s.cycles_per_request = cycles(o, "cycles_per_request", 1, 0);
  s.is_write_back = one_of<bool>(o, "write", true, {{"back", true}, {"through", false}});
  if (is_l2) s.is_of_tile = one_of<bool>(o, "of", false, {{"core", false}, {"tile", true}});
  const uint64_t set = uint64_t{line_bytes} * s.ways;
  if (s.size_bytes % set != 0 || !std::has_single_bit(s.size_bytes / set))
    o.fail(fmt::format("{} bytes in {} ways of {} bytes are not a power of two of sets",
                       s.size_bytes, s.ways, line_bytes));
  finish(o);
  return s;
}

double clock_hz(const JsonObject& o, double hz) {
  if (hz > kMostHz) o.fail(fmt::format("\"clock_hz\" is {:g}; at most {:g} Hz", hz, kMostHz));
  return hz;
}

// Of a part that may have its own. What is given in its cycles is returned in those of the chip's
// clock, which have the limit.
class PartClock {
 public:
  PartClock(const JsonObject& o, double chip_hz)
      : o_(o), hz_(clock_hz(o, o.number_or("clock_hz", chip_hz, 1))), chip_hz_(chip_hz) {}

  double ratio() const { return chip_hz_ / hz_; }
  double cycles(const std::string& key, double fallback, double least = 0) const {
    const double cycles = ratio() * o_.number_or(key, fallback, least);
    check(key, cycles);
    return cycles;
  }
  // `cycles`: that follow from the key, in the chip's.
  void check(const std::string& key, double cycles) const {
    if (cycles <= kMostCycles) return;
    if (hz_ == chip_hz_) o_.fail(fmt::format("\"{}\" must be at most {:.0f}", key, kMostCycles));
    o_.fail(
        fmt::format("\"{}\" at a \"clock_hz\" of {:g} makes {:g} cycles of the chip's {:g} Hz; "
                    "at most {:.0f}",
                    key, hz_, cycles, chip_hz_, kMostCycles));
  }

 private:
  const JsonObject& o_;
  double hz_, chip_hz_;
};

SharedShape parse_shared(const JsonObject& o, uint32_t line_bytes, double chip_hz) {
  SharedShape s;
  const PartClock clock(o, chip_hz);
  s.is_scratchpad = one_of<bool>(o, "kind", false, {{"cache", false}, {"scratchpad", true}});
  s.slices = whole(o, "slices", 1, 1, 65536);
  s.cache.hit_cycles = clock.cycles("hit_cycles", 1);
  s.cache.cycles_per_request = clock.cycles("cycles_per_request", 1);
  s.folds_address = one_of<bool>(o, "hash", false, {{"interleave", false}, {"xor", true}});
  if (s.folds_address && !std::has_single_bit(s.slices))
    o.fail(fmt::format("\"hash\": \"xor\" needs \"slices\" that are a power of two, not {}",
                       s.slices));
  s.interleave_bytes =
      power_of_two(o, "interleave_bytes", line_bytes, s.is_scratchpad ? 4 : line_bytes, 1u << 20);
  if (!s.is_scratchpad) {
    s.cache.size_bytes = size_of(o, "size");
    s.cache.ways = whole(o, "ways", 1, 1, 1024);
    const uint64_t set = uint64_t{line_bytes} * s.cache.ways;
    if (s.cache.size_bytes % set != 0 || !std::has_single_bit(s.cache.size_bytes / set))
      o.fail(fmt::format("{} bytes in {} ways of {} bytes are not a power of two of sets",
                         s.cache.size_bytes, s.cache.ways, line_bytes));
    s.coherence = one_of<Coherence>(o, "coherence", Coherence::kNone,
                                    {{"none", Coherence::kNone}, {"mesi", Coherence::kMesi}});
    if (o.has("sharers") && o.get("sharers").is_string()) {
      if (o.text("sharers") != "all") o.fail("\"sharers\" must be a number or \"all\"");
    } else {
      s.sharers = whole(o, "sharers", 0, 1, 65536);
    }
  }
  finish(o);
  return s;
}

NetworkShape parse_network(const JsonObject& o, uint32_t line_bytes, double chip_hz) {
  NetworkShape s;
  const PartClock clock(o, chip_hz);
  s.flit_cycles = clock.ratio();
  s.topology = one_of<Topology>(o, "topology", Topology::kCrossbar,
                                {{"mesh", Topology::kMesh},
                                 {"torus", Topology::kTorus},
                                 {"ring", Topology::kRing},
                                 {"crossbar", Topology::kCrossbar},
                                 {"bus", Topology::kBus},
                                 {"hierarchical", Topology::kHierarchical}});
  s.columns = whole(o, "columns", 1, 1, 4096);
  s.rows = whole(o, "rows", 1, 1, 4096);
  constexpr uint32_t kMostTiles = 4096;
  if (s.columns * s.rows > kMostTiles)
    o.fail(fmt::format("\"columns\" times \"rows\" is more than {}", kMostTiles));
  s.router_cycles = clock.cycles("router_cycles", 1);
  s.link_cycles = clock.cycles("link_cycles", 1);
  s.flit_bytes = whole(o, "flit_bytes", 16, 1, 4096);
  s.header_bytes = whole(o, "header_bytes", 8, 1, 4096);
  // Of a message with a line.
  const double flits = std::ceil((line_bytes + s.header_bytes) / static_cast<double>(s.flit_bytes));
  clock.check("flit_bytes", flits * s.flit_cycles);
  if (s.topology == Topology::kHierarchical) {
    for (const JsonObject& level : o.objects("levels")) {
      const double ports = level.number_or("ports", 1, 0.01);
      clock.check("levels.ports", flits * s.flit_cycles / ports);
      const double cycles_between = s.flit_cycles * level.number_or("cycles", 1);
      clock.check("levels.cycles", cycles_between);
      s.levels.push_back({.tiles = whole(level, "tiles", 1, 1, kMostTiles),
                          .cycles = cycles_between,
                          .ports = ports / s.flit_cycles});
      const uint32_t inner = s.levels.size() > 1 ? s.levels[s.levels.size() - 2].tiles : 1;
      if (s.levels.back().tiles % inner != 0)
        level.fail(
            fmt::format("\"tiles\" must be a multiple of {}, those of the level before", inner));
      finish(level);
    }
    if (s.levels.empty() || s.levels.back().tiles != s.columns * s.rows)
      o.fail(fmt::format("the last of \"levels\" must have all {} tiles", s.columns * s.rows));
  }
  finish(o);
  return s;
}

MemoryShape parse_memory(const JsonObject& o, uint32_t tiles, uint32_t line_bytes, double chip_hz) {
  MemoryShape s;
  const PartClock clock(o, chip_hz);
  s.channels = whole(o, "channels", 1, 1, 1024);
  s.bytes_per_cycle = o.number_or("bytes_per_cycle", 8, 0.001) / clock.ratio();
  clock.check("bytes_per_cycle", line_bytes / s.bytes_per_cycle);
  s.latency_cycles = clock.cycles("latency_cycles", 100);
  s.open_page = one_of<bool>(o, "pages", false, {{"closed", false}, {"open", true}});
  if (s.open_page) {
    s.banks = whole(o, "banks", 8, 1, 1024);
    s.row_bytes = power_of_two(o, "row_bytes", 2048, 64, 1u << 20);
    const bool has_hits = o.has("row_hit_cycles");
    s.row_hit_cycles = has_hits ? clock.cycles("row_hit_cycles", 0) : s.latency_cycles;
  }
  if (o.has("tiles")) {
    o.read("tiles", s.tiles);
    if (s.tiles.size() != s.channels)
      o.fail(fmt::format("\"tiles\" must have {} numbers, one per channel", s.channels));
    for (const uint32_t tile : s.tiles)
      if (tile >= tiles) o.fail(fmt::format("\"tiles\" names tile {}, of {}", tile, tiles));
  }
  finish(o);
  return s;
}

EnergyShape parse_energy(const JsonObject& o) {
  EnergyShape s;
  s.l1_pj = o.number_or("l1_pj", 0);
  s.l1_instruction_pj = o.number_or("l1_instruction_pj", 0);
  s.l2_pj = o.number_or("l2_pj", 0);
  s.shared_pj = o.number_or("shared_pj", 0);
  s.flit_hop_pj = o.number_or("flit_hop_pj", 0);
  s.memory_pj_per_bit = o.number_or("memory_pj_per_bit", 0);
  s.static_w = o.number_or("static_w", 0);
  s.core_target = o.text_or("core_target", "");
  finish(o);
  return s;
}

// What one key says depends on others.
void check_whole(const JsonObject& file, const ChipShape& s) {
  const uint32_t wanted = s.cores.count / s.cores.per_tile;
  if (s.tiles() != wanted)
    file.fail(fmt::format("{} cores, {} to a tile, make {} tiles, but \"network\" has {} x {}",
                          s.cores.count, s.cores.per_tile, wanted, s.network.columns,
                          s.network.rows));
  if (s.shared.slices % s.tiles() != 0 && s.tiles() % s.shared.slices != 0)
    file.fail(
        fmt::format("\"shared.slices\" is {}: it must divide the {} tiles or be a multiple "
                    "of them",
                    s.shared.slices, s.tiles()));
  if (s.shared.is_scratchpad && (s.l1_data || s.l2))
    file.fail("a scratchpad that holds everything has no \"l1_data\" or \"l2\" before it");
  if (!s.shared.is_scratchpad && !s.l1_data) file.fail("\"l1_data\" is missing");
  if (s.shared.coherence == Coherence::kMesi) {
    if (s.l2 && s.l2->is_of_tile)
      file.fail("coherence \"mesi\" is between caches of cores: \"l2.of\" must be \"core\"");
    if (!s.l1_data->is_write_back)
      file.fail("coherence \"mesi\" needs \"l1_data.write\": \"back\"");
  }
  if (s.l2 && !s.l2->is_of_tile && !s.l1_data->is_write_back)
    file.fail("an \"l2\" of one core needs \"l1_data.write\": \"back\"");
}

void list_figures(const Json& json, const std::string& at, std::vector<std::string>& list) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      if (!at.empty() || (key != "sources" && key != "notes" && key != "name" && key != "title" &&
                          key != "schema"))
        list_figures(value, at.empty() ? key : at + "." + key, list);
    return;
  }
  if (!at.empty()) list.push_back(at);
}

}  // namespace

namespace {

ChipShape read_chip(const Json& json, const std::string& origin) {
  const JsonObject file(json, origin);
  if (file.text("schema") != "gpusim-chip-1") file.fail("\"schema\" must be \"gpusim-chip-1\"");
  ChipShape s;
  s.name = file.text("name");
  s.title = file.text_or("title", s.name);
  s.notes = file.texts("notes");
  if (file.has("sources")) {
    const JsonObject sources = file.object("sources");
    for (const auto& [key, value] : sources.json().items()) s.sources[key] = sources.text(key);
  }
  s.clock_hz = clock_hz(file, file.number("clock_hz", 1));
  s.line_bytes = power_of_two(file, "line_bytes", 64, 16, 512);
  s.interval_cycles = whole(file, "interval_cycles", 1000, 16, 1'000'000);
  s.cores = parse_cores(file.object("cores"));
  if (file.has("l1_data")) s.l1_data = parse_cache(file.object("l1_data"), s.line_bytes, false);
  if (file.has("l1_instruction"))
    s.l1_instruction = parse_cache(file.object("l1_instruction"), s.line_bytes, false);
  if (file.has("l2")) s.l2 = parse_cache(file.object("l2"), s.line_bytes, true);
  s.shared = parse_shared(file.object("shared"), s.line_bytes, s.clock_hz);
  s.network = parse_network(file.object("network"), s.line_bytes, s.clock_hz);
  s.memory = parse_memory(file.object("memory"), s.tiles(), s.line_bytes, s.clock_hz);
  if (file.has("energy")) s.energy = parse_energy(file.object("energy"));
  finish(file);
  check_whole(file, s);
  return s;
}

// The text of a chip that is built in, or of a file; and where it is from.
std::pair<std::string, std::string> text_of_chip(const std::string& name,
                                                 const std::string& option) {
  std::string known;
  for (const ChipShape& chip : builtin_chips()) {
    const size_t number = static_cast<size_t>(&chip - builtin_chips().data());
    const EmbeddedFile& file = builtin_chip_files()[number];
    if (chip.name == name) return {std::string(file.text), chip.name};
    known += (known.empty() ? "" : ", ") + chip.name;
  }
  if (!std::filesystem::exists(name))
    throw Error(
        fmt::format("--chip {}: no such chip or file{}; chips are {}, others are described "
                    "by a JSON file (docs/chip.md)",
                    option, nearest_file(name), known));
  return {read_text(name), name};
}

}  // namespace

ChipShape parse_chip(const std::string& text, const std::string& origin) {
  return read_chip(parse_json(text, origin), origin);
}

std::vector<std::string> figures_without_source(const std::string& text,
                                                const std::string& origin) {
  const Json json = parse_json(text, origin);
  std::vector<std::string> all, without;
  list_figures(json, "", all);
  const Json sources = json.value("sources", Json::object());
  // A source of "network" holds for "network.columns", too.
  const auto has_source = [&](const std::string& figure) {
    for (size_t end = figure.size(); end != std::string::npos && end != 0;
         end = figure.rfind('.', end - 1))
      if (sources.contains(figure.substr(0, end))) return true;
    return false;
  };
  for (const std::string& figure : all)
    if (!has_source(figure)) without.push_back(figure);
  return without;
}

const std::vector<ChipShape>& builtin_chips() {
  static const std::vector<ChipShape> chips = [] {
    std::vector<ChipShape> list;
    for (const EmbeddedFile& file : builtin_chip_files())
      list.push_back(parse_chip(file.text, file.name));
    return list;
  }();
  return chips;
}

ChipShape ideal_chip(uint32_t cores, const std::array<double, kInsnClassCount>& cycles,
                     double clock_hz) {
  constexpr uint32_t kWordBytes = 8;
  ChipShape s;
  s.name = "ideal";
  s.is_ideal = true;
  s.clock_hz = clock_hz;
  s.cores.count = s.cores.per_tile = cores;
  s.cores.cycles = cycles;
  s.shared.is_scratchpad = true;
  s.shared.interleave_bytes = kWordBytes;
  s.memory.tiles = {0};
  return s;
}

ChipShape find_chip(const std::string& option) {
  const ChangedChip chip = parse_changed_chip(option);
  const auto [text, origin] = text_of_chip(chip.name, option);
  Json json = parse_json(text, origin);
  if (chip.changes.empty()) return read_chip(json, origin);
  try {
    for (const Change& change : chip.changes) apply(change, json);
    ChipShape shape = read_chip(json, origin);
    shape.changes = chip.changes;
    for (const auto& [key, value] : chip.changes)
      shape.sources[key] = "changed by --chip: " + value;
    return shape;
  } catch (const Error& error) {
    throw Error(fmt::format("--chip {}: {}", option, error.what()));
  }
}

}  // namespace gpusim::host::chip
