#include "energy/accelwattch/activity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"

namespace gpusim::accelwattch {
namespace {

struct Alias {
  const char *column, *counter;
};
// The names of the published hw_perf.csv.
constexpr Alias kAliases[] = {{"L1_RH", "DC_RH"},    {"L1_RM", "DC_RM"}, {"L1_WH", "DC_WH"},
                              {"L1_WM", "DC_WM"},    {"CC_ACC", "CC_H"}, {"DRAM_Rd", "MEM_RD"},
                              {"DRAM_Wr", "MEM_WR"}, {"NOC", "NOC_A"}};

std::string counter_of(const std::string& column) {
  for (const Alias& a : kAliases)
    if (lower(column) == lower(a.column)) return a.counter;
  return column;
}

class Reader {
 public:
  Reader(const CsvTable& table, const Model& model, const ActivityOptions& options)
      : table_(table), model_(model), options_(options) {}

  ActivityFile read() {
    locate();
    ActivityFile file;
    file.is_sliced = start_.has_value();
    for (const CsvRow& row : table_.rows) file.kernels.push_back(read_row(row));
    if (!used_counter_)
      throw Error(fmt::format("{}: no column is a counter of {}; counters are: {}", table_.source,
                              model_.chip->name, fmt::join(counter_names(), ", ")));
    note_missing(file);
    if (file.is_sliced)
      for (size_t i = 1; i < file.kernels.size(); ++i)
        if (file.kernels[i].start < file.kernels[i - 1].start)
          throw Error(fmt::format("{}: line {}: slices must come in the order of time",
                                  table_.source, table_.rows[i].line));
    return file;
  }

 private:
  struct Column {
    size_t at;
    double scale;
  };

  std::optional<Column> take(std::initializer_list<std::pair<const char*, double>> names) {
    std::optional<Column> found;
    for (const auto& [name, scale] : names) {
      const auto at = table_.find(name);
      if (!at) continue;
      if (found)
        throw Error(fmt::format("{}: columns {} and {} say the same", table_.source,
                                table_.header[found->at], table_.header[*at]));
      found = Column{*at, scale};
      taken_.insert(*at);
    }
    return found;
  }

  void locate() {
    time_ = take({{"time_s", 1}, {"time_ms", 1e-3}, {"time_us", 1e-6}, {"time_ns", 1e-9}});
    cycles_ = take({{"Elapsed_Cycles", 1}, {"cycles", 1}});
    start_ = take({{"start_s", 1}, {"start_ms", 1e-3}, {"start_us", 1e-6}});
    lanes_ = take({{"lanes", 1}, {"active_lanes", 1}, {"avg_threads_per_warp", 1}});
    idle_ = take({{"idle_sms", 1}, {"Num_Idle_SMs", 1}});
    active_ = take({{"active_sms", 1}});
    duty_ = take({{"Pipeline_Duty", 1}});
    voltage_ = take({{"voltage", 1}, {"voltage_V", 1}, {"Chip Voltage", 1}});
    frequency_ = take({{"frequency_MHz", 1e6}, {"frequency_GHz", 1e9}, {"frequency_Hz", 1}});
    measured_ = take({{"measured_W", 1}});
    mix_ = take({{"mix", 1}});
    suite_ = take({{"suite", 1}});
    kernel_ = take({{"kernel", 1}});
    benchmark_ = take({{"benchmark", 1}});
    if (!time_ && !cycles_)
      throw Error(
          fmt::format("{}: there is no column of time: Elapsed_Cycles, time_s, time_ms or "
                      "time_us; the columns are: {}",
                      table_.source, fmt::join(table_.header, ", ")));
    for (size_t i = 0; i < table_.header.size(); ++i) {
      if (taken_.contains(i)) continue;
      const std::string& name = table_.header[i];
      const int counter = model_.chip->find_counter(counter_of(name));
      if (counter >= 0) {
        if (duty_ && counter_of(name) == "PIPE_A")
          throw Error(table_.source + ": columns Pipeline_Duty and PIPE_A say the same");
        counters_.push_back({i, static_cast<size_t>(counter)});
        used_counter_ = true;
      } else if (!is_text(i)) {
        throw Error(fmt::format("{}: column {} is no counter of {}; counters are: {}",
                                table_.source, name, model_.chip->name,
                                fmt::join(counter_names(), ", ")));
      }
    }
    used_counter_ = used_counter_ || duty_;
  }

  // What the variant would count, and the file has not.
  void note_missing(ActivityFile& file) {
    std::vector<std::string> missing;
    bool any_unit = false;
    for (size_t i = 0; i < model_.chip->counters.size(); ++i) {
      const std::string& name = model_.chip->counters[i].name;
      const bool here = std::any_of(counters_.begin(), counters_.end(),
                                    [&](const auto& c) { return c.second == i; }) ||
                        (duty_ && name == "PIPE_A");
      any_unit = any_unit || (here && is_unit(name));
      if (!here && model_.scale[i] > 0) missing.push_back(name);
    }
    if (!missing.empty())
      file.notes.push_back(
          fmt::format("there are no columns for {}: they count as 0", fmt::join(missing, ", ")));
    if (any_unit || mix_) return;
    for (KernelActivity& k : file.kernels) k.mix = Mix::kOther;
    file.notes.push_back(
        "nothing tells which units kernels use: static power is that of mixes on "
        "average (a column mix can tell)");
  }

