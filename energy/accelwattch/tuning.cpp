#include "energy/accelwattch/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "device_sim/base/error.h"
#include "energy/accelwattch/components.h"

namespace gpusim::accelwattch {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// A column with less than this share of the measured power decides nothing.
constexpr double kUnusedShare = 1e-9;
constexpr double kDependent = 1e-8;

bool is_fixed(const std::string& component) {
  const std::string name = lower(component);
  return name == lower(kIdle) || name == lower(kConstant) || name == lower(kStatic);
}

struct Problem {
  std::vector<size_t> columns;  // of the sheet: the dynamic components
  MatrixXd watts;               // kernel, column
  VectorXd fixed, measured;
};

Problem make_problem(const Sheet& sheet) {
  Problem p;
  for (size_t c = 0; c < sheet.components.size(); ++c)
    if (!is_fixed(sheet.components[c])) p.columns.push_back(c);
  if (p.columns.empty()) throw Error(sheet.source + ": there is no dynamic component to tune");
  const auto rows = static_cast<Eigen::Index>(sheet.kernels.size());
  p.watts.resize(rows, static_cast<Eigen::Index>(p.columns.size()));
  p.fixed = VectorXd::Zero(rows);
  p.measured.resize(rows);
  for (Eigen::Index r = 0; r < rows; ++r) {
    const SheetKernel& k = sheet.kernels[static_cast<size_t>(r)];
    p.measured[r] = k.measured.value();
    for (size_t c = 0; c < sheet.components.size(); ++c)
      if (is_fixed(sheet.components[c])) p.fixed[r] += k.component[c].value();
    for (size_t c = 0; c < p.columns.size(); ++c)
      p.watts(r, static_cast<Eigen::Index>(c)) = k.component[p.columns[c]].value();
  }
  return p;
}

LinearConstraint make_constraint(const FactorOrder& order, const Sheet& sheet, const Problem& p) {
  const auto n = static_cast<Eigen::Index>(p.columns.size());
  const auto index = [&](const std::string& name) {
    for (size_t c = 0; c < p.columns.size(); ++c)
      if (lower(sheet.components[p.columns[c]]) == lower(name)) return static_cast<Eigen::Index>(c);
    throw Error(fmt::format("{}: order {}: there is no dynamic component {}", sheet.source,
                            order.text(), name));
  };
  LinearConstraint c{VectorXd::Zero(n), 0, false, order.text()};
  if (order.right.empty()) {
    const double sign = order.is_lower_bound ? 1 : -1;
    c.normal[index(order.left)] = sign;
    c.bound = sign * order.factor;
  } else {
    c.normal[index(order.left)] -= 1;
    c.normal[index(order.right)] += order.factor;
  }
  return c;
}

Sheet with_factors(const Sheet& sheet, const Problem& p, const VectorXd& x) {
  Sheet s = sheet;
  for (SheetKernel& k : s.kernels) {
    for (size_t c = 0; c < p.columns.size(); ++c)
      k.component[p.columns[c]] = k.component[p.columns[c]] * x[static_cast<Eigen::Index>(c)];
    k.model = k.component_sum();
  }
  return s;
}

// Singular vectors of the columns, scaled to length 1, whose singular values vanish.
void find_inseparable(const Sheet& sheet, const Problem& p, const std::vector<bool>& used,
                      const VectorXd& weights, TuneResult& result) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < used.size(); ++c)
    if (used[c]) columns.push_back(c);
  if (columns.empty()) return;
  MatrixXd a(p.watts.rows(), static_cast<Eigen::Index>(columns.size()));
  for (size_t c = 0; c < columns.size(); ++c)
    a.col(static_cast<Eigen::Index>(c)) =
        weights.cwiseProduct(p.watts.col(static_cast<Eigen::Index>(columns[c]))).normalized();
  const Eigen::JacobiSVD<MatrixXd> svd(a, Eigen::ComputeThinU | Eigen::ComputeFullV);
  const VectorXd& values = svd.singularValues();
  const double smallest = values.size() < a.cols() ? 0 : values[values.size() - 1];
  result.condition = smallest > 0 ? values[0] / smallest : INFINITY;
  for (Eigen::Index v = 0; v < a.cols(); ++v) {
    if (v < values.size() && values[v] > kDependent * values[0]) continue;
    std::vector<std::string> group;
    for (size_t c = 0; c < columns.size(); ++c)
      if (std::abs(svd.matrixV()(static_cast<Eigen::Index>(c), v)) > 1e-3)
        group.push_back(sheet.components[p.columns[columns[c]]]);
    result.inseparable.push_back(std::move(group));
  }
}

}  // namespace

