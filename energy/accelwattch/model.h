// A chip's power model: what an access costs, static power by mix, and what scales them.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "energy/accelwattch/static_power.h"
#include "energy/units.h"

namespace gpusim::accelwattch {

using energy::Hertz;
using energy::Joules;
using energy::Seconds;
using energy::Watts;

struct CounterCost {
  size_t component = 0;  // of ChipModel::components
  Joules initial;        // E^_i; the energy per access is this times the variant's factor x_i
};
struct Counter {
  std::string name, unit;
  std::vector<CounterCost> costs;
};

// Factors of watts that a technology node other than the model's own brings.
struct Technology {
  int nm = 0;
  double dynamic = 1, idle = 1, statics = 1;
};

// What all variants of a chip share.
struct ChipModel {
  std::string name, title, conditions;
  double sms = 0, lanes = 0;
  Hertz clock;
  int technology_nm = 0;
  double temperature_c = 0;
  Watts constant, idle_sm;
  std::array<StaticCategory, kMixes> statics;
  std::vector<std::string> components;  // dynamic ones, as columns of sheets
  std::vector<Watts> fixed;             // of each component, whatever happens
  std::vector<Counter> counters;
  std::vector<Technology> technologies;

  int find_counter(std::string_view wanted) const;  // -1
  int find_component(std::string_view wanted) const;
  const Technology& technology(int nm) const;  // throws Error
};

struct Model {
  std::shared_ptr<const ChipModel> chip;
  std::string variant, title;
  std::vector<double> scale;  // x_i by counter; 0 where the variant has no factor
};

// The variants of one model file. `origin` names it in messages. Throws Error.
std::vector<Model> parse_model(const std::string& text, const std::string& origin);
// "gv100/hw", "gv100" (its first variant), or a file: "my.json", "my.json/hw".
Model find_model(const std::string& name);
std::vector<std::string> builtin_model_names();

// What a kernel did, or one slice of its time.
struct KernelActivity {
  std::string suite, name;
  Seconds time;
  std::vector<double> counts;  // by counter of the chip
  double lanes = 0;            // active per warp, on average; 0: none computed
  double active_sms = 0;
  double voltage = 1;  // of the one at the model's clock
  Mix mix = Mix::kLight;
  Seconds start;   // of a slice
  Watts measured;  // 0: not known
};

// From the counters that are not zero.
Mix mix_of(const ChipModel& chip, const std::vector<double>& counts);

struct Scaling {
  Technology technology;          // of watts
  double temperature_factor = 1;  // of static power, also of idle SMs
  // Equation 2: dynamic power goes with V^2, static power with V. The published code lets constant
  // power follow V^2, too; the paper does not.
  bool voltage_moves_constant = false;
};

// Leakage grows exponentially with temperature (section 4.1): doubled every `doubling_k` kelvin.
double temperature_factor(double celsius, double reference_c, double doubling_k);

struct PowerBreakdown {
  std::vector<Watts> dynamic;  // by component of the chip
  Watts idle, constant, statics;

  Watts total() const;
};

// Equations 10 and 12. Throws Error for a time that is not positive, negative counts, and
// more lanes or SMs than there are.
PowerBreakdown power(const Model& model, const KernelActivity& kernel, const Scaling& scaling = {});

}  // namespace gpusim::accelwattch