  static bool is_unit(const std::string& counter) {
    return counter.ends_with("_ACC") && counter != "SHRD_ACC";
  }

  bool is_text(size_t column) const {
    return std::none_of(table_.rows.begin(), table_.rows.end(), [&](const CsvRow& row) {
      return parse_number(row.cells[column], table_.separator == ';', true).has_value();
    });
  }

  std::vector<std::string> counter_names() const {
    std::vector<std::string> names;
    for (const Counter& c : model_.chip->counters) names.push_back(c.name);
    return names;
  }

  double number(const CsvRow& row, const Column& column) const {
    return require_number(table_, row, column.at) * column.scale;
  }

  KernelActivity read_row(const CsvRow& row) const {
    const ChipModel& chip = *model_.chip;
    KernelActivity k;
    if (kernel_) k.name = row.cells[kernel_->at];
    if (benchmark_) {
      const std::string& benchmark = row.cells[benchmark_->at];
      k.name = k.name.empty() ? benchmark : benchmark + ":" + k.name;
    }
    if (k.name.empty()) k.name = fmt::format("line {}", row.line);
    if (suite_) k.suite = row.cells[suite_->at];
    double clock = options_.clock.value_or(chip.clock).value();
    if (frequency_) clock = number(row, *frequency_);
    if (!(clock > 0)) fail(row, "the frequency must be positive");
    k.voltage = options_.voltage_follows_clock ? clock / chip.clock.value() : 1;
    if (voltage_) k.voltage = number(row, *voltage_);
    const double cycles = cycles_ ? number(row, *cycles_) : number(row, *time_) * clock;
    k.time = Seconds(time_ ? number(row, *time_) : cycles / clock);
    if (!(k.time.value() > 0)) fail(row, "the kernel takes no time");
    if (start_) k.start = Seconds(number(row, *start_));
    k.counts.assign(chip.counters.size(), 0.0);
    for (const auto& [column, counter] : counters_)
      k.counts[counter] = require_number(table_, row, column);
    if (duty_) {
      const double duty = number(row, *duty_);
      if (duty > 1) fail(row, fmt::format("Pipeline_Duty is {}; it is a share of 1", duty));
      const int pipe = chip.find_counter("PIPE_A");
      if (pipe >= 0) k.counts[static_cast<size_t>(pipe)] = duty * cycles;
    }
    k.lanes = lanes_ ? number(row, *lanes_) : options_.lanes.value_or(chip.lanes);
    if (k.lanes > chip.lanes)
      fail(row, fmt::format("{} active lanes; a warp has {}", k.lanes, chip.lanes));
    k.active_sms = options_.active_sms.value_or(chip.sms);
    if (active_) k.active_sms = number(row, *active_);
    if (idle_) k.active_sms = chip.sms - number(row, *idle_);
    if (k.active_sms < 0 || k.active_sms > chip.sms)
      fail(row, fmt::format("{} active SMs; {} has {}", k.active_sms, chip.name, chip.sms));
    k.mix = mix_of(chip, k.counts);
    if (mix_) k.mix = mix_named(row, row.cells[mix_->at]);
    if (measured_) k.measured = Watts(number(row, *measured_));
    return k;
  }

  Mix mix_named(const CsvRow& row, const std::string& text) const {
    for (size_t m = 0; m < kMixes; ++m)
      if (lower(text) == kMixNames[m]) return static_cast<Mix>(m);
    fail(row, fmt::format("there is no mix {}; mixes are: {}", text, fmt::join(kMixNames, ", ")));
  }

  [[noreturn]] void fail(const CsvRow& row, const std::string& what) const {
    throw Error(fmt::format("{}: line {}: {}", table_.source, row.line, what));
  }

  const CsvTable& table_;
  const Model& model_;
  const ActivityOptions& options_;
  std::set<size_t> taken_;
  std::vector<std::pair<size_t, size_t>> counters_;  // column, counter
  bool used_counter_ = false;
  std::optional<Column> time_, cycles_, start_, lanes_, idle_, active_, duty_, voltage_, frequency_,
      measured_, mix_, suite_, kernel_, benchmark_;
};

}  // namespace

ActivityFile read_counters(const CsvTable& table, const Model& model,
                           const ActivityOptions& options) {
  return Reader(table, model, options).read();
}

ActivityFile read_activity(const std::string& path, const Model& model,
                           const ActivityOptions& options) {
  const std::string text = read_text(path);
  if (trim(text).starts_with('{')) return read_tallies(path, model, options);
  if (text.find("Kernel Name") != std::string::npos) return read_nsight(text, path, model, options);
  return read_counters(parse_csv(text, path), model, options);
}

void replace_counters(ActivityFile& base, const ActivityFile& other, const Model& model,
                      const std::vector<std::string>& counters) {
  std::vector<size_t> indices;
  for (const std::string& name : counters) {
    const int i = model.chip->find_counter(counter_of(name));
    if (i < 0) throw Error(fmt::format("{} has no counter {}", model.chip->name, name));
    indices.push_back(static_cast<size_t>(i));
  }
  for (KernelActivity& k : base.kernels) {
    const auto found = std::find_if(other.kernels.begin(), other.kernels.end(),
                                    [&](const KernelActivity& o) { return o.name == k.name; });
    if (found == other.kernels.end())
      throw Error(fmt::format("kernel {} is not in the other file", k.name));
    for (const size_t i : indices) k.counts[i] = found->counts[i];
  }
}

}  // namespace gpusim::accelwattch
