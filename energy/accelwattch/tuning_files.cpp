// Constant, static and idle power from files of measurements.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device_sim/base/error.h"
#include "energy/accelwattch/tuning.h"

namespace gpusim::accelwattch {
namespace {

struct FrequencyColumn {
  size_t at;
  double scale;

  Hertz of(const CsvTable& table, const CsvRow& row) const {
    return Hertz(require_number(table, row, at) * scale);
  }
};

FrequencyColumn frequency_column(const CsvTable& table) {
  for (const auto& [name, scale] :
       {std::pair{"frequency_MHz", 1e6}, std::pair{"frequency_GHz", 1e9},
        std::pair{"frequency_Hz", 1.0}})
    if (const auto at = table.find(name)) return {*at, scale};
  return {table.require("frequency_MHz"), 1e6};
}

size_t power_column(const CsvTable& table) {
  if (const auto at = table.find("power_mW"))
    throw Error(fmt::format("{}: column {} is in milliwatts; power_W is read", table.source,
                            table.header[*at]));
  return table.require("power_W");
}

// A clock in the wrong unit gives absurd fits; real chips run between 1 MHz and 10 GHz.
void check_clock(const CsvTable& table, const CsvRow& row, Hertz f) {
  if (f.value() < 1e6 || f.value() > 1e10)
    throw Error(fmt::format("{}: line {}: a frequency of {:g} Hz; is its unit right?", table.source,
                            row.line, f.value()));
}

}  // namespace

std::vector<FrequencyCurve> read_frequency_curves(const CsvTable& table) {
  const size_t workload = table.require("workload"), power = power_column(table);
  const FrequencyColumn frequency = frequency_column(table);
  std::vector<FrequencyCurve> curves;
  for (const CsvRow& row : table.rows) {
    auto at = std::find_if(curves.begin(), curves.end(),
                           [&](const auto& c) { return c.workload == row.cells[workload]; });
    if (at == curves.end()) at = curves.insert(at, FrequencyCurve{row.cells[workload], {}});
    const Hertz f = frequency.of(table, row);
    check_clock(table, row, f);
    at->points.push_back({f, Watts(require_number(table, row, power))});
  }
  return curves;
}

std::vector<MixFit> fit_static_power(const CsvTable& table, Watts constant,
                                     std::optional<Hertz> clock) {
  const size_t mix = table.find("mix") ? *table.find("mix") : table.require("workload");
  const size_t lanes = table.require("lanes"), power = power_column(table);
  const FrequencyColumn frequency = frequency_column(table);
  std::vector<std::string> mixes;
  std::map<std::string, std::map<double, FrequencyCurve>> curves;
  Hertz fastest;
  for (const CsvRow& row : table.rows) {
    const std::string& name = row.cells[mix];
    if (!curves.contains(name)) mixes.push_back(name);
    const double y = require_number(table, row, lanes);
    if (y < 1 || y > 32)
      throw Error(
          fmt::format("{}: line {}: {} lanes; a warp has 1 to 32", table.source, row.line, y));
    const Hertz f = frequency.of(table, row);
    check_clock(table, row, f);
    fastest = std::max(fastest, f);
    FrequencyCurve& curve = curves[name][y];
    curve.workload = fmt::format("{} with {:g} lanes", name, y);
    curve.points.push_back({f, Watts(require_number(table, row, power))});
  }
  std::vector<MixFit> fits;
  for (const std::string& name : mixes) {
    MixFit fit{.mix = name};
    for (const auto& [y, curve] : curves[name]) {
      const CubicFit cubic = fit_curve(curve, constant);
      fit.worst_rms_percent = std::max(fit.worst_rms_percent, cubic.rms_percent);
      fit.points.push_back({y, cubic.static_part(clock.value_or(fastest))});
    }
    try {
      fit.lanes = fit_lanes(fit.points);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}: {}", table.source, name, error.what()));
    }
    fits.push_back(std::move(fit));
  }
  return fits;
}

IdleFit fit_idle_power(const CsvTable& table, double sms, Watts constant) {
  const size_t workload = table.require("workload"), active = table.require("active_sms"),
               power = power_column(table);
  std::vector<std::string> names;
  std::map<std::string, std::vector<IdlePoint>> points;
  for (const CsvRow& row : table.rows) {
    const std::string& name = row.cells[workload];
    if (!points.contains(name)) names.push_back(name);
    const double k = require_number(table, row, active);
    if (k > sms)
      throw Error(
          fmt::format("{}: line {}: {:g} active SMs of {:g}", table.source, row.line, k, sms));
    points[name].push_back({k, Watts(require_number(table, row, power))});
  }
  IdleFit fit;
  std::vector<Watts> each;
  for (const std::string& name : names) {
    try {
      each.push_back(idle_sm_power(points[name], sms, constant));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}: {}", table.source, name, error.what()));
    }
    fit.workloads.emplace_back(name, each.back());
  }
  fit.per_sm = idle_sm_power(each);
  return fit;
}

}  // namespace gpusim::accelwattch
