#include "energy/accelwattch/constant_power.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "device_sim/base/error.h"
#include "energy/accelwattch/quadratic_program.h"

namespace gpusim::accelwattch {
namespace {

double gigahertz(Hertz f) { return f.value() / 1e9; }

void check(const FrequencyCurve& curve, size_t least) {
  std::set<double> frequencies;
  for (const FrequencyPoint& p : curve.points) {
    if (!(p.frequency.value() > 0) || !(p.power.value() > 0) || !p.frequency.is_finite() ||
        !p.power.is_finite())
      throw Error(fmt::format("workload {}: {} W at {} Hz; both must be positive", curve.workload,
                              p.power.value(), p.frequency.value()));
    frequencies.insert(p.frequency.value());
  }
  if (frequencies.size() < least)
    throw Error(fmt::format("workload {} has {} frequencies; a fit needs {}", curve.workload,
                            frequencies.size(), least));
}

// Least squares with no negative unknown.
Eigen::VectorXd non_negative_fit(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  QuadraticProgram qp{a.transpose() * a, -a.transpose() * b, {}};
  for (Eigen::Index i = 0; i < a.cols(); ++i)
    qp.constraints.push_back({Eigen::VectorXd::Unit(a.cols(), i), 0, false, {}});
  return solve(qp, Eigen::VectorXd::Zero(a.cols())).x;
}

// Of what the fits give against what was measured.
void compare(const std::vector<double>& fitted, const std::vector<double>& measured, double& r,
             double& mape, double& rms) {
  const double n = static_cast<double>(fitted.size());
  const Eigen::Map<const Eigen::ArrayXd> x(measured.data(), static_cast<Eigen::Index>(n));
  const Eigen::Map<const Eigen::ArrayXd> y(fitted.data(), static_cast<Eigen::Index>(n));
  const Eigen::ArrayXd dx = x - x.mean(), dy = y - y.mean(), error = (y - x) / x;
  const double size = std::sqrt(dx.square().sum() * dy.square().sum());
  r = size > 0 ? (dx * dy).sum() / size : 0;
  mape = 100 * error.abs().mean();
  rms = 100 * std::sqrt(error.square().mean());
}

void judge(CubicFit& fit, const FrequencyCurve& curve) {
  std::vector<double> fitted, measured;
  for (const FrequencyPoint& p : curve.points) {
    fitted.push_back(fit.at(p.frequency).value());
    measured.push_back(p.power.value());
  }
  double mape = 0;
  compare(fitted, measured, fit.pearson_r, mape, fit.rms_percent);
}

CubicFit fit_separately(const FrequencyCurve& curve) {
  const auto n = static_cast<Eigen::Index>(curve.points.size());
  Eigen::MatrixXd a(n, 3);
  Eigen::VectorXd b(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const FrequencyPoint& p = curve.points[static_cast<size_t>(i)];
    const double f = gigahertz(p.frequency);
    a.row(i) << f * f * f, f, 1;
    b[i] = p.power.value();
  }
  const Eigen::VectorXd x = non_negative_fit(a, b);
  CubicFit fit{curve.workload, x[0], x[1], Watts(x[2])};
  judge(fit, curve);
  return fit;
}

}  // namespace

Watts CubicFit::at(Hertz frequency) const {
  const double f = gigahertz(frequency);
  return Watts(beta * f * f * f + tau * f) + constant;
}

Watts CubicFit::static_part(Hertz frequency) const { return Watts(tau * gigahertz(frequency)); }

ConstantFit fit_constant_power(const std::vector<FrequencyCurve>& curves) {
  if (curves.empty()) throw Error("constant power needs at least one workload");
  ConstantFit fit;
  Eigen::Index rows = 0;
  for (const FrequencyCurve& c : curves) {
    check(c, 3);
    rows += static_cast<Eigen::Index>(c.points.size());
  }
  const auto columns = static_cast<Eigen::Index>(2 * curves.size() + 1);
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(rows, columns);
  Eigen::VectorXd b(rows);
  Eigen::Index row = 0;
  for (size_t c = 0; c < curves.size(); ++c) {
    for (const FrequencyPoint& p : curves[c].points) {
      const double f = gigahertz(p.frequency);
      a(row, static_cast<Eigen::Index>(2 * c)) = f * f * f;
      a(row, static_cast<Eigen::Index>(2 * c + 1)) = f;
      a(row, columns - 1) = 1;
      b[row++] = p.power.value();
    }
    fit.separate.push_back(fit_separately(curves[c]));
  }
  const Eigen::VectorXd x = non_negative_fit(a, b);
  fit.constant = Watts(x[columns - 1]);
  const auto by_constant = [](const CubicFit& l, const CubicFit& r) {
    return l.constant < r.constant;
  };
  const auto [least, most] =
      std::minmax_element(fit.separate.begin(), fit.separate.end(), by_constant);
  fit.least = least->constant;
  fit.most = most->constant;
  std::vector<double> fitted, measured;
  for (size_t c = 0; c < curves.size(); ++c) {
    CubicFit curve{curves[c].workload, x[static_cast<Eigen::Index>(2 * c)],
                   x[static_cast<Eigen::Index>(2 * c + 1)], fit.constant};
    judge(curve, curves[c]);
    for (const FrequencyPoint& p : curves[c].points) {
      fitted.push_back(curve.at(p.frequency).value());
      measured.push_back(p.power.value());
    }
    fit.curves.push_back(curve);
  }
  double rms = 0;
  compare(fitted, measured, fit.pearson_r, fit.mape, rms);
  return fit;
}

CubicFit fit_curve(const FrequencyCurve& curve, Watts constant) {
  check(curve, 2);
  const auto n = static_cast<Eigen::Index>(curve.points.size());
  Eigen::MatrixXd a(n, 2);
  Eigen::VectorXd b(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const FrequencyPoint& p = curve.points[static_cast<size_t>(i)];
    const double f = gigahertz(p.frequency);
    a.row(i) << f * f * f, f;
    b[i] = (p.power - constant).value();
  }
  const Eigen::VectorXd x = non_negative_fit(a, b);
  CubicFit fit{curve.workload, x[0], x[1], constant};
  judge(fit, curve);
  return fit;
}

}  // namespace gpusim::accelwattch
