#include "host/chip/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>

#include "device_sim/base/digits.h"
#include "energy/quantities.h"
#include "energy/report.h"
#include "host/chip/changes.h"

namespace gpusim::host::chip {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPlaces = 200, kMostPairs = 20;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
double count_of(uint64_t n) { return static_cast<double>(n); }

uint64_t pc_of(const Module& module, uint64_t unit) {
  return module.code.text_base + (unit << module.code.pc_shift);
}

// Time per word of the code map: stalls as they were charged, and instructions by executions.
std::vector<std::array<double, kParts>> times_by_unit(const ProgramModel& program,
                                                      const Totals& t) {
  std::vector<std::array<double, kParts>> at(t.at[0].size());
  for (size_t p = 0; p < kParts; ++p)
    for (size_t u = 0; u < t.at[p].size(); ++u) at[u][p] = cycles_of(t.at[p][u]);
  const Module& module = program.module();
  for (size_t b = 0; b < t.executions.size(); ++b) {
    if (t.executions[b] == 0) continue;
    const Block& block = module.blocks[b];
    for (uint32_t i = 0; i < block.insn_count; ++i) {
      const auto unit = static_cast<size_t>(module.code.unit_of(insn_pc(module, block, i)));
      if (unit < at.size())
        at[unit][static_cast<size_t>(Part::kCompute)] +=
            count_of(t.executions[b]) *
            cycles_of(program.cost_of_unit(static_cast<uint32_t>(unit)));
    }
  }
  return at;
}

std::vector<PlaceTime> places_by(const std::vector<std::array<double, kParts>>& at,
                                 const Module& module,
                                 const std::function<std::string(uint64_t)>& name_of) {
  std::unordered_map<std::string, std::array<double, kParts>> sums;
  for (size_t u = 0; u < at.size(); ++u) {
    if (std::ranges::all_of(at[u], [](double x) { return x == 0; })) continue;
    auto& sum = sums[name_of(pc_of(module, u))];
    for (size_t p = 0; p < kParts; ++p) sum[p] += at[u][p];
  }
  std::vector<PlaceTime> list;
  for (const auto& [name, cycles] : sums) list.push_back({name, cycles});
  std::sort(list.begin(), list.end(), [](const PlaceTime& a, const PlaceTime& b) {
    return a.total() != b.total() ? a.total() > b.total() : a.name < b.name;
  });
  if (list.size() > kMostPlaces) list.resize(kMostPlaces);
  return list;
}

std::vector<ChipReport::Pair> pairs_of(
    const std::map<std::pair<uint32_t, uint32_t>, uint64_t>& by_unit, const Module& module,
    const ChipSources& sources) {
  const auto name = [&](uint32_t unit) {
    const uint64_t pc = pc_of(module, unit);
    const std::string line = sources.line_at(pc), function = sources.function_at(pc);
    if (line.empty()) return function.empty() ? fmt::format("{:#x}", pc) : function;
    return function.empty() ? line : fmt::format("{} ({})", line, function);
  };
  std::map<std::pair<std::string, std::string>, uint64_t> sums;
  for (const auto& [units, misses] : by_unit)
    if (misses != 0) sums[{name(units.first), name(units.second)}] += misses;
  std::vector<ChipReport::Pair> list;
  for (const auto& [names, misses] : sums) list.push_back({names.first, names.second, misses});
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.misses > b.misses; });
  if (list.size() > kMostPairs) list.resize(kMostPairs);
  return list;
}

CoreCounts sum_of(const std::vector<CoreCounts>& cores) {
  CoreCounts s;
  for (const CoreCounts& c : cores) {
    s.instructions += c.instructions;
    s.l1_accesses += c.l1_accesses;
    s.l1_misses += c.l1_misses;
    s.l2_accesses += c.l2_accesses;
    s.l2_misses += c.l2_misses;
    s.fetches += c.fetches;
    s.fetch_misses += c.fetch_misses;
    s.skipped += c.skipped;
  }
  return s;
}

