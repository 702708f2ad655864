// A sheet of modelled power: one row per kernel, a column of watts per component, the model's total
// and the measured power.
#pragma once
#include <string>
#include <vector>

#include "device_sim/base/csv.h"
#include "energy/units.h"

namespace gpusim::accelwattch {

using energy::Hertz;
using energy::Joules;
using energy::Seconds;
using energy::Watts;

struct SheetKernel {
  std::string suite, name;
  size_t line = 0;
  std::vector<Watts> component;  // in the order of Sheet::components
  Watts model{}, measured{};

  Watts component_sum() const;
};

struct Sheet {
  std::string source;
  std::vector<std::string> components;
  std::vector<SheetKernel> kernels;
  std::vector<std::string> notes;  // what a reader should know: columns left out, sums that differ

  // -1 if there is none.
  int find(std::string_view component) const;
  Watts mean(size_t component) const;
};

struct SheetColumns {
  bool needs_model = true;  // model_total_W; without it the components' sum is taken
};

// Columns: `kernel` (or else the first column of text), `measured_W`, `model_total_W`; `suite` and
// other columns of text are labels; every other column is a component, with or without `_W` at the
// end. Throws Error for missing columns, cells that are no numbers, negative numbers, and
// units that are not watts: by the column's name, or by values that cannot be right.
Sheet make_sheet(const CsvTable& table, SheetColumns columns = {});
Sheet read_sheet(const std::string& path, SheetColumns columns = {});

}  // namespace gpusim::accelwattch
