#include "energy/accelwattch/quadratic_program.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "device_sim/base/error.h"

using namespace gpusim;
using namespace gpusim::accelwattch;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

uint64_t seed_from_env_or_random() {
  const char* text = std::getenv("GPUSIM_SEED");
  return text ? std::strtoull(text, nullptr, 0) : std::random_device{}();
}

LinearConstraint at_least(const VectorXd& normal, double bound, bool equality = false) {
  return {normal, bound, equality, {}};
}

double objective(const QuadraticProgram& p, const VectorXd& x) {
  return 0.5 * x.dot(p.hessian * x) + p.linear.dot(x);
}

bool is_feasible(const QuadraticProgram& p, const VectorXd& x, double tolerance) {
  for (const auto& c : p.constraints) {
    // Nearly parallel constraints meet far away, where rounding is larger, too.
    const double most = tolerance * (1 + std::abs(c.bound) + c.normal.cwiseAbs().dot(x.cwiseAbs()));
    const double slack = c.normal.dot(x) - c.bound;
    if (slack < -most || (c.is_equality && slack > most)) return false;
  }
  return true;
}

// The best feasible point over all sets of constraints that hold with equality: exact, and nothing
// of it is in the solver. For strictly convex programs.
bool best_by_enumeration(const QuadraticProgram& p, double& best) {
  const auto n = p.linear.size();
  const size_t m = p.constraints.size();
  bool found = false;
  for (uint32_t set = 0; set < 1u << m; ++set) {
    const int size = __builtin_popcount(set);
    if (size > n) continue;
    MatrixXd kkt = MatrixXd::Zero(n + size, n + size);
    VectorXd right(n + size);
    kkt.topLeftCorner(n, n) = p.hessian;
    right.head(n) = -p.linear;
    Eigen::Index row = n;
    for (size_t i = 0; i < m; ++i) {
      if (!(set >> i & 1)) continue;
      kkt.row(row).head(n) = p.constraints[i].normal;
      kkt.col(row).head(n) = p.constraints[i].normal;
      right[row++] = p.constraints[i].bound;
    }
    const Eigen::FullPivLU<MatrixXd> lu(kkt);
    if (!lu.isInvertible()) continue;
    const VectorXd x = lu.solve(right).head(n);
    if (!is_feasible(p, x, 1e-9)) continue;
    const double value = objective(p, x);
    if (!found || value < best) best = value;
    found = true;
  }
  return found;
}

}  // namespace

TEST_CASE("a program without constraints has the solution of its linear system") {
  QuadraticProgram p{MatrixXd{{2, 1}, {1, 3}}, VectorXd{{-1, -2}}, {}};
  const QpSolution s = solve(p, VectorXd::Zero(2));
  REQUIRE(s.feasible);
  CHECK((s.x - p.hessian.ldlt().solve(-p.linear)).norm() < 1e-9);
  CHECK(s.kkt.worst() < 1e-10);
}

TEST_CASE("a program of Goldfarb and Idnani's kind, by hand") {
  // (x-1)^2 + (y-2.5)^2 with the five sides of Nocedal and Wright's example 16.4: (1.4, 1.7).
  QuadraticProgram p{2 * MatrixXd::Identity(2, 2),
                     VectorXd{{-2, -5}},
                     {at_least(VectorXd{{1, -2}}, -2), at_least(VectorXd{{-1, -2}}, -6),
                      at_least(VectorXd{{-1, 2}}, -2), at_least(VectorXd{{1, 0}}, 0),
                      at_least(VectorXd{{0, 1}}, 0)}};
  const QpSolution s = solve(p, VectorXd::Zero(2));
  REQUIRE(s.feasible);
  CHECK(s.x[0] == doctest::Approx(1.4));
  CHECK(s.x[1] == doctest::Approx(1.7));
  CHECK(s.multipliers[0] == doctest::Approx(0.8));
  CHECK(s.kkt.worst() < 1e-9);
}