// Instructions by class, of blocks that count towards time.
std::array<double, kInsnClassCount> classes_of(const ChipReport& r, const Module& module) {
  std::array<double, kInsnClassCount> sums{};
  for (size_t b = 0; b < r.result.totals.executions.size(); ++b)
    for (int c = 0; c < kInsnClassCount; ++c)
      sums[c] += count_of(r.result.totals.executions[b]) * count_of(module.blocks[b].classes[c]);
  return sums;
}

ChipEnergy energy_of(const ChipReport& r, const std::array<double, kInsnClassCount>& classes,
                     const energy::Target* core_target) {
  constexpr double kPico = 1e-12, kBitsPerByte = 8;
  const EnergyShape& e = r.shape.energy;
  const MemoryCounts& m = r.result.totals.memory;
  const CoreCounts c = sum_of(r.result.totals.counts);
  ChipEnergy out;
  out.seconds = r.seconds;
  const auto add = [&](const char* name, double joules, uint64_t events) {
    out.rows.push_back({name, joules, events});
    out.total_j += joules;
  };
  if (core_target) {
    double joules = 0;
    uint64_t events = 0;
    for (int k = 0; k < kInsnClassCount; ++k) {
      const auto cls = static_cast<InsnClass>(k);
      if (cls == InsnClass::kOnChipMemory || cls == InsnClass::kOffChipMemory) continue;
      joules += classes[k] * core_target->cost(cls).energy.value.value();
      events += static_cast<uint64_t>(classes[k]);
    }
    add("instructions", joules, events);
  }
  if (r.shape.l1_data) add("l1_data", count_of(c.l1_accesses) * e.l1_pj * kPico, c.l1_accesses);
  if (r.shape.l1_instruction)
    add("l1_instruction", count_of(c.fetches) * e.l1_instruction_pj * kPico, c.fetches);
  if (r.shape.l2) {
    const uint64_t n = r.shape.l2->is_of_tile ? m.l2_accesses : c.l2_accesses;
    add("l2", count_of(n) * e.l2_pj * kPico, n);
  }
  add("shared", count_of(m.shared_accesses) * e.shared_pj * kPico, m.shared_accesses);
  add("network", count_of(m.flit_hops) * e.flit_hop_pj * kPico, m.flit_hops);
  add("memory", r.memory_bytes * kBitsPerByte * e.memory_pj_per_bit * kPico,
      m.memory_reads + m.memory_writes);
  if (e.static_w > 0) add("static", e.static_w * r.seconds, 0);
  return out;
}

}  // namespace

double PlaceTime::total() const { return std::accumulate(cycles.begin(), cycles.end(), 0.0); }

