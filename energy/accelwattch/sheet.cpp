#include "energy/accelwattch/sheet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "device_sim/base/error.h"

namespace gpusim::accelwattch {
namespace {

enum class ColumnKind { kWatts, kOtherUnit, kWrongUnit };

struct ColumnName {
  std::string bare;  // without the unit
  ColumnKind kind = ColumnKind::kWatts;
  std::string unit;
};

// "measured_mW", "measured (mW)", "measured [mW]" end in a unit.
ColumnName split_unit(const std::string& name) {
  struct Unit {
    std::string_view text;
    ColumnKind kind;
  };
  static constexpr std::array<Unit, 34> kUnits = {{
      {"W", ColumnKind::kWatts},          {"w", ColumnKind::kWatts},
      {"watt", ColumnKind::kWatts},       {"watts", ColumnKind::kWatts},
      {"Watts", ColumnKind::kWatts},      {"mW", ColumnKind::kWrongUnit},
      {"mw", ColumnKind::kWrongUnit},     {"uW", ColumnKind::kWrongUnit},
      {"kW", ColumnKind::kWrongUnit},     {"kw", ColumnKind::kWrongUnit},
      {"MW", ColumnKind::kWrongUnit},     {"milliwatts", ColumnKind::kWrongUnit},
      {"J", ColumnKind::kWrongUnit},      {"mJ", ColumnKind::kWrongUnit},
      {"uJ", ColumnKind::kWrongUnit},     {"nJ", ColumnKind::kWrongUnit},
      {"pJ", ColumnKind::kWrongUnit},     {"kJ", ColumnKind::kWrongUnit},
      {"Wh", ColumnKind::kWrongUnit},     {"joules", ColumnKind::kWrongUnit},
      {"Joules", ColumnKind::kWrongUnit}, {"s", ColumnKind::kOtherUnit},
      {"ms", ColumnKind::kOtherUnit},     {"us", ColumnKind::kOtherUnit},
      {"ns", ColumnKind::kOtherUnit},     {"cycles", ColumnKind::kOtherUnit},
      {"MHz", ColumnKind::kOtherUnit},    {"GHz", ColumnKind::kOtherUnit},
      {"Hz", ColumnKind::kOtherUnit},     {"V", ColumnKind::kOtherUnit},
      {"C", ColumnKind::kOtherUnit},      {"K", ColumnKind::kOtherUnit},
      {"pct", ColumnKind::kOtherUnit},    {"percent", ColumnKind::kOtherUnit},
  }};
  std::string_view text = name;
  std::string_view unit;
  if (text.ends_with(')') || text.ends_with(']')) {
    const size_t open = text.find_last_of("([");
    if (open == std::string_view::npos) return {name};
    unit = trim(text.substr(open + 1, text.size() - open - 2));
    text = trim(text.substr(0, open));
  } else {
    const size_t bar = text.rfind('_');
    if (bar == std::string_view::npos) return {name};
    unit = text.substr(bar + 1);
    text = text.substr(0, bar);
  }
  if (text.empty()) return {name};
  if (unit == "%") return {std::string(text), ColumnKind::kOtherUnit, "%"};
  for (const Unit& u : kUnits)
    if (unit == u.text) return {std::string(text), u.kind, std::string(unit)};
  return {name};
}

bool is_index(const std::string& name) {
  return name.empty() || lower(name).starts_with("unnamed");
}

// A column of text: no cell is a number, and some cell is not empty.
bool is_label(const CsvTable& table, size_t column) {
  bool any = false;
  for (const CsvRow& row : table.rows) {
    if (trim(row.cells[column]).empty()) continue;
    any = true;
    if (parse_number(row.cells[column], table.separator == ';', true)) return false;
  }
  return any;
}

bool is_empty(const CsvTable& table, size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(),
                     [&](const CsvRow& r) { return trim(r.cells[column]).empty(); });
}

// The column called `bare` + "_W"; an error that helps if there is none.
size_t find_power(const CsvTable& table, const std::string& bare) {
  if (const auto found = table.find(bare + "_W")) return *found;
  for (size_t i = 0; i < table.header.size(); ++i) {
    const ColumnName name = split_unit(table.header[i]);
    if (lower(name.bare) != lower(bare) || name.unit.empty()) continue;
    if (name.kind == ColumnKind::kWatts) return i;
    throw Error(fmt::format("{}: column {} is in {}; a sheet has watts ({}_W)", table.source,
                            table.header[i], name.unit, bare));
  }
  return table.require(bare + "_W");
}

// Both are power of the same kernel: a factor of hundreds is a unit, no error of a model.
constexpr double kUnitMixUp = 200;

void check_units(const Sheet& sheet, const SheetKernel& k) {
  const auto fail = [&](const std::string& what) {
    throw Error(fmt::format("{}: line {} ({}): {}", sheet.source, k.line, k.name, what));
  };
  const double ratio = k.measured / k.model;
  if (ratio > kUnitMixUp || ratio < 1 / kUnitMixUp)
    fail(fmt::format("measured_W {} is {:.3g} times model_total_W {}; are both in watts?",
                     k.measured.value(), ratio, k.model.value()));
  for (size_t c = 0; c < k.component.size(); ++c)
    if (k.component[c] > k.model * 10)
      fail(fmt::format("{} {} is more than model_total_W {}; is it in watts?", sheet.components[c],
                       k.component[c].value(), k.model.value()));
  const double sum = k.component_sum().value();
  if (!k.component.empty() && sum * kUnitMixUp < k.model.value())
    fail(fmt::format("the components add up to {}, but model_total_W is {}; are they in watts?",
                     sum, k.model.value()));
}

void note_sums(Sheet& sheet) {
  size_t differ = 0;
  Watts least(INFINITY), most(-INFINITY);
  for (const SheetKernel& k : sheet.kernels) {
    const Watts rest = k.model - k.component_sum();
    if (std::abs(rest.value()) <= 0.001 * k.model.value()) continue;
    ++differ;
    least = std::min(least, rest);
    most = std::max(most, rest);
  }
  if (differ == 0) return;
  const std::string size = (most - least).value() < 0.001
                               ? fmt::format("{:.4f} W", most.value())
                               : fmt::format("{:.4f} to {:.4f} W", least.value(), most.value());
  sheet.notes.push_back(
      fmt::format("model_total_W differs from the sum of the components by {} in {} of {} rows; "
                  "errors are those of model_total_W",
                  size, differ, sheet.kernels.size()));
}

}  // namespace

