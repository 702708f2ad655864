// Small dense convex quadratic programs:
//   minimise 1/2 x'Hx + c'x   subject to   Ex = e,  Gx >= g
// with H positive semidefinite. The dual active-set method of Goldfarb and Idnani (Mathematical
// Programming 27, 1983), inside proximal steps where H is singular.
#pragma once
#include <Eigen/Dense>
#include <string>
#include <vector>

namespace gpusim::accelwattch {

struct LinearConstraint {
  Eigen::VectorXd normal;
  double bound = 0;  // normal'x >= bound, or = bound
  bool is_equality = false;
  std::string name;  // for messages
};

struct QuadraticProgram {
  Eigen::MatrixXd hessian;
  Eigen::VectorXd linear;
  std::vector<LinearConstraint> constraints;
};

// How far a point is from the conditions of Karush, Kuhn and Tucker, each relative to the size of
// what it is made of.
struct KktResidual {
  double stationarity = 0;     // |Hx + c - sum of multipliers times normals|
  double feasibility = 0;      // worst violation
  double complementarity = 0;  // worst |multiplier times slack|
  double dual = 0;             // most negative multiplier of an inequality

  double worst() const;
};

struct QpSolution {
  bool feasible = false;
  Eigen::VectorXd x;
  Eigen::VectorXd multipliers;  // one per constraint, 0 where it does not hold x
  double objective = 0;
  KktResidual kkt;
  int steps = 0;
  // If there is no feasible point: constraints that contradict each other, by index.
  std::vector<size_t> conflict;
};

// `start`: where H and the constraints do not decide, x stays near it (the minimiser that proximal
// steps from there lead to). Constraints may depend on each other. Throws Error for sizes
// that do not fit and values that are not finite.
QpSolution solve(const QuadraticProgram& program, const Eigen::VectorXd& start);

KktResidual kkt_residual(const QuadraticProgram& program, const Eigen::VectorXd& x,
                         const Eigen::VectorXd& multipliers);

}  // namespace gpusim::accelwattch
