#pragma once
#include <vector>

#include "energy/power/simulated.h"
#include "energy/power/trace.h"

namespace gpusim::power {

// Polls until `end` on the source's clock, or until it is over.
inline Trace record_until(PowerSource& source, Seconds end) {
  Trace trace;
  trace.source = source.name();
  while (source.now() < end) {
    const auto sample = source.poll();
    if (!sample) break;
    trace.samples.push_back(*sample);
  }
  return trace;
}

}  // namespace gpusim::power