Watts SheetKernel::component_sum() const {
  return std::accumulate(component.begin(), component.end(), Watts());
}

int Sheet::find(std::string_view component) const {
  for (size_t i = 0; i < components.size(); ++i)
    if (lower(components[i]) == lower(component)) return static_cast<int>(i);
  return -1;
}

Watts Sheet::mean(size_t component) const {
  Watts sum;
  for (const SheetKernel& k : kernels) sum += k.component[component];
  return sum / static_cast<double>(kernels.size());
}

Sheet make_sheet(const CsvTable& table, SheetColumns columns) {
  Sheet sheet;
  sheet.source = table.source;
  const size_t measured = find_power(table, "measured");
  const bool has_model = columns.needs_model || table.find("model_total_W");
  const size_t model = has_model ? find_power(table, "model_total") : table.header.size();
  size_t name = table.header.size(), suite = table.header.size();
  if (const auto found = table.find("kernel")) name = *found;
  if (const auto found = table.find("suite")) suite = *found;
  std::vector<size_t> component_columns;
  for (size_t i = 0; i < table.header.size(); ++i) {
    if (i == measured || i == model || i == name || i == suite) continue;
    const ColumnName column = split_unit(table.header[i]);
    if (is_label(table, i)) {
      if (name == table.header.size()) name = i;
      continue;
    }
    if (is_index(table.header[i])) continue;
    if (is_empty(table, i)) {
      sheet.notes.push_back(fmt::format("column {} is empty: left out", table.header[i]));
      continue;
    }
    if (column.kind == ColumnKind::kOtherUnit) {
      sheet.notes.push_back(
          fmt::format("column {} is in {}: no component", table.header[i], column.unit));
      continue;
    }
    if (column.kind == ColumnKind::kWrongUnit)
      throw Error(fmt::format("{}: column {} is in {}; a sheet has watts", table.source,
                              table.header[i], column.unit));
    component_columns.push_back(i);
    sheet.components.push_back(column.bare);
  }
  if (component_columns.empty())
    throw Error(fmt::format("{}: there is no column of a component; the columns are: {}",
                            table.source, fmt::join(table.header, ", ")));
  for (const CsvRow& row : table.rows) {
    SheetKernel k{.line = row.line};
    k.name = name < row.cells.size() ? std::string(trim(row.cells[name])) : "";
    if (k.name.empty()) k.name = fmt::format("row {}", sheet.kernels.size() + 1);
    if (suite < row.cells.size()) k.suite = row.cells[suite];
    for (const size_t c : component_columns)
      k.component.emplace_back(require_number(table, row, c));
    k.measured = Watts(require_number(table, row, measured));
    k.model = has_model ? Watts(require_number(table, row, model)) : k.component_sum();
    if (k.measured.value() <= 0 || k.model.value() <= 0)
      throw Error(fmt::format("{}: line {} ({}): {} is 0; no error can be relative to it",
                              sheet.source, k.line, k.name,
                              k.measured.value() <= 0 ? "measured_W" : "model_total_W"));
    check_units(sheet, k);
    sheet.kernels.push_back(std::move(k));
  }
  if (has_model) note_sums(sheet);
  return sheet;
}

Sheet read_sheet(const std::string& path, SheetColumns columns) {
  return make_sheet(read_csv(path), columns);
}

}  // namespace gpusim::accelwattch