ChipReport make_report(const ChipModel& chip, ChipResult result, const ChipSources& sources,
                       const energy::Target* core_target) {
  ChipReport r;
  r.shape = chip.shape();
  r.result = std::move(result);
  const Totals& t = r.result.totals;
  r.cores = static_cast<uint32_t>(t.cores.size());
  r.cycles = r.use_cycles = cycles_of(t.time);
  if (r.result.sampled && r.result.sampled->pieces != 0) {
    r.cycles = r.result.sampled->cycles;
    r.use_cycles = cycles_of(r.result.in_detail);
  }
  r.seconds = r.cycles / r.shape.clock_hz;
  for (const Stack& s : t.cores)
    for (size_t p = 0; p < kParts; ++p) r.stack[p] += cycles_of(s[p]);
  const Module& module = chip.program().module();
  const auto at = times_by_unit(chip.program(), t);
  r.functions = places_by(at, module, sources.function_at);
  r.lines = places_by(at, module, sources.line_at);
  if (r.lines.size() == 1 && r.lines[0].name.empty()) r.lines.clear();
  r.false_sharing = pairs_of(t.false_sharing, module, sources);
  r.true_sharing = pairs_of(t.true_sharing, module, sources);
  r.memory_bytes = count_of(t.memory.memory_reads + t.memory.memory_writes) * r.shape.line_bytes;
  const auto classes = classes_of(r, module);
  for (int c = 0; c < kInsnClassCount; ++c) {
    const auto cls = static_cast<InsnClass>(c);
    if (cls != InsnClass::kOnChipMemory && cls != InsnClass::kOffChipMemory &&
        cls != InsnClass::kControlFlow && cls != InsnClass::kParallelism &&
        cls != InsnClass::kOther)
      r.operations += classes[c];
  }
  r.energy = energy_of(r, classes, core_target);
  if (r.result.unexplained_waits != 0)
    r.remarks.push_back(fmt::format(
        "{} waits ended without a write that the model knows of; each took no time from there",
        r.result.unexplained_waits));
  if (r.result.forced != 0)
    r.remarks.push_back(
        fmt::format("cores ran so far apart that the order of their requests was given up {} times",
                    r.result.forced));
  if (const auto& sampled = r.result.sampled) {
    constexpr size_t kFew = 10;
    if (sampled->pieces == 0)
      r.remarks.push_back("no piece of the run was simulated in detail: it is too short for that");
    else if (sampled->pieces < kFew)
      r.remarks.push_back(
          fmt::format("{} pieces in detail are few: how sure the cycles are is itself not sure",
                      sampled->pieces));
  }
  const auto& range = chip.program().range();
  if (range && range->end != ~uint64_t{0} && r.result.has_region && !r.result.region_has_ended)
    r.remarks.push_back("the run ended before the region of interest did");
  if ((range || chip.program().region_is_function()) && !r.result.has_region)
    r.remarks.push_back("the region of interest was never reached: figures are of the whole run");
  if (chip.program().has_too_many_schedules())
    r.remarks.push_back(
        "there were so many states of the pipeline that some blocks began as if no result was "
        "under way");
  return r;
}

std::string chip_text(const ChipReport& r) {
  const Totals& t = r.result.totals;
  const CoreCounts c = sum_of(t.counts);
  const double all = std::accumulate(r.stack.begin(), r.stack.end(), 0.0);
  std::string text = fmt::format(
      "chip {}: {} cycles{}, {} at {}; {:.3f} instructions per cycle on {} cores\n",
      text_of(ChangedChip{r.shape.name, r.shape.changes}),
      grouped(static_cast<uint64_t>(std::llround(r.cycles))),
      r.result.has_region ? " in the region of interest" : "",
      energy::pretty(energy::Seconds(r.seconds)), fmt::format("{:g} MHz", r.shape.clock_hz / 1e6),
      share(count_of(c.instructions), r.cycles), r.cores);
  if (const auto& sampled = r.result.sampled; sampled && sampled->pieces != 0)
    text += fmt::format(
        "  sampled: {} pieces, {:.2g}% of the instructions in detail{}\n", sampled->pieces,
        100 * share(count_of(sampled->instructions), count_of(c.instructions)),
        sampled->uncertainty < 0 ? ""
                                 : fmt::format("; error of the cycles: {:.2g}%",
                                               100 * share(sampled->error(), r.cycles)));
  text += "  of the cores' time:";
  for (size_t p = 0; p < kParts; ++p)
    if (r.stack[p] > 0)
      text += fmt::format("  {} {:.1f}%", kPartNames[p], 100 * share(r.stack[p], all));
  text += "\n";
  if (r.shape.l1_data) {
    const uint64_t misses = std::accumulate(t.misses.begin(), t.misses.end(), uint64_t{0});
    text += fmt::format("  L1: {} accesses, {:.2f}% miss; lines missed:", grouped(c.l1_accesses),
                        100 * share(count_of(c.l1_misses), count_of(c.l1_accesses)));
    for (size_t m = 0; m < kMissKinds; ++m)
      if (t.misses[m] != 0)
        text += fmt::format("  {} {:.1f}%", kMissNames[m],
                            100 * share(count_of(t.misses[m]), count_of(misses)));
    text += "\n";
  }
  const auto busiest = [&](const std::vector<Ticks>& used) {
    const Ticks most = used.empty() ? 0 : *std::ranges::max_element(used);
    return 100 * share(cycles_of(most), r.use_cycles);
  };
  text += fmt::format(
      "  busiest: link {:.1f}%, slice {:.1f}%, memory channel {:.1f}%; memory {} ({:.2f} GB/s)\n",
      busiest(t.links), busiest(t.slices), busiest(t.channels),
      fmt::format("{} lines read, {} written", grouped(t.memory.memory_reads),
                  grouped(t.memory.memory_writes)),
      r.seconds > 0 ? r.memory_bytes / r.seconds / 1e9 : 0);
  for (const ChipReport::Pair& pair : r.false_sharing)
    text += fmt::format("  false sharing: {} misses at {}, of lines that {} wrote\n",
                        grouped(pair.misses), pair.reader, pair.writer);
  if (r.energy.total_j > 0) {
    text += fmt::format("  energy {}:", energy::pretty(energy::Joules(r.energy.total_j)));
    for (const ChipEnergy::Row& row : r.energy.rows)
      if (row.joules > 0)
        text += fmt::format("  {} {:.1f}%", row.name, 100 * share(row.joules, r.energy.total_j));
    text += "\n";
  }
  for (const std::string& remark : r.remarks) text += "  note: " + remark + "\n";
  return text;
}

