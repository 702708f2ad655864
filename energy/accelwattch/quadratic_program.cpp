#include "energy/accelwattch/quadratic_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "device_sim/base/error.h"

namespace gpusim::accelwattch {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFeasible = 1e-10;   // of constraints with unit normals, relative
constexpr double kDependent = 1e-10;  // a normal this close to the span of the active ones is in it

// A strictly convex program in scaled variables; the factor of H is kept over many calls.
class StrictProgram {
 public:
  StrictProgram(const MatrixXd& hessian, const std::vector<LinearConstraint>& constraints)
      : constraints_(constraints), factor_(hessian) {
    if (factor_.info() != Eigen::Success) throw Error("a quadratic program is not convex");
  }

  // True if there is a feasible point.
  bool minimise(const VectorXd& linear) {
    const auto n = linear.size();
    x = factor_.solve(-linear);
    active.clear();
    multipliers.clear();
    conflict.clear();
    std::vector<bool> is_active(constraints_.size(), false);
    // Far more than a program of this size takes: a guard against cycling by rounding.
    const int most_steps =
        200 + 50 * static_cast<int>(constraints_.size() + static_cast<size_t>(n));
    for (int step = 0; step < most_steps; ++step) {
      const int next = most_violated(is_active);
      if (next < 0) return true;
      if (!add(static_cast<size_t>(next), is_active)) return false;
    }
    throw Error("the quadratic program's solver does not settle; are its scales too far apart?");
  }

  VectorXd x;
  std::vector<size_t> active;
  std::vector<double> multipliers;  // of `active`; of equalities: with the sign of normal'x = bound
  std::vector<size_t> conflict;
  int steps = 0;

 private:
  double slack(size_t i) const { return constraints_[i].normal.dot(x) - constraints_[i].bound; }
  double tolerance(size_t i) const {
    const LinearConstraint& c = constraints_[i];
    return kFeasible * (1 + std::abs(c.bound) + c.normal.cwiseAbs().dot(x.cwiseAbs()));
  }

  // Equalities first: their multipliers have no sign to lose.
  int most_violated(const std::vector<bool>& is_active) const {
    int worst = -1;
    double most = 0;
    for (const bool equalities : {true, false}) {
      for (size_t i = 0; i < constraints_.size(); ++i) {
        if (is_active[i] || constraints_[i].is_equality != equalities) continue;
        const double s = slack(i), violation = equalities ? std::abs(s) : -s;
        if (violation > tolerance(i) && violation > most) {
          most = violation;
          worst = static_cast<int>(i);
        }
      }
      if (worst >= 0) return worst;
    }
    return -1;
  }

  // Makes constraint `p` hold, dropping others as their multipliers reach zero.
  bool add(size_t p, std::vector<bool>& is_active) {
    const double sign = constraints_[p].is_equality && slack(p) > 0 ? -1 : 1;
    const VectorXd normal = sign * constraints_[p].normal;
    double multiplier = 0;
    for (;;) {
      ++steps;
      // In the metric of H: d is the normal, the columns of `basis` the active normals.
      const VectorXd d = factor_.matrixL().solve(normal);
      VectorXd residue = d, r;
      if (!active.empty()) {
        MatrixXd basis(d.size(), static_cast<Eigen::Index>(active.size()));
        for (size_t k = 0; k < active.size(); ++k)
          basis.col(static_cast<Eigen::Index>(k)) =
              factor_.matrixL().solve(constraints_[active[k]].normal);
        const Eigen::ColPivHouseholderQR<MatrixXd> qr(basis);
        r = qr.solve(d);
        residue = d - basis * r;
      }
      const bool dependent = residue.norm() <= kDependent * d.norm();
      double dual_step = kInfinity;
      size_t drop = active.size();
      for (size_t k = 0; k < active.size(); ++k) {
        const double rk = r[static_cast<Eigen::Index>(k)];
        if (constraints_[active[k]].is_equality || rk <= kDependent) continue;
        if (multipliers[k] / rk < dual_step) {
          dual_step = multipliers[k] / rk;
          drop = k;
        }
      }
      const double violation = -sign * slack(p);
      const double full_step = dependent ? kInfinity : violation / residue.squaredNorm();
      const double t = std::min(dual_step, full_step);
      if (t == kInfinity) {
        // No move in the primal, no constraint to give way: the active ones with a share contradict
        // p.
        conflict.push_back(p);
        for (size_t k = 0; k < active.size(); ++k)
          if (std::abs(r[static_cast<Eigen::Index>(k)]) > 1e-7) conflict.push_back(active[k]);
        std::sort(conflict.begin(), conflict.end());
        return false;
      }
      if (!dependent) x += t * factor_.matrixU().solve(residue);
      for (size_t k = 0; k < active.size(); ++k)
        multipliers[k] -= t * r[static_cast<Eigen::Index>(k)];
      multiplier += t;
      if (t == full_step) {
        active.push_back(p);
        multipliers.push_back(sign * multiplier);
        is_active[p] = true;
        return true;
      }
      is_active[active[drop]] = false;
      active.erase(active.begin() + static_cast<std::ptrdiff_t>(drop));
      multipliers.erase(multipliers.begin() + static_cast<std::ptrdiff_t>(drop));
    }
  }

