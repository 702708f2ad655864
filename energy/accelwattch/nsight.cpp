// Nsight Compute's CSV export as activity.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "device_sim/base/error.h"
#include "energy/accelwattch/activity.h"

namespace gpusim::accelwattch {
namespace {

using Metrics = std::map<std::string, double>;  // of one launch, in base units

struct Launch {
  std::string kernel;
  size_t line = 0;
  Metrics metrics;
};

// "Kbyte", "usecond", "Ghz": the exporter scales bytes, times and frequencies as it likes.
double unit_scale(std::string_view unit) {
  const std::string text = lower(unit);
  for (const std::string_view base :
       {"byte", "second", "hz", "inst", "sector", "cycle", "request"}) {
    const size_t at = text.find(base);
    if (at == std::string::npos) continue;
    if (at != 1) return 1;
    switch (unit.front()) {
      case 'n':
        return 1e-9;
      case 'u':
        return 1e-6;
      case 'm':
        return base == "second" ? 1e-3 : 1e6;
      case 'k':
      case 'K':
        return 1e3;
      case 'M':
        return 1e6;
      case 'G':
        return 1e9;
      case 'T':
        return 1e12;
      default:
        return 1;
    }
  }
  if (text == "nsecond" || text == "ns") return 1e-9;
  if (text == "us") return 1e-6;
  if (text == "ms") return 1e-3;
  return 1;
}

double metric_value(const CsvTable& table, const CsvRow& row, size_t column,
                    const std::string& metric, const std::string& unit) {
  const auto value = parse_number(row.cells[column], table.separator == ';', true);
  const auto fail = [&](const std::string& what) {
    throw Error(fmt::format("{}: line {}: metric {}: {} {}", table.source, row.line, metric,
                            row.cells[column], what));
  };
  if (!value) fail("is no number");
  if (!std::isfinite(*value)) fail("is not finite");
  if (*value < 0) fail("is negative");
  return *value * unit_scale(unit);
}

bool is_metric(const std::string& name) { return name.find("__") != std::string::npos; }

// A row per metric: "ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value".
std::vector<Launch> read_details(const CsvTable& table) {
  const size_t id = table.require("ID"), kernel = table.require("Kernel Name"),
               name = table.require("Metric Name"), unit = table.require("Metric Unit"),
               value = table.require("Metric Value");
  std::vector<Launch> launches;
  std::map<std::string, size_t> by_id;
  for (const CsvRow& row : table.rows) {
    const auto [found, is_new] = by_id.try_emplace(row.cells[id], launches.size());
    if (is_new) launches.push_back({row.cells[kernel], row.line, {}});
    if (!is_metric(row.cells[name])) continue;  // headings of sections
    launches[found->second].metrics[row.cells[name]] =
        metric_value(table, row, value, row.cells[name], row.cells[unit]);
  }
  return launches;
}

// A column per metric; the first row below the header has the units.
std::vector<Launch> read_raw(const CsvTable& table) {
  const size_t kernel = table.require("Kernel Name");
  std::vector<std::string> units(table.header.size());
  size_t first = 0;
  if (trim(table.rows[0].cells[kernel]).empty()) {
    units = table.rows[0].cells;
    first = 1;
  }
  std::vector<Launch> launches;
  for (size_t r = first; r < table.rows.size(); ++r) {
    const CsvRow& row = table.rows[r];
    Launch launch{row.cells[kernel], row.line, {}};
    for (size_t c = 0; c < table.header.size(); ++c) {
      if (!is_metric(table.header[c]) || trim(row.cells[c]).empty()) continue;
      launch.metrics[table.header[c]] = metric_value(table, row, c, table.header[c], units[c]);
    }
    launches.push_back(std::move(launch));
  }
  return launches;
}

// Of one kernel, over its launches.
class Counters {
 public:
  Counters(const Metrics& metrics, std::vector<std::string>& missing)
      : metrics_(metrics), missing_(missing) {}

