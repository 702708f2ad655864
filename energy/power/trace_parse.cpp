// Reading recordings: our own CSV and nvidia-smi's.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "device_sim/base/csv.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "energy/power/trace.h"
#include "energy/power/trace_columns.h"

namespace gpusim::power {
namespace {

template <auto Member>
std::optional<double> get_quantity(const Sample& s) {
  if (!(s.*Member)) return std::nullopt;
  return (s.*Member)->value();
}
template <auto Member, class T>
void set_quantity(Sample& s, double value) {
  s.*Member = T(value);
}

constexpr std::array<Column, 10> kColumns = {{
    {"time_s", true, 9, [](const Sample& s) { return std::optional(s.time.value()); },
     [](Sample& s, double v) { s.time = Seconds(v); }},
    {"power_W", true, 4, [](const Sample& s) { return std::optional(s.power.value()); },
     [](Sample& s, double v) { s.power = Watts(v); }},
    {"instant_W", false, 4, get_quantity<&Sample::instant>, set_quantity<&Sample::instant, Watts>},
    {"average_W", false, 4, get_quantity<&Sample::average>, set_quantity<&Sample::average, Watts>},
    {"energy_total_J", false, 6, get_quantity<&Sample::energy_total>,
     set_quantity<&Sample::energy_total, Joules>},
    {"core_clock_Hz", false, 0, get_quantity<&Sample::core_clock>,
     set_quantity<&Sample::core_clock, Hertz>},
    {"memory_clock_Hz", false, 0, get_quantity<&Sample::memory_clock>,
     set_quantity<&Sample::memory_clock, Hertz>},
    {"temperature_C", false, 1, [](const Sample& s) { return s.temperature_c; },
     [](Sample& s, double v) { s.temperature_c = v; }},
    {"utilization", false, 3, [](const Sample& s) { return s.utilization; },
     [](Sample& s, double v) { s.utilization = v; }},
    {"throttle_reasons", false, 0,
     [](const Sample& s) {
       return s.throttle_reasons ? std::optional(static_cast<double>(*s.throttle_reasons))
                                 : std::nullopt;
     },
     [](Sample& s, double v) { s.throttle_reasons = static_cast<uint64_t>(std::max(v, 0.0)); }},
}};

const Column& column(std::string_view name) {
  return *std::find_if(kColumns.begin(), kColumns.end(),
                       [&](const Column& c) { return c.name == name; });
}

// What a column of a file is, and what its numbers are to be multiplied by.
struct Reading {
  const Column* column = nullptr;
  double scale = 1;
  bool is_date = false;
};

double unit_scale(std::string_view unit) {  // 0: unknown
  struct Unit {
    std::string_view name;
    double scale;
  };
  static constexpr Unit kUnits[] = {
      {"", 1},      {"w", 1},     {"mw", 1e-3}, {"kw", 1e3},  {"s", 1},     {"ms", 1e-3},
      {"us", 1e-6}, {"ns", 1e-9}, {"hz", 1},    {"khz", 1e3}, {"mhz", 1e6}, {"ghz", 1e9},
      {"j", 1},     {"mj", 1e-3}, {"uj", 1e-6}, {"%", 0.01},  {"c", 1}};
  for (const Unit& u : kUnits)
    if (u.name == unit) return u.scale;
  return 0;
}

// "power.draw.instant [mW]" or "time_ms": the name and the unit, lower case.
std::pair<std::string, std::string> name_and_unit(std::string_view cell) {
  const std::string text = lower(trim(cell));
  if (const size_t open = text.find('['); open != std::string::npos) {
    const size_t close = text.find(']', open);
    return {std::string(trim(std::string_view(text).substr(0, open))),
            text.substr(open + 1, close == std::string::npos ? close : close - open - 1)};
  }
  if (const size_t bar = text.rfind('_'); bar != std::string::npos) {
    const std::string unit = text.substr(bar + 1);
    if (!unit.empty() && unit_scale(unit) != 0) return {text.substr(0, bar), unit};
  }
  return {text, ""};
}

class TraceReader {
 public:
  TraceReader(const std::string& text, const std::string& origin, TimeOrder order)
      : rest_(text), origin_(origin), order_(order) {}

  Trace read() {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    std::string_view line;
    while (next_line(line)) {
      if (line.starts_with('#')) {
        read_comment(line);
      } else if (readings_.empty()) {
        read_header(line);
      } else {
        read_sample(line);
      }
    }
    if (readings_.empty()) throw Error(origin_ + ": no header line: the file is empty");
    if (trace_.samples.empty()) fail_file("no sample in the file");
    if (missing_ > 0)
      trace_.notes.push_back(fmt::format("{} of {} lines had no power (the first: line {})",
                                         missing_, missing_ + trace_.samples.size(),
                                         first_missing_));
    if (order_ == TimeOrder::kSort && falls_ > 0) {
      std::stable_sort(trace_.samples.begin(), trace_.samples.end(),
                       [](const Sample& a, const Sample& b) { return a.time < b.time; });
      trace_.notes.push_back(fmt::format("sorted by time, which fell {} times", falls_));
    }
    drop_duplicates();
    note_gaps();
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}, line {}: {}", origin_, line_number_, what));
  }
  [[noreturn]] void fail_file(const std::string& what) const {
    throw Error(fmt::format("{}: {}", origin_, what));
  }