  const std::vector<LinearConstraint>& constraints_;
  Eigen::LLT<MatrixXd> factor_;
};

void check(const QuadraticProgram& p, const VectorXd& start) {
  const auto n = p.linear.size();
  if (p.hessian.rows() != n || p.hessian.cols() != n || start.size() != n)
    throw Error("a quadratic program's sizes do not fit each other");
  bool finite = p.hessian.allFinite() && p.linear.allFinite() && start.allFinite();
  for (const LinearConstraint& c : p.constraints) {
    if (c.normal.size() != n) throw Error("constraint " + c.name + " has the wrong size");
    finite = finite && c.normal.allFinite() && std::isfinite(c.bound);
  }
  if (!finite) throw Error("a quadratic program has values that are not finite");
}

}  // namespace

double KktResidual::worst() const {
  return std::max({stationarity, feasibility, complementarity, dual});
}

KktResidual kkt_residual(const QuadraticProgram& p, const VectorXd& x,
                         const VectorXd& multipliers) {
  KktResidual r;
  VectorXd gradient = p.hessian * x + p.linear;
  const double gradient_size =
      std::max({(p.hessian * x).cwiseAbs().maxCoeff(), p.linear.cwiseAbs().maxCoeff(), 1e-300});
  for (size_t i = 0; i < p.constraints.size(); ++i) {
    const LinearConstraint& c = p.constraints[i];
    const double m = multipliers[static_cast<Eigen::Index>(i)];
    const double slack = c.normal.dot(x) - c.bound;
    const double size = 1 + std::abs(c.bound) + c.normal.cwiseAbs().dot(x.cwiseAbs());
    gradient -= m * c.normal;
    r.feasibility = std::max(r.feasibility, (c.is_equality ? std::abs(slack) : -slack) / size);
    const double norm = c.normal.norm() / gradient_size;
    r.complementarity = std::max(r.complementarity, std::abs(m * norm * slack) / size);
    if (!c.is_equality) r.dual = std::max(r.dual, -m * norm);
  }
  r.stationarity = gradient.cwiseAbs().maxCoeff() / gradient_size;
  return r;
}

QpSolution solve(const QuadraticProgram& program, const VectorXd& start) {
  check(program, start);
  const auto n = program.linear.size();
  QpSolution solution;
  solution.multipliers = VectorXd::Zero(static_cast<Eigen::Index>(program.constraints.size()));
  if (n == 0) {
    solution.feasible = true;
    solution.x = start;
    return solution;
  }
  // Variables are scaled so that H has a unit diagonal, constraints so that normals have length 1;
  // a variable that H does not mention keeps its scale.
  VectorXd scale = VectorXd::Ones(n);
  const double largest = program.hessian.diagonal().maxCoeff();
  for (Eigen::Index i = 0; i < n; ++i) {
    const double h = program.hessian(i, i);
    if (h < -1e-12 * std::abs(largest)) throw Error("a quadratic program is not convex");
    if (h > 1e-250) scale[i] = 1 / std::sqrt(h);
  }
  const MatrixXd hessian = scale.asDiagonal() * program.hessian * scale.asDiagonal();
  const VectorXd linear = scale.cwiseProduct(program.linear);
  const double size = std::max(1e-300, linear.cwiseAbs().maxCoeff());
  std::vector<LinearConstraint> constraints;
  std::vector<double> lengths;
  for (const LinearConstraint& c : program.constraints) {
    LinearConstraint scaled = c;
    scaled.normal = scale.cwiseProduct(c.normal);
    const double length = scaled.normal.norm();
    lengths.push_back(length > 0 ? length : 1);
    scaled.normal /= lengths.back();
    scaled.bound /= lengths.back() * size;
    if (length == 0 && (c.is_equality ? c.bound != 0 : c.bound > 0)) {  // 0 >= bound
      solution.conflict.push_back(lengths.size() - 1);
      solution.x = start;
      return solution;
    }
    if (length == 0) scaled.bound = -1, scaled.is_equality = false;
    constraints.push_back(std::move(scaled));
  }
  // Proximal steps (minimise f(y) + w/2 |y - last|^2) end at a minimiser of a semidefinite program.
  // A strictly convex one is settled after a few.
  const double weight = 1e-7;
  StrictProgram strict(hessian + weight * MatrixXd::Identity(n, n), constraints);
  VectorXd y = start.cwiseQuotient(scale) / size;
  for (int round = 0; round < 200; ++round) {
    if (!strict.minimise(linear / size - weight * y)) {
      solution.conflict = strict.conflict;
      solution.x = start;
      solution.steps = strict.steps;
      return solution;
    }
    const double moved = (strict.x - y).cwiseAbs().maxCoeff();
    y = strict.x;
    // The residual of the program without the proximal term.
    if (weight * moved <= 1e-13 * (1 + y.cwiseAbs().maxCoeff())) break;
  }
  solution.feasible = true;
  solution.steps = strict.steps;
  solution.x = scale.cwiseProduct(y) * size;
  for (size_t k = 0; k < strict.active.size(); ++k)
    solution.multipliers[static_cast<Eigen::Index>(strict.active[k])] =
        strict.multipliers[k] * size / lengths[strict.active[k]];
  solution.objective =
      0.5 * solution.x.dot(program.hessian * solution.x) + program.linear.dot(solution.x);
  solution.kkt = kkt_residual(program, solution.x, solution.multipliers);
  return solution;
}

}  // namespace gpusim::accelwattch