namespace {

Json stack_json(const std::array<double, kParts>& stack) {
  Json object = Json::object();
  for (size_t p = 0; p < kParts; ++p) object[kPartNames[p]] = stack[p];
  return object;
}
Json stack_json(const Stack& stack) {
  Json object = Json::object();
  for (size_t p = 0; p < kParts; ++p) object[kPartNames[p]] = cycles_of(stack[p]);
  return object;
}
Json places_json(const char* key, const std::vector<PlaceTime>& places) {
  Json list = Json::array();
  for (const PlaceTime& p : places)
    list.push_back({{key, p.name}, {"cycles", p.total()}, {"stack", stack_json(p.cycles)}});
  return list;
}
// What instructions that compute, and bytes from and to memory, could be at most, and were.
Json roofline_json(const ChipReport& r) {
  return {{"peak_operations_per_second", r.peak_operations()},
          {"peak_bytes_per_second", r.peak_bytes()},
          {"operations_per_second", share(r.operations, r.seconds)},
          {"operations_per_byte",
           r.memory_bytes > 0 ? Json(r.operations / r.memory_bytes) : Json(nullptr)}};
}
Json pairs_json(const std::vector<ChipReport::Pair>& pairs) {
  Json list = Json::array();
  for (const auto& p : pairs)
    list.push_back({{"writer", p.writer}, {"reader", p.reader}, {"misses", p.misses}});
  return list;
}

}  // namespace