std::string FactorOrder::text() const {
  if (right.empty()) return fmt::format("{} {} {:g}", left, is_lower_bound ? ">=" : "<=", factor);
  return factor == 1 ? fmt::format("{} <= {}", left, right)
                     : fmt::format("{} <= {:g} {}", left, factor, right);
}

FactorOrder parse_order(const std::string& text) {
  const auto fail = [&] {
    throw Error(
        fmt::format("{} is no order of factors; write \"INTP <= FPUP\", \"INTP <= 1.5 "
                    "FPUP\", \"TEXP >= 0.2\" or \"TEXP <= 5\"",
                    text));
  };
  size_t at = text.find("<=");
  const bool is_lower = at == std::string::npos;
  if (is_lower) at = text.find(">=");
  if (at == std::string::npos) fail();
  FactorOrder order{.left = std::string(trim(text.substr(0, at)))};
  std::string right(trim(text.substr(at + 2)));
  if (order.left.empty() || right.empty() || order.left.find(' ') != std::string::npos) fail();
  if (const auto bound = parse_number(right)) {
    order.factor = *bound;
    order.is_lower_bound = is_lower;
    if (!(*bound >= 0) || !std::isfinite(*bound)) fail();
    return order;
  }
  if (const size_t space = right.find(' '); space != std::string::npos) {
    const auto factor = parse_number(right.substr(0, space));
    if (!factor || !(*factor > 0) || !std::isfinite(*factor)) fail();
    order.factor = *factor;
    right = trim(right.substr(space));
  }
  if (right.find(' ') != std::string::npos) fail();
  order.right = right;
  if (is_lower) {  // a >= f b is b <= a / f
    std::swap(order.left, order.right);
    order.factor = 1 / order.factor;
  }
  return order;
}

std::vector<FactorOrder> paper_orders(const Sheet& sheet) {
  std::vector<FactorOrder> orders;
  const auto add = [&](const char* left, const char* right) {
    if (sheet.find(left) >= 0 && sheet.find(right) >= 0)
      orders.push_back({.left = left, .right = right});
  };
  add("INTP", "FPUP");
  add("FPUP", "DPUP");
  add("INTP", "INT_MULP");
  for (const char* unit :
       {"INT_MULP", "DP_MULP", "FP_SQRTP", "FP_LGP", "FP_SINP", "FP_EXP", "TENSORP", "TEXP"})
    add("FP_MULP", unit);
  return orders;
}

std::vector<FactorOrder> code_orders(const Sheet& sheet,
                                     const std::map<std::string, double>& energies) {
  std::vector<FactorOrder> orders;
  const auto add = [&](const char* left, const char* right) {
    if (sheet.find(left) < 0 || sheet.find(right) < 0) return;
    const auto l = energies.find(left), r = energies.find(right);
    if (l == energies.end() || r == energies.end() || l->second <= 0 || r->second <= 0) return;
    orders.push_back({.left = left, .right = right, .factor = r->second / l->second});
  };
  add("INTP", "FPUP");
  add("FPUP", "DPUP");
  for (const char* unit : {"INT_MUL24P", "INT_MUL32P", "INT_MULP"}) add("INTP", unit);
  for (const char* unit :
       {"FP_DIVP", "DP_MULP", "FP_SQRTP", "FP_LGP", "FP_SINP", "FP_EXP", "TENSORP", "TEXP"})
    add("FP_MULP", unit);
  return orders;
}

