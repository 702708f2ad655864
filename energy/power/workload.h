// Something short that can be run again and again while a source is sampled: a kernel.
#pragma once
#include "energy/power/sample.h"

namespace gpusim::power {

// Times are of the clock of the source that is sampled meanwhile.
class Workload {
 public:
  virtual ~Workload() = default;
  // Begins it without waiting for its end. Returns when it began.
  virtual Seconds start() = 0;
  virtual bool is_running() = 0;
  // Waits for its end. Returns when it ended.
  virtual Seconds finish() = 0;
};

}  // namespace gpusim::power
