// What a chip did, as text for people, as JSON for programs and as a page.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "energy/target.h"
#include "host/chip/chip_model.h"

namespace gpusim::page {
class Page;
}

namespace gpusim::host::chip {

// Of a part of the program.
struct PlaceTime {
  std::string name;  // function, or line
  std::array<double, kParts> cycles{};
  double total() const;
};

struct ChipEnergy {
  struct Row {
    std::string name;
    double joules = 0;
    uint64_t events = 0;
  };
  std::vector<Row> rows;
  double total_j = 0, seconds = 0;
};

struct ChipReport {
  ChipShape shape;
  ChipResult result;
  uint32_t cores = 0;  // simulated
  double cycles = 0, seconds = 0;
  double use_cycles = 0;               // that use of links, slices and channels is of
  std::array<double, kParts> stack{};  // cycles, all cores together
  std::vector<PlaceTime> functions, lines;
  struct Pair {
    std::string writer, reader;
    uint64_t misses = 0;
  };
  std::vector<Pair> false_sharing, true_sharing;  // most first
  ChipEnergy energy;
  double operations = 0;  // of floating point and integers, as instructions
  double memory_bytes = 0;
  std::vector<std::string> remarks;
  // Per second: of all cores, and of all memory channels.
  double peak_operations() const { return cores * shape.cores.issue_width * shape.clock_hz; }
  double peak_bytes() const {
    return shape.memory.channels * shape.memory.bytes_per_cycle * shape.clock_hz;
  }
};

// `name_of` and `line_of`: of an address. `cores_j`: what instructions take that access no memory.
struct ChipSources {
  std::function<std::string(uint64_t pc)> function_at, line_at;
};
ChipReport make_report(const ChipModel& chip, ChipResult result, const ChipSources& sources,
                       const energy::Target* core_target);

std::string chip_text(const ChipReport& report);
nlohmann::ordered_json chip_json(const ChipReport& report, bool per_core);
std::string chip_html(const ChipReport& report, const std::string& program);
// The same as sections of a page that tells more, the first of which has the chip's name.
void add_to_page(page::Page& page, const ChipReport& report);
// Bytes from tiles to tiles, or from groups of neighbouring ones to such groups: at most 32.
struct TileTraffic {
  uint32_t tiles_of_group = 1;
  std::vector<std::vector<uint64_t>> bytes;  // [from][to]
};
TileTraffic traffic_of(const ChipReport& report);
// The floor plan: tiles by how long their cores waited for memory, links by how full they were.
std::string floor_plan_svg(const ChipReport& report);

// What cores, links and channels did when, for Perfetto. The chip recorded a timeline.
std::string chip_timeline_json(const ChipReport& report, const std::string& program);

// For `gpusim info --chips`.
std::string chip_list_text();
std::string chip_list_json();  // with where each figure is from

}  // namespace gpusim::host::chip
