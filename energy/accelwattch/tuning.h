// Tuning: the factors x_i of the dynamic components by quadratic programming (paper, equation 14),
// and constant, static and idle power from measurements.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "energy/accelwattch/accuracy.h"
#include "energy/accelwattch/constant_power.h"
#include "energy/accelwattch/quadratic_program.h"
#include "energy/accelwattch/sheet.h"
#include "energy/accelwattch/static_power.h"

namespace gpusim::accelwattch {

// left <= factor * right; without `right`: left <= factor, or left >= factor.
struct FactorOrder {
  std::string left, right;
  double factor = 1;
  bool is_lower_bound = false;

  std::string text() const;
};
// "INTP <= FPUP", "INTP <= 1.5 FPUP", "TEXP >= 0.2". Throws Error.
FactorOrder parse_order(const std::string& text);

struct TuneOptions {
  bool relative =
      true;  // errors in percent of the measured power (paper); else in watts (its code)
  double lower = 0.001, upper = 1000;  // the paper's; its code has 0.1 and 1000
  std::vector<FactorOrder> orders;
  // Equation 14 prints the linear term without the factor 2 that the square has; the published code
  // has it. Without it factors come out about half as large as they should be.
  bool linear_term_as_printed = false;
  std::map<std::string, double> start;  // of components that no kernel uses, 1 where not given
};

// The paper's order of factors, and that of its code: there energies per access are ordered, and
// `energies` gives those at factor 1. Only of components in the sheet.
std::vector<FactorOrder> paper_orders(const Sheet& sheet);
std::vector<FactorOrder> code_orders(const Sheet& sheet,
                                     const std::map<std::string, double>& energies);

enum class FactorState { kFree, kAtLower, kAtUpper, kHeld, kUnused };

struct TunedFactor {
  std::string component;
  double factor = 1;
  FactorState state = FactorState::kFree;
  std::vector<std::string> held_by;  // orders that bind
};

struct TuneResult {
  std::vector<TunedFactor> factors;  // of the dynamic components, in the sheet's order
  Sheet before, after;               // with the sums of the components as the model's total
  Accuracy before_accuracy, after_accuracy;
  QpSolution solution;
  double condition = 0;  // of the columns that are used, each scaled to the same size
  // Components whose columns depend on each other: only some combination of their factors is known.
  std::vector<std::vector<std::string>> inseparable;
};

// The sheet's watts are those at factor 1; idle, constant and static power keep their factor 1.
// Throws Error if the constraints contradict each other (naming them), or nothing is to tune.
TuneResult tune(const Sheet& sheet, const TuneOptions& options);

// Each kernel judged by factors that were tuned without it.
Accuracy leave_one_out(const Sheet& sheet, const TuneOptions& options);

// Columns workload, frequency_MHz (GHz, Hz), power_W.
std::vector<FrequencyCurve> read_frequency_curves(const CsvTable& table);

struct MixFit {
  std::string mix;
  LaneFit lanes;
  std::vector<LanePoint> points;  // static power by lanes
  double worst_rms_percent = 0;   // of the fits over frequency
};
// Columns mix (or workload), lanes, frequency, power_W: equation 3 for each number of lanes, its
// linear term at `clock`, then equations 4 and 5.
std::vector<MixFit> fit_static_power(const CsvTable& table, Watts constant,
                                     std::optional<Hertz> clock);

struct IdleFit {
  Watts per_sm;
  std::vector<std::pair<std::string, Watts>> workloads;
};
// Columns workload, active_sms, power_W.
IdleFit fit_idle_power(const CsvTable& table, double sms, Watts constant);

}  // namespace gpusim::accelwattch