Json chip_json(const ChipReport& r, bool per_core) {
  const Totals& t = r.result.totals;
  const CoreCounts c = sum_of(t.counts);
  const MemoryCounts& m = t.memory;
  Json misses = Json::object();
  for (size_t k = 0; k < kMissKinds; ++k) misses[kMissNames[k]] = t.misses[k];
  const auto use = [&](const std::vector<Ticks>& used) {
    Json list = Json::array();
    for (const Ticks u : used) list.push_back(share(cycles_of(u), r.use_cycles));
    return list;
  };
  Json samples = Json::array();
  for (const Sample& s : r.result.samples)
    samples.push_back({{"begin", cycles_of(s.begin)},
                       {"end", cycles_of(s.end)},
                       {"busiest_link", s.busiest_link},
                       {"mean_link", s.mean_link},
                       {"channels", s.channels},
                       {"slices", s.slices},
                       {"instructions_per_cycle", s.instructions_per_cycle}});
  Json rows = Json::array();
  for (const ChipEnergy::Row& row : r.energy.rows)
    rows.push_back({{"part", row.name}, {"joules", row.joules}, {"events", row.events}});
  Json changes = Json::object();
  for (const auto& [key, value] : r.shape.changes) changes[key] = value;
  Json object = {
      {"name", r.shape.name},
      {"changes", std::move(changes)},
      {"cycles", r.cycles},
      {"seconds", r.seconds},
      {"clock_hz", r.shape.clock_hz},
      {"begin_cycle", cycles_of(r.result.begin)},
      {"region_of_interest", r.result.has_region},
      {"instructions", c.instructions},
      {"skipped_instructions", c.skipped},
      {"instructions_per_cycle", share(count_of(c.instructions), r.cycles)},
      {"stack", stack_json(r.stack)},
      {"misses", std::move(misses)},
      {"l1", {{"accesses", c.l1_accesses}, {"misses", c.l1_misses}}},
      {"l1_instruction", {{"fetches", c.fetches}, {"misses", c.fetch_misses}}},
      {"l2", {{"accesses", c.l2_accesses + m.l2_accesses}, {"misses", c.l2_misses + m.l2_misses}}},
      {"shared",
       {{"accesses", m.shared_accesses},
        {"misses", m.shared_misses},
        {"queued_cycles", cycles_of(m.shared_queued)}}},
      {"coherence",
       {{"invalidations", m.invalidations},
        {"broadcasts", m.broadcasts},
        {"forwards", m.forwards}}},
      {"network",
       {{"messages", m.messages},
        {"flit_hops", m.flit_hops},
        {"queued_cycles", cycles_of(m.network_queued)}}},
      {"memory",
       {{"line_reads", m.memory_reads},
        {"line_writes", m.memory_writes},
        {"row_hits", m.row_hits},
        {"bytes", r.memory_bytes},
        {"bytes_per_second", share(r.memory_bytes, r.seconds)},
        {"queued_cycles", cycles_of(m.memory_queued)}}},
      {"locks", {{"taken", t.locks}, {"contended", t.contended_locks}}},
      {"operations", r.operations},
      {"roofline", roofline_json(r)},
      {"energy",
       {{"joules", r.energy.total_j},
        {"watts", share(r.energy.total_j, r.seconds)},
        {"parts", std::move(rows)}}},
      {"false_sharing", pairs_json(r.false_sharing)},
      {"true_sharing", pairs_json(r.true_sharing)},
      {"functions", places_json("function", r.functions)},
      {"lines", places_json("line", r.lines)},
      {"link_use", use(t.links)},
      {"slice_use", use(t.slices)},
      {"channel_use", use(t.channels)},
      {"samples", std::move(samples)},
      {"remarks", r.remarks}};
  if (const auto& sampled = r.result.sampled)
    object["sampling"] = {
        {"pieces", sampled->pieces},
        {"instructions", sampled->instructions},
        {"cycles", sampled->detail_cycles},
        {"uncertainty_95_cycles",
         sampled->uncertainty < 0 ? Json(nullptr) : Json(sampled->uncertainty)},
        {"modelled_cycles", sampled->modelled_cycles},
        {"error_cycles", sampled->uncertainty < 0 ? Json(nullptr) : Json(sampled->error())}};
  constexpr uint32_t kMostTiles = 64;
  if (r.shape.tiles() <= kMostTiles) object["bytes_between_tiles"] = t.bytes_between;
  const TileTraffic traffic = traffic_of(r);
  object["traffic"] = {{"tiles_of_group", traffic.tiles_of_group}, {"bytes", traffic.bytes}};
  if (!per_core) return object;
  Json list = Json::array();
  for (size_t core = 0; core < t.cores.size(); ++core)
    list.push_back({{"core", core},
                    {"cycles", cycles_of(r.result.clocks[core])},
                    {"instructions", t.counts[core].instructions},
                    {"held_up_cycles", cycles_of(t.held_up[core])},
                    {"stack", stack_json(t.cores[core])}});
  object["per_core"] = std::move(list);
  return object;
}

std::string chip_list_text() {
  std::string text;
  for (const ChipShape& chip : builtin_chips())
    text += fmt::format("{:<14} {:>5} cores  {}\n", chip.name, chip.cores.count, chip.title);
  return text;
}

std::string chip_list_json() {
  Json list = Json::array();
  for (const ChipShape& chip : builtin_chips())
    list.push_back({{"name", chip.name},
                    {"title", chip.title},
                    {"cores", chip.cores.count},
                    {"sources", chip.sources},
                    {"notes", chip.notes}});
  return list.dump(2) + "\n";
}

}  // namespace gpusim::host::chip