  bool next_line(std::string_view& line) {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      line = trim(rest_.substr(0, end));
      is_last_line_whole_ = end < rest_.size();
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_number_;
      if (!line.empty()) return true;
    }
    return false;
  }

  void read_comment(std::string_view line) {
    line = trim(line.substr(1));
    const auto value = [&](std::string_view key) -> std::optional<std::string_view> {
      if (!line.starts_with(key)) return std::nullopt;
      return trim(line.substr(key.size()));
    };
    if (const auto source = value("source:")) trace_.source = *source;
    if (const auto note = value("note:")) trace_.notes.emplace_back(*note);
    if (const auto partial = value("partial:")) trace_.is_partial = *partial == "yes";
    if (const auto interval = value("interval:")) {
      const std::string text(*interval);
      double begin = 0, end = 0;
      int used = 0;
      if (std::sscanf(text.c_str(), "%lf %lf%n", &begin, &end, &used) < 2 ||
          !std::isfinite(begin) || !std::isfinite(end) || end < begin)
        fail("an interval is expected as `# interval: BEGIN END NAME`, in seconds");
      trace_.intervals.push_back(
          {std::string(trim(std::string_view(text).substr(static_cast<size_t>(used)))),
           Seconds(begin), Seconds(end)});
    }
  }

  static std::vector<std::string_view> split(std::string_view line, char separator) {
    std::vector<std::string_view> cells;
    for (size_t at = 0;;) {
      const size_t next = std::min(line.find(separator, at), line.size());
      std::string_view cell = trim(line.substr(at, next - at));
      if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
        cell = trim(cell.substr(1, cell.size() - 2));
      cells.push_back(cell);
      if (next == line.size()) return cells;
      at = next + 1;
    }
  }

  Reading recognise(std::string_view cell) {
    const auto [name, unit] = name_and_unit(cell);
    struct Known {
      std::string_view name, column;
    };
    static constexpr Known kKnown[] = {
        {"time", "time_s"},
        {"power", "power_W"},
        {"power.draw", "power_W"},
        {"instant", "instant_W"},
        {"power.draw.instant", "instant_W"},
        {"average", "average_W"},
        {"power.draw.average", "average_W"},
        {"energy_total", "energy_total_J"},
        {"core_clock", "core_clock_Hz"},
        {"clocks.current.sm", "core_clock_Hz"},
        {"clocks.sm", "core_clock_Hz"},
        {"memory_clock", "memory_clock_Hz"},
        {"clocks.current.memory", "memory_clock_Hz"},
        {"clocks.mem", "memory_clock_Hz"},
        {"temperature", "temperature_C"},
        {"temperature.gpu", "temperature_C"},
        {"utilization", "utilization"},
        {"utilization.gpu", "utilization"},
        {"throttle_reasons", "throttle_reasons"},
    };
    if (name == "timestamp") return {&column("time_s"), 1, true};
    for (const Known& k : kKnown) {
      if (k.name != name) continue;
      const double scale = unit_scale(unit);
      if (scale == 0)
        fail(fmt::format("column {}: the unit {} is not known (W, mW, s, ms, us, ns, MHz, ...)",
                         cell, unit));
      return {&column(k.column), scale};
    }
    return {};  // pstate and the like
  }

  void read_header(std::string_view line) {
    for (const char c : {',', ';', '\t'})
      if (line.find(c) != std::string_view::npos) {
        separator_ = c;
        break;
      }
    for (const std::string_view cell : split(line, separator_))
      readings_.push_back(recognise(cell));
    for (const std::string_view needed : {"time_s", "power_W"}) {
      const auto count = std::count_if(readings_.begin(), readings_.end(), [&](const Reading& r) {
        return r.column != nullptr && r.column->name == needed;
      });
      if (count == 0)
        fail(
            fmt::format("no column for {}: a header is expected, ours (time_s,power_W,...) or "
                        "nvidia-smi's (timestamp, power.draw [W], ...)",
                        needed == "time_s" ? "time" : "power"));
      if (count > 1) fail(fmt::format("several columns for {}", needed));
    }
  }

  // "2023/07/08 19:27:36.359": seconds from the epoch, taking the clock for UTC.
  static std::optional<double> parse_date(const std::string& text) {
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, used = 0;
    double second = 0;
    if (std::sscanf(text.c_str(), "%4d/%2d/%2d %2d:%2d:%lf%n", &year, &month, &day, &hour, &minute,
                    &second, &used) != 6 ||
        used != static_cast<int>(text.size()))
      return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(year),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (day < 0 || month < 0 || !date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        !(second >= 0 && second < 61))
      return std::nullopt;
    const auto days = std::chrono::sys_days(date).time_since_epoch().count();
    return static_cast<double>(days) * 86400.0 + hour * 3600.0 + minute * 60.0 + second;
  }