TuneResult tune(const Sheet& sheet, const TuneOptions& options) {
  if (!(options.lower >= 0) || !(options.upper >= options.lower) || !std::isfinite(options.upper))
    throw Error(
        fmt::format("factors between {} and {}: the bounds must be ordered and not negative",
                    options.lower, options.upper));
  const Problem p = make_problem(sheet);
  const auto n = static_cast<Eigen::Index>(p.columns.size());
  const VectorXd weights =
      options.relative ? p.measured.cwiseInverse().eval() : VectorXd::Ones(p.measured.size());
  MatrixXd a = weights.asDiagonal() * p.watts;
  TuneResult result;
  std::vector<bool> used(static_cast<size_t>(n));
  VectorXd start(n);
  for (Eigen::Index c = 0; c < n; ++c) {
    const std::string& name = sheet.components[p.columns[static_cast<size_t>(c)]];
    used[static_cast<size_t>(c)] =
        a.col(c).norm() > kUnusedShare * weights.cwiseProduct(p.measured).norm();
    if (!used[static_cast<size_t>(c)]) a.col(c).setZero();
    const auto given = options.start.find(name);
    start[c] = std::clamp(given == options.start.end() ? 1.0 : given->second, options.lower,
                          options.upper);
  }
  const VectorXd measured = weights.cwiseProduct(p.measured);
  const VectorXd fixed = weights.cwiseProduct(p.fixed);
  const double factor = options.linear_term_as_printed ? 1 : 2;
  QuadraticProgram qp{
      2 * a.transpose() * a, -factor * a.transpose() * measured + 2 * a.transpose() * fixed, {}};
  for (Eigen::Index c = 0; c < n; ++c) {
    const std::string& name = sheet.components[p.columns[static_cast<size_t>(c)]];
    qp.constraints.push_back({VectorXd::Unit(n, c), options.lower, false,
                              fmt::format("{} >= {:g}", name, options.lower)});
    qp.constraints.push_back({-VectorXd::Unit(n, c), -options.upper, false,
                              fmt::format("{} <= {:g}", name, options.upper)});
  }
  for (const FactorOrder& order : options.orders)
    qp.constraints.push_back(make_constraint(order, sheet, p));
  result.solution = solve(qp, start);
  if (!result.solution.feasible) {
    std::vector<std::string> names;
    for (const size_t i : result.solution.conflict) names.push_back(qp.constraints[i].name);
    throw Error(fmt::format("no factors satisfy all constraints; these contradict each other: {}",
                            fmt::join(names, ", ")));
  }
  const VectorXd& x = result.solution.x;
  // A constraint binds if it has a multiplier, or holds exactly.
  const auto binds = [&](size_t i) {
    const LinearConstraint& c = qp.constraints[i];
    const double slack = c.normal.dot(x) - c.bound;
    return slack <= 1e-9 * (1 + std::abs(c.bound) + c.normal.cwiseAbs().dot(x.cwiseAbs()));
  };
  for (Eigen::Index c = 0; c < n; ++c) {
    const auto i = static_cast<size_t>(c);
    TunedFactor f{sheet.components[p.columns[i]], x[c], FactorState::kFree, {}};
    for (size_t k = static_cast<size_t>(2 * n); k < qp.constraints.size(); ++k)
      if (qp.constraints[k].normal[c] != 0 && binds(k)) f.held_by.push_back(qp.constraints[k].name);
    if (!f.held_by.empty()) f.state = FactorState::kHeld;
    if (binds(2 * i)) f.state = FactorState::kAtLower;
    if (binds(2 * i + 1)) f.state = FactorState::kAtUpper;
    if (!used[i]) f.state = FactorState::kUnused;
    result.factors.push_back(std::move(f));
  }
  find_inseparable(sheet, p, used, weights, result);
  result.before = with_factors(sheet, p, VectorXd::Ones(n));
  result.after = with_factors(sheet, p, x);
  result.before_accuracy = accuracy(result.before);
  result.after_accuracy = accuracy(result.after);
  return result;
}

Accuracy leave_one_out(const Sheet& sheet, const TuneOptions& options) {
  if (sheet.kernels.size() < 2) throw Error(sheet.source + ": leaving one out needs two kernels");
  std::vector<Watts> model, measured;
  for (size_t k = 0; k < sheet.kernels.size(); ++k) {
    Sheet rest = sheet;
    rest.kernels.erase(rest.kernels.begin() + static_cast<std::ptrdiff_t>(k));
    const TuneResult r = tune(rest, options);
    Sheet alone = sheet;
    alone.kernels = {sheet.kernels[k]};
    const Problem p = make_problem(alone);
    model.push_back(with_factors(alone, p, r.solution.x).kernels[0].model);
    measured.push_back(sheet.kernels[k].measured);
  }
  return accuracy(model, measured);
}

}  // namespace gpusim::accelwattch
