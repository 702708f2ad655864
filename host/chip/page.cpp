// What a chip did, as a page: where time went, floor plan, traffic, roofline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "device_sim/base/chart_svg.h"
#include "device_sim/base/digits.h"
#include "device_sim/base/page.h"
#include "device_sim/base/svg.h"
#include "energy/report.h"
#include "host/chip/changes.h"
#include "host/chip/report.h"

namespace gpusim::host::chip {
namespace {

using page::heat_colour;
using page::Json;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
Json number(double x) { return page::rounded(x); }

std::array<double, kParts> stack_of(const Stack& ticks) {
  std::array<double, kParts> cycles{};
  for (size_t p = 0; p < kParts; ++p) cycles[p] = cycles_of(ticks[p]);
  return cycles;
}

Json stack_chart(const std::string& title, const std::vector<PlaceTime>& rows) {
  constexpr size_t kMost = 20;
  const size_t n = std::min(rows.size(), kMost);
  Json names = Json::array(), series = Json::array();
  for (size_t i = 0; i < n; ++i) names.push_back(rows[i].name.empty() ? "(unknown)" : rows[i].name);
  for (size_t p = 0; p < kParts; ++p) {
    Json values = Json::array();
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      values.push_back(number(rows[i].cycles[p]));
      sum += rows[i].cycles[p];
    }
    if (sum > 0) series.push_back({{"name", kPartNames[p]}, {"values", std::move(values)}});
  }
  return {{"kind", "bars"},
          {"title", title},
          {"categories", std::move(names)},
          {"y", {{"label", "cycles of all cores"}, {"scale", "linear"}, {"format", "count"}}},
          {"series", std::move(series)}};
}

// Cores, or groups of neighbouring ones.
std::vector<PlaceTime> stacks_of_cores(const ChipReport& r) {
  constexpr size_t kMost = 16;
  const auto& cores = r.result.totals.cores;
  const size_t per = (cores.size() + kMost - 1) / kMost;
  std::vector<PlaceTime> rows;
  for (size_t first = 0; first < cores.size(); first += per) {
    const size_t end = std::min(cores.size(), first + per);
    PlaceTime row{
        per == 1 ? fmt::format("core {}", first) : fmt::format("cores {} to {}", first, end - 1),
        {}};
    for (size_t c = first; c < end; ++c) {
      const auto stack = stack_of(cores[c]);
      for (size_t p = 0; p < kParts; ++p) row.cycles[p] += stack[p];
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json time_chart(const ChipReport& r) {
  Json series = Json::array();
  const auto add = [&](const char* name, double Sample::*value) {
    Json points = Json::array();
    for (const Sample& s : r.result.samples)
      points.push_back({number(cycles_of(s.begin + s.end) / 2), number(s.*value)});
    series.push_back({{"name", name}, {"points", std::move(points)}, {"marks", false}});
  };
  add("busiest link", &Sample::busiest_link);
  add("links, mean", &Sample::mean_link);
  add("memory channels, mean", &Sample::channels);
  add("slices, mean", &Sample::slices);
  return {{"kind", "lines"},
          {"title", "Use over time"},
          {"x", {{"label", "cycle"}, {"scale", "linear"}, {"format", "si"}}},
          {"y",
           {{"label", "share of what is possible"},
            {"scale", "linear"},
            {"format", "percent"},
            {"min", 0},
            {"max", 1}}},
          {"series", std::move(series)}};
}

// Operations are instructions that compute: integer and floating point.
Json roofline_chart(const ChipReport& r) {
  const double peak = r.peak_operations(), bandwidth = r.peak_bytes();
  const double here = share(r.operations, r.memory_bytes);
  const double ridge = peak / bandwidth;
  const double low = std::min(ridge, here > 0 ? here : ridge) / 16,
               high = std::max(ridge, here) * 16;
  Json roof = Json::array();
  for (int i = 0; i <= 32; ++i) {
    const double x = low * std::pow(high / low, i / 32.0);
    roof.push_back({number(x), number(std::min(peak, x * bandwidth))});
  }
  return {
      {"kind", "lines"},
      {"title", "Roofline"},
      {"note",
       "Operations are instructions that compute; bytes are those between the shared "
       "cache and memory."},
      {"x", {{"label", "operations per byte"}, {"scale", "log2"}, {"format", "number"}}},
      {"y", {{"label", "operations per second"}, {"scale", "log10"}, {"format", "si"}}},
      {"series",
       Json::array(
           {Json{{"name", "the chip's limit"}, {"style", "reference"}, {"points", std::move(roof)}},
            Json{{"name", "this program"},
                 {"labels", true},
                 {"points", Json::array({Json::array(
                                {number(here), number(share(r.operations, r.seconds))})})}}})}};
}

Json matrix_chart(const ChipReport& r) {
  const TileTraffic traffic = traffic_of(r);
  const uint32_t tiles = r.shape.tiles(), per = traffic.tiles_of_group;
  double most = 0;
  Json columns = Json::array(), cells = Json::array();
  for (size_t b = 0; b < traffic.bytes.size(); ++b) {
    columns.push_back(per == 1 ? fmt::format("{}", b) : fmt::format("{}…", b * per));
    Json column = Json::array();
    for (const auto& from : traffic.bytes) {
      const auto bytes = static_cast<double>(from[b]);
      most = std::max(most, bytes);
      column.push_back(number(bytes));
    }
    cells.push_back(std::move(column));
  }
  return {
      {"kind", "heat"},
      {"title", "Bytes from tile (rows) to tile (columns)"},
      {"columns", std::move(columns)},
      {"x", {{"label", "to tile"}}},
      {"y", {{"label", "from tile"}, {"min", 0}, {"max", tiles}, {"format", "count"}}},
      {"cells", std::move(cells)},
      {"value",
       {{"label", "bytes"}, {"format", "si"}, {"unit", "B"}, {"min", 0}, {"max", number(most)}}}};
}

Json table(const char* title, std::initializer_list<std::pair<const char*, const char*>> columns,
           Json rows) {
  Json list = Json::array();
  for (const auto& [name, format] : columns) list.push_back({{"name", name}, {"format", format}});
  return {{"title", title}, {"columns", std::move(list)}, {"rows", std::move(rows)}};
}

// What took most of the cores' time.
std::string answer(const ChipReport& r) {
  const double all = std::accumulate(r.stack.begin(), r.stack.end(), 0.0);
  if (all <= 0) return "";
  const auto most = std::ranges::max_element(r.stack);
  return fmt::format(
      "The run takes {} of the chip's time. Of the cores' cycles {:.3g} % go to {}{}.",
      energy::pretty(energy::Seconds(r.seconds)), 100 * share(*most, all),
      kPartNames[static_cast<size_t>(most - r.stack.begin())],
      r.energy.total_j > 0 ? "; it takes " + energy::pretty(energy::Joules(r.energy.total_j)) : "");
}

Json stack_table(const ChipReport& r) {
  const double all = std::accumulate(r.stack.begin(), r.stack.end(), 0.0);
  Json rows = Json::array();
  for (size_t p = 0; p < kParts; ++p)
    rows.push_back({kPartNames[p], number(r.stack[p]), number(share(r.stack[p], all))});
  return table("Cycles of all cores", {{"part", "text"}, {"cycles", "count"}, {"share", "percent"}},
               std::move(rows));
}

Json pairs_table(const char* title, const std::vector<ChipReport::Pair>& pairs) {
  Json rows = Json::array();
  for (const auto& p : pairs) rows.push_back({p.writer, p.reader, p.misses});
  return table(title, {{"who wrote", "text"}, {"who then missed", "text"}, {"misses", "count"}},
               std::move(rows));
}

void add_sharing(page::Page& p, const ChipReport& r) {
  p.add_section("Lines that cores take from each other");
  Json rows = Json::array();
  for (size_t k = 0; k < kMissKinds; ++k)
    rows.push_back({kMissNames[k], r.result.totals.misses[k]});
  p.add_table(table("Misses by cause", {{"why a line was missed", "text"}, {"misses", "count"}},
                    std::move(rows)),
              "misses");
  if (r.false_sharing.empty()) {
    p.add_text("No false sharing was seen.");
  } else {
    p.add_text(
        "False sharing: both lines of source use the same line of the cache, but different "
        "words of it.");
    p.add_table(pairs_table("False sharing", r.false_sharing), "false_sharing");
  }
  if (!r.true_sharing.empty())
    p.add_table(pairs_table("Sharing", r.true_sharing), "sharing", "Sharing");
}

void add_energy(page::Page& p, const ChipReport& r) {
  if (r.energy.total_j <= 0) return;
  p.add_section("Energy");
  Json rows = Json::array();
  for (const ChipEnergy::Row& row : r.energy.rows)
    rows.push_back(
        {row.name, number(row.joules), number(share(row.joules, r.energy.total_j)), row.events});
  p.add_text(fmt::format("{}, {} over the {} of the simulated chip.",
                         energy::pretty(energy::Joules(r.energy.total_j)),
                         energy::pretty(energy::Watts(share(r.energy.total_j, r.seconds))),
                         energy::pretty(energy::Seconds(r.seconds))));
  Json list = table("Energy by part",
                    {{"part", "text"}, {"energy", "si"}, {"share", "percent"}, {"events", "count"}},
                    std::move(rows));
  list["columns"][1]["unit"] = "J";
  p.add_table(std::move(list), "energy");
}

}  // namespace

std::string floor_plan_svg(const ChipReport& r) {
  constexpr double kWidth = 720, kLeft = 20, kTop = 40, kBelow = 56;
  const uint32_t columns = r.shape.network.columns, rows = r.shape.network.rows;
  const double pitch = std::min((kWidth - 2 * kLeft) / columns, 640.0 / rows);
  const double size = pitch * 0.72;
  const double height = kTop + pitch * rows + kBelow;
  Svg svg(kWidth, height, "Floor plan: stalls of tiles and use of links");
  svg.label(kLeft, 24,
            fmt::format("{}: share of time that the cores of a tile waited for memory and others",
                        r.shape.name),
            "title");
  const Totals& t = r.result.totals;
  const uint32_t per_tile = r.shape.cores.per_tile;
  const auto x_of = [&](uint32_t tile) { return kLeft + pitch * (tile % columns); };
  const auto y_of = [&](uint32_t tile) {
    const uint32_t row = tile / columns;
    return kTop + pitch * row;
  };
  for (uint32_t tile = 0; tile < r.shape.tiles(); ++tile) {
    double stalls = 0, all = 0;
    for (size_t c = size_t{tile} * per_tile;
         c < std::min<size_t>(t.cores.size(), size_t{tile + 1} * per_tile); ++c)
      for (size_t p = 0; p < kParts; ++p) {
        const double cycles = cycles_of(t.cores[c][p]);
        all += cycles;
        if (p != static_cast<size_t>(Part::kCompute)) stalls += cycles;
      }
    const double x = share(stalls, all);
    svg.bar(x_of(tile), y_of(tile), size, size, all > 0 ? heat_colour(x) : "none",
            all > 0 ? fmt::format("tile {}: {:.0f} % of the time waiting", tile, 100 * x)
                    : fmt::format("tile {}: no core runs here", tile));
    if (pitch >= 36)
      svg.label(x_of(tile) + size / 2, y_of(tile) + size / 2 + 4, fmt::format("{}", tile), "label",
                "middle",
                all <= 0  ? ""
                : x < 0.5 ? " style=\"fill:#ffffff\""
                          : " style=\"fill:#1b1f24\"");
  }
  const bool has_grid =
      r.shape.network.topology == Topology::kMesh || r.shape.network.topology == Topology::kTorus;
  if (has_grid) {
    constexpr uint32_t kDirections = 5;
    const double gap = pitch - size, lane = std::max(1.0, gap * 0.35);
    for (uint32_t tile = 0; tile < r.shape.tiles(); ++tile)
      for (uint32_t d = 0; d < 4; ++d) {
        const uint32_t x = tile % columns, y = tile / columns;
        if ((d == 0 && x + 1 == columns) || (d == 1 && x == 0) || (d == 2 && y + 1 == rows) ||
            (d == 3 && y == 0))
          continue;
        const double used = share(cycles_of(t.links[tile * kDirections + d]), r.use_cycles);
        if (used <= 0) continue;
        const std::string tip = fmt::format("link from tile {}: {:.1f} % used", tile, 100 * used);
        const double cx = x_of(tile), cy = y_of(tile);
        const std::string colour = heat_colour(used);
        if (d == 0) svg.bar(cx + size, cy + size * 0.25, gap, lane, colour, tip);
        if (d == 1) svg.bar(cx - gap, cy + size * 0.6, gap, lane, colour, tip);
        if (d == 2) svg.bar(cx + size * 0.25, cy + size, lane, gap, colour, tip);
        if (d == 3) svg.bar(cx + size * 0.6, cy - gap, lane, gap, colour, tip);
      }
  }
  const double legend = height - 30;
  for (int i = 0; i < 20; ++i) svg.bar(kLeft + 8.0 * i, legend, 8, 12, heat_colour(i / 19.0), "");
  svg.label(kLeft + 168, legend + 10,
            has_grid ? "0 to 100 %; strips between tiles are links that were used" : "0 to 100 %");
  return svg.finish();
}

TileTraffic traffic_of(const ChipReport& r) {
  constexpr uint32_t kMost = 32;
  const uint32_t tiles = r.shape.tiles();
  TileTraffic traffic{.tiles_of_group = (tiles + kMost - 1) / kMost, .bytes = {}};
  const uint32_t per = traffic.tiles_of_group, n = (tiles + per - 1) / per;
  traffic.bytes.assign(n, std::vector<uint64_t>(n, 0));
  for (uint32_t a = 0; a < tiles; ++a)
    for (uint32_t b = 0; b < tiles; ++b)
      traffic.bytes[a / per][b / per] += r.result.totals.bytes_between[size_t{a} * tiles + b];
  return traffic;
}

namespace {

// How the chip is named with its changes, and what it did in short.
struct ChipSummary {
  std::string chip, figures, answer;
};
ChipSummary summary_of(const ChipReport& r) {
  uint64_t instructions = 0;
  for (const CoreCounts& c : r.result.totals.counts) instructions += c.instructions;
  return {
      .chip = text_of(ChangedChip{r.shape.name, r.shape.changes}),
      .figures = fmt::format("{} cycles, {}; {} instructions on {} cores, {:.3g} per cycle{}{}",
                             grouped(static_cast<uint64_t>(std::llround(r.cycles))),
                             energy::pretty(energy::Seconds(r.seconds)), grouped(instructions),
                             grouped(r.cores), share(static_cast<double>(instructions), r.cycles),
                             r.result.has_region ? "; region of interest only" : "",
                             r.result.sampled ? "; sampled" : ""),
      .answer = answer(r)};
}

void add_pictures(page::Page& p, const ChipReport& r) {
  for (const std::string& remark : r.remarks) p.add_text("Note: " + remark + ".");
  p.add_section("Where the time goes");
  p.add_table(stack_table(r), "stack");
  p.add_charts("by", {{"cores", stack_chart("Time by core", stacks_of_cores(r))},
                      {"functions", stack_chart("Time by function", r.functions)},
                      {"lines", stack_chart("Time by line", r.lines)}});
  p.add_section("Floor plan");
  p.add_html(floor_plan_svg(r));
  p.add_section("Traffic");
  p.add_chart(matrix_chart(r));
  if (!r.result.samples.empty()) p.add_chart(time_chart(r));
  p.add_section("Limits");
  if (r.operations > 0 && r.memory_bytes > 0) p.add_chart(roofline_chart(r));
  const auto most = [&](const std::vector<Ticks>& used) {
    return number(used.empty() ? 0
                               : share(cycles_of(*std::ranges::max_element(used)), r.use_cycles));
  };
  const auto mean = [&](const std::vector<Ticks>& used) {
    double sum = 0;
    for (const Ticks u : used) sum += cycles_of(u);
    return number(used.empty() ? 0 : share(sum / static_cast<double>(used.size()), r.use_cycles));
  };
  const Totals& t = r.result.totals;
  p.add_table(
      table("Use of links, slices and memory channels",
            {{"what", "text"}, {"busiest", "percent"}, {"mean", "percent"}},
            Json::array({Json::array({"links", most(t.links), mean(t.links)}),
                         Json::array({"slices", most(t.slices), mean(t.slices)}),
                         Json::array({"memory channels", most(t.channels), mean(t.channels)})})),
      "limits");
  add_sharing(p, r);
  add_energy(p, r);
  p.add_section("The chip");
  Json sources = Json::array();
  for (const auto& [figure, source] : r.shape.sources) sources.push_back({figure, source});
  p.add_table(table("Where its figures are from",
                    {{"figure", "text"}, {"where it is from", "wide"}}, std::move(sources)),
              "chip");
  for (const std::string& note : r.shape.notes) p.add_text(note);
}

}  // namespace

std::string chip_html(const ChipReport& r, const std::string& program) {
  const ChipSummary summary = summary_of(r);
  page::Page p(fmt::format("{} on chip {}", std::filesystem::path(program).filename().string(),
                           summary.chip));
  p.set_subtitle(summary.figures);
  p.set_answer(summary.answer);
  add_pictures(p, r);
  return p.html();
}

void add_to_page(page::Page& p, const ChipReport& r) {
  const ChipSummary summary = summary_of(r);
  p.add_section("On chip " + summary.chip);
  p.add_text(summary.figures + ".");
  if (!summary.answer.empty()) p.add_text(summary.answer);
  add_pictures(p, r);
}

}  // namespace gpusim::host::chip
