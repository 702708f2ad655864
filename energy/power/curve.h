// Power over time as straight lines between knots: what truly was drawn, for the simulated sensor.
#pragma once
#include <vector>

#include "energy/power/sample.h"

namespace gpusim::power {

struct Knot {
  Seconds time;
  Watts power;
};

// Two knots of one time make a step. Before the first knot and after the last one power is
// constant.
class Curve {
 public:
  Curve() = default;
  // Throws Error where times fall or values are not finite.
  explicit Curve(std::vector<Knot> knots);
  static Curve constant(Watts power) { return Curve({{Seconds(0), power}}); }

  Watts at(Seconds time) const;  // after a step
  Joules energy(Seconds begin, Seconds end) const;
  // Replaces everything from knots.front().time on.
  void append(const std::vector<Knot>& knots);
  const std::vector<Knot>& knots() const { return knots_; }

 private:
  std::vector<Knot> knots_;
  std::vector<double> energy_;  // joules from the first knot to each
};

}  // namespace gpusim::power
