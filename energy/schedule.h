// Power over time of kernels, transfers and pauses, with the operating states' tails (thesis,
// section 6.1.1.3).
#pragma once
#include <string>
#include <vector>

#include "energy/model.h"

namespace gpusim::energy {

struct Step {
  enum class Kind { kKernel, kTransfer, kPause } kind = Kind::kPause;
  std::string name;
  Seconds duration;
  Watts power;  // above idle; 0 in a pause
};

// Power is constant over a segment.
struct Segment {
  Seconds begin, end;
  Watts power;
  std::string what;   // the step's name; "idle" in pauses
  std::string state;  // operating state
  Joules energy() const { return power * (end - begin); }
};

struct PowerCurve {
  std::vector<Segment> segments;  // without gaps, from time 0
  Joules energy;                  // the integral
  Seconds duration() const { return segments.empty() ? Seconds(0) : segments.back().end; }
  Watts average() const;
};

// Work raises the machine to its highest state at once; in a pause it stays there for that state's
// hold, then falls to the next, and so on. It begins in the lowest state. A target without states
// has no idle power: the curve is then that above idle.
PowerCurve power_curve(const Target& target, const std::vector<Step>& steps);

Step kernel_step(const Target& target, const Activity& activity, const EstimateOptions& options);
Step transfer_step(const Target& target, Bytes size, double count);

// {"steps": [{"kernel": "sobel.json", "seconds": 0.5}, {"pause": 2.5, "unit": "s"},
//            {"transfer": 1000000, "unit": "B", "count": 3}]}
// Kernels are files of statistics or traces, found from `folder` on; "seconds" only where the
// target's timing is not to be used.
std::vector<Step> parse_schedule(const Target& target, const std::string& text,
                                 const std::string& origin, const std::string& folder);

}  // namespace gpusim::energy