TEST_CASE("random programs agree with an enumeration of all active sets") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  int infeasible = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const auto n = static_cast<Eigen::Index>(1 + random() % 5);
    const size_t m = random() % 9;
    const MatrixXd a = MatrixXd::NullaryExpr(n + 2, n, [&] { return normal(random); });
    QuadraticProgram p{
        a.transpose() * a, VectorXd::NullaryExpr(n, [&] { return normal(random); }), {}};
    for (size_t i = 0; i < m; ++i) {
      VectorXd v = VectorXd::NullaryExpr(n, [&] { return normal(random); });
      if (random() % 4 == 0 && i > 0) v = -p.constraints[i - 1].normal;  // opposite sides
      if (random() % 8 == 0 && i > 0) v = p.constraints[i - 1].normal;   // twice the same
      p.constraints.push_back(at_least(v, normal(random), random() % 8 == 0 && n > 1));
    }
    double best = 0;
    const bool exists = best_by_enumeration(p, best);
    const QpSolution s = solve(p, VectorXd::Zero(n));
    REQUIRE(s.feasible == exists);
    infeasible += !exists;
    if (!exists) {
      CHECK(s.conflict.size() >= 2);
      continue;
    }
    CHECK(is_feasible(p, s.x, 1e-7));
    CHECK(std::abs(s.objective - best) <= 1e-6 * (1 + std::abs(best)));
    CHECK(s.kkt.worst() < 1e-7);
  }
  CHECK(infeasible > 0);
}

TEST_CASE("what nothing decides stays at the start") {
  // Variable 1 is in no row; 2 and 3 are the same column.
  const MatrixXd a{{1, 0, 2, 2}, {3, 0, 1, 1}, {1, 0, 1, 1}};
  const VectorXd b{{5, 5, 3}};
  QuadraticProgram p{a.transpose() * a, -a.transpose() * b, {}};
  for (int i = 0; i < 4; ++i) {
    p.constraints.push_back(at_least(VectorXd::Unit(4, i), 0.001));
    p.constraints.push_back(at_least(-VectorXd::Unit(4, i), -1000));
  }
  const QpSolution s = solve(p, VectorXd{{1, 7, 1, 1}});
  REQUIRE(s.feasible);
  CHECK(s.x[1] == doctest::Approx(7));
  CHECK(s.x[2] == doctest::Approx(s.x[3]));
  CHECK((a * s.x - b).norm() < 1.0);
  CHECK(s.kkt.worst() < 1e-9);
  // Held by its bound although the objective does not care.
  const QpSolution held = solve(p, VectorXd{{1, 0, 1, 1}});
  CHECK(held.x[1] == doctest::Approx(0.001));
}

TEST_CASE("very different scales") {
  const VectorXd sizes{{1e-6, 1, 1e5}};
  const MatrixXd a = MatrixXd{{1, 2, 1}, {2, 1, 1}, {1, 1, 3}, {1, 0, 1}} * sizes.asDiagonal();
  const VectorXd truth{{3e5, 0.2, 4e-5}};
  const QpSolution s =
      solve({a.transpose() * a, -a.transpose() * (a * truth), {}}, VectorXd::Ones(3));
  CHECK((s.x - truth).cwiseQuotient(truth).norm() < 1e-5);
}

TEST_CASE("constraints that contradict each other are named") {
  QuadraticProgram p{MatrixXd::Identity(2, 2),
                     VectorXd::Zero(2),
                     {at_least(VectorXd{{1, 0}}, 0), at_least(VectorXd{{1, 1}}, 3),
                      at_least(VectorXd{{0, -1}}, -1), at_least(VectorXd{{-1, 0}}, -1)}};
  const QpSolution s = solve(p, VectorXd::Zero(2));
  CHECK_FALSE(s.feasible);
  CHECK(s.conflict == std::vector<size_t>{1, 2, 3});
  p.constraints = {at_least(VectorXd::Zero(2), 1)};  // 0 >= 1
  CHECK(solve(p, VectorXd::Zero(2)).conflict == std::vector<size_t>{0});
}

TEST_CASE("programs that make no sense are refused") {
  CHECK_THROWS_AS(solve({MatrixXd::Identity(2, 2), VectorXd::Zero(3), {}}, VectorXd::Zero(3)),
                  Error);
  CHECK_THROWS_AS(solve({-MatrixXd::Identity(2, 2), VectorXd::Zero(2), {}}, VectorXd::Zero(2)),
                  Error);
  CHECK_THROWS_AS(solve({MatrixXd{{1, 2}, {2, 1}}, VectorXd::Zero(2), {}}, VectorXd::Zero(2)),
                  Error);
  CHECK_THROWS_AS(
      solve({MatrixXd::Identity(1, 1), VectorXd{{std::nan("")}}, {}}, VectorXd::Zero(1)), Error);
  CHECK(solve({MatrixXd(0, 0), VectorXd(0), {}}, VectorXd(0)).feasible);
}