  // A number, perhaps with its unit behind it, as nvidia-smi prints without `nounits`.
  std::optional<double> number(std::string_view cell, double& scale) {
    if (const auto n = parse_number(cell)) return n;
    const size_t space = cell.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    const double unit = unit_scale(lower(trim(cell.substr(space))));
    if (unit == 0) return std::nullopt;
    scale = unit;
    return parse_number(cell.substr(0, space));
  }

  void read_sample(std::string_view line) {
    const auto cells = split(line, separator_);
    if (cells.size() < readings_.size()) {
      // A recording that was cut off within a line is still a recording.
      if (rest_.empty() && !is_last_line_whole_ && !trace_.samples.empty()) {
        trace_.is_partial = true;
        trace_.notes.push_back(fmt::format("line {} is cut off", line_number_));
        return;
      }
      fail(fmt::format("{} values, but the header has {}", cells.size(), readings_.size()));
    }
    Sample sample;
    bool has_power = false;
    for (size_t c = 0; c < readings_.size(); ++c) {
      const Reading& r = readings_[c];
      if (r.column == nullptr) continue;
      const bool is_time = r.column == &kColumns[0], is_power = r.column == &kColumns[1];
      const std::string_view cell = cells[c];
      if (r.is_date) {
        const auto t = parse_date(std::string(cell));
        if (!t) fail(fmt::format("{}: a time as 2023/07/08 19:27:36.359 is expected", cell));
        sample.time = Seconds(*t);
        continue;
      }
      if (cell.empty() || cell.starts_with('[') || lower(cell) == "n/a") {
        if (is_time) fail("no time");
        continue;
      }
      double scale = r.scale;
      const auto value = number(cell, scale);
      if (!value || !std::isfinite(*value))
        fail(fmt::format("{}: {} is not a number", r.column->name, cell));
      if (is_power && *value < 0) fail(fmt::format("power is negative: {}", cell));
      if (is_power) has_power = true;
      r.column->set(sample, *value * scale);
    }
    if (!has_power) {
      if (missing_++ == 0) first_missing_ = line_number_;
      return;
    }
    if (!trace_.samples.empty() && sample.time < trace_.samples.back().time) {
      if (order_ == TimeOrder::kRefuse)
        fail(
            fmt::format("time falls by {:.6g} s: the lines are not sorted, or a clock was set "
                        "back (--sort takes them by time)",
                        (trace_.samples.back().time - sample.time).value()));
      ++falls_;
    }
    trace_.samples.push_back(sample);
  }

  // Of several samples of one time the last stays.
  void drop_duplicates() {
    auto& samples = trace_.samples;
    size_t kept = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (kept > 0 && samples[kept - 1].time == samples[i].time)
        samples[kept - 1] = samples[i];
      else
        samples[kept++] = samples[i];
    }
    if (kept < samples.size())
      trace_.notes.push_back(
          fmt::format("{} samples had the time of the one before; the last of "
                      "each time was taken",
                      samples.size() - kept));
    samples.resize(kept);
  }

  void note_gaps() {
    const auto& samples = trace_.samples;
    const Seconds longest = longest_bridged(samples);
    size_t gaps = 0;
    Seconds most, where;
    for (size_t i = 1; i < samples.size(); ++i) {
      const Seconds step = samples[i].time - samples[i - 1].time;
      if (step <= longest) continue;
      ++gaps;
      if (step > most) most = step, where = samples[i - 1].time;
    }
    if (gaps > 0)
      trace_.notes.push_back(
          fmt::format("{} gaps of more than {:.3g} s between samples; the "
                      "longest, {:.6g} s, after {:.6f} s: samples are missing, "
                      "or a clock jumped",
                      gaps, longest.value(), most.value(), where.value()));
  }

  std::string_view rest_;
  const std::string& origin_;
  TimeOrder order_;
  Trace trace_;
  std::vector<Reading> readings_;
  char separator_ = ',';
  size_t line_number_ = 0, missing_ = 0, first_missing_ = 0, falls_ = 0;
  bool is_last_line_whole_ = true;
};

}  // namespace

std::span<const Column> own_columns() { return kColumns; }

Seconds longest_bridged(const std::vector<Sample>& samples) {
  if (samples.size() < 2) return Seconds(1);
  std::vector<double> steps;
  for (size_t i = 1; i < samples.size(); ++i)
    steps.push_back((samples[i].time - samples[i - 1].time).value());
  const auto middle = steps.begin() + static_cast<ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return Seconds(std::max(1.0, 5 * *middle));
}

Trace parse_trace(const std::string& text, const std::string& origin, TimeOrder order) {
  Trace trace = TraceReader(text, origin, order).read();
  if (trace.source.empty()) trace.source = origin;
  return trace;
}

Trace read_trace(const std::string& path, TimeOrder order) {
  return parse_trace(read_text(path), path, order);
}

}  // namespace gpusim::power
