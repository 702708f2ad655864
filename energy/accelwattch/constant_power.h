// Constant power: what is left of P(f) = beta f^3 + tau f + P_const at f = 0 (paper, section 4.2).
#pragma once
#include <string>
#include <vector>

#include "energy/units.h"

namespace gpusim::accelwattch {

using energy::Hertz;
using energy::Watts;

struct FrequencyPoint {
  Hertz frequency;
  Watts power;
};

struct FrequencyCurve {
  std::string workload;
  std::vector<FrequencyPoint> points;
};

// One workload's curve. `beta` in W/GHz^3, `tau` in W/GHz.
struct CubicFit {
  std::string workload;
  double beta = 0, tau = 0;
  Watts constant;
  double rms_percent = 0, pearson_r = 0;

  Watts at(Hertz f) const;
  Watts static_part(Hertz f) const;  // tau f: what section 4.4 calls static power
};

struct ConstantFit {
  Watts constant;                // common to all workloads, least squares over all points
  Watts least, most;             // of the workloads fitted each for itself
  std::vector<CubicFit> curves;  // with the common constant
  std::vector<CubicFit> separate;
  double pearson_r = 0, mape = 0;  // of `curves`, over all points
};

// beta, tau and the constant are not negative. Throws Error for less than three frequencies
// in a workload, and for frequencies or powers that are not positive.
ConstantFit fit_constant_power(const std::vector<FrequencyCurve>& curves);
// With the constant given: beta and tau only; two frequencies are enough.
CubicFit fit_curve(const FrequencyCurve& curve, Watts constant);

}  // namespace gpusim::accelwattch