  // sm__ and smsp__ count the same; their sums are equal.
  std::optional<double> find(const std::string& name) const {
    for (const std::string& n : {name, "smsp" + name.substr(2)}) {
      const auto found = metrics_.find(n);
      if (found != metrics_.end()) return found->second;
      if (!name.starts_with("sm__")) break;
    }
    return std::nullopt;
  }
  double get(const std::string& name, const char* what) const {
    if (const auto value = find(name)) return *value;
    missing_.push_back(fmt::format("{} ({})", what, name));
    return 0;
  }
  double or_zero(const std::string& name) const { return find(name).value_or(0); }

 private:
  const Metrics& metrics_;
  std::vector<std::string>& missing_;
};

KernelActivity convert(const Launch& launch, const Model& model, const ActivityOptions& options,
                       const std::string& source, std::vector<std::string>& missing) {
  const ChipModel& chip = *model.chip;
  const Counters m(launch.metrics, missing);
  KernelActivity k;
  k.name = launch.kernel;
  k.counts.assign(chip.counters.size(), 0.0);
  const auto set = [&](const char* counter, double count) {
    const int i = chip.find_counter(counter);
    if (i >= 0) k.counts[static_cast<size_t>(i)] = std::max(0.0, count);
  };
  const Hertz clock = options.clock.value_or(chip.clock);
  std::optional<double> cycles = m.find("sm__cycles_elapsed.avg");
  if (!cycles) cycles = m.find("sm__cycles_elapsed.max");
  const auto all_cycles = m.find("sm__cycles_elapsed.sum");
  if (all_cycles) cycles = *all_cycles / chip.sms;
  const auto duration = m.find("gpu__time_duration.sum");
  if (!cycles && !duration)
    throw Error(
        fmt::format("{}: kernel {} has no time: neither sm__cycles_elapsed.sum, .avg or .max "
                    "nor gpu__time_duration.sum",
                    source, launch.kernel));
  if (!cycles) cycles = *duration * clock.value();
  // Nsight locks the clock to its base for counting; the model's clock makes the time.
  k.time = Seconds(*cycles / clock.value());
  k.voltage = options.voltage_follows_clock ? clock / chip.clock : 1;

  const double instructions = m.get("sm__inst_executed.sum", "instructions");
  double memory = 0;
  for (const char* size : {"8b", "16b", "32b", "64b", "128b"})
    memory += m.or_zero(fmt::format("sm__sass_inst_executed_op_memory_{}.sum", size));
  set("TOT_INST", instructions);
  set("FP_INT", instructions - memory);
  const std::string l1 = "l1tex__t_sectors_pipe_lsu_mem_global_op_";
  set("DC_RH", m.get(l1 + "ld_lookup_hit.sum", "L1 read hits"));
  set("DC_RM", m.get(l1 + "ld_lookup_miss.sum", "L1 read misses"));
  set("DC_WH", m.get(l1 + "st_lookup_hit.sum", "L1 write hits"));
  set("DC_WM", m.get(l1 + "st_lookup_miss.sum", "L1 write misses"));
  set("CC_H", m.get("idc__requests.sum", "constant cache"));
  set("SHRD_ACC", m.get("sm__sass_inst_executed_op_shared_ld.sum", "shared memory loads") +
                      m.get("sm__sass_inst_executed_op_shared_st.sum", "shared memory stores"));
  const std::string l2 = "lts__t_sectors_srcunit_tex_op_";
  const double read_hits = m.get(l2 + "read_lookup_hit.sum", "L2 read hits"),
               read_misses = m.get(l2 + "read_lookup_miss.sum", "L2 read misses"),
               write_hits = m.get(l2 + "write_lookup_hit.sum", "L2 write hits"),
               write_misses = m.get(l2 + "write_lookup_miss.sum", "L2 write misses");
  set("L2_RH", read_hits);
  set("L2_RM", read_misses);
  set("L2_WH", write_hits);
  set("L2_WM", write_misses);
  const double reads = m.find(l2 + "read.sum").value_or(read_hits + read_misses);
  const double writes = m.find(l2 + "write.sum").value_or(write_hits + write_misses);
  set("NOC_A", 2 * (reads + writes));
  set("MEM_RD", m.get("dram__sectors_read.sum", "DRAM reads"));
  set("MEM_WR", m.get("dram__sectors_write.sum", "DRAM writes"));

  // Instructions of threads.
  const std::string op = "sm__sass_thread_inst_executed_op_";
  const double integers = m.get(op + "integer_pred_on.sum", "integer instructions");
  const double int_mul = m.or_zero(op + "imad_pred_on.sum") + m.or_zero(op + "imul_pred_on.sum");
  set("INT_ACC", integers - int_mul);
  set("INT_MUL_ACC", int_mul);
  const double fp_mul = m.or_zero(op + "ffma_pred_on.sum") + m.or_zero(op + "fmul_pred_on.sum");
  set("FP_ACC", m.get(op + "fp32_pred_on.sum", "FP32 instructions") - fp_mul +
                    m.or_zero(op + "fp16_pred_on.sum"));
  set("FP_MUL_ACC", fp_mul);
  const double dp_mul = m.or_zero(op + "dfma_pred_on.sum") + m.or_zero(op + "dmul_pred_on.sum");
  const auto doubles = m.find("sm__sass_thread_inst_executed_ops_dadd_dmul_dfma_pred_on.sum");
  set("DP_ACC", (doubles ? *doubles : m.or_zero(op + "fp64_pred_on.sum")) - dp_mul);
  set("DP_MUL_ACC", dp_mul);
  // Instructions of warps; the model counts threads. One pipe computes all special functions.
  const double lanes = m.find("smsp__thread_inst_executed_per_inst_executed.ratio")
                           .value_or(options.lanes.value_or(chip.lanes));
  set("FP_EXP_ACC", lanes * m.or_zero("sm__inst_executed_pipe_xu.sum"));
  set("TENSOR_ACC", chip.lanes * m.or_zero("sm__inst_executed_pipe_tensor.sum"));
  set("TEX_ACC", lanes * m.or_zero("sm__inst_executed_pipe_tex.sum"));

  double busy = 0;
  for (const char* pipe : {"alu", "fma", "fp64", "shared", "tensor"})
    busy += m.or_zero(fmt::format("sm__pipe_{}_cycles_active.sum", pipe));
  set("PIPE_A", busy / 5 / chip.sms);
  const double active =
      m.get("smsp__cycles_active.avg.pct_of_peak_sustained_elapsed", "active SMs; all are taken");
  k.active_sms =
      active > 0 ? chip.sms * std::min(active, 100.0) / 100 : options.active_sms.value_or(chip.sms);
  k.lanes = std::min(chip.lanes, std::ceil(lanes - 1e-9));
  k.mix = mix_of(chip, k.counts);
  return k;
}

}  // namespace

ActivityFile read_nsight(const std::string& text, const std::string& source, const Model& model,
                         const ActivityOptions& options) {
  const CsvTable table = parse_csv(text, source, "Kernel Name");
  const bool is_details = table.find("Metric Name").has_value();
  const std::vector<Launch> launches = is_details ? read_details(table) : read_raw(table);
  if (launches.empty()) throw Error(source + " has no kernel");
  // Launches of a kernel, averaged, in the order of their first ones.
  std::vector<Launch> kernels;
  std::vector<std::map<std::string, size_t>> counts;
  for (const Launch& l : launches) {
    auto at = std::find_if(kernels.begin(), kernels.end(),
                           [&](const Launch& k) { return k.kernel == l.kernel; });
    if (at == kernels.end()) {
      kernels.push_back({l.kernel, l.line, {}});
      counts.emplace_back();
      at = kernels.end() - 1;
    }
    for (const auto& [name, value] : l.metrics) {
      at->metrics[name] += value;
      ++counts[static_cast<size_t>(at - kernels.begin())][name];
    }
  }
  ActivityFile file;
  std::vector<std::string> missing;
  for (size_t i = 0; i < kernels.size(); ++i) {
    for (auto& [name, value] : kernels[i].metrics) value /= static_cast<double>(counts[i][name]);
    file.kernels.push_back(convert(kernels[i], model, options, source, missing));
  }
  if (launches.size() > kernels.size())
    file.notes.push_back(fmt::format("{} launches of {} kernels; launches of a kernel are averaged",
                                     launches.size(), kernels.size()));
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  for (const auto& m : missing) file.notes.push_back("no metric for " + m);
  return file;
}

}  // namespace gpusim::accelwattch
