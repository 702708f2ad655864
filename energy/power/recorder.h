// Sampling a source while something runs.
#pragma once
#include <functional>
#include <optional>

#include "energy/power/source.h"
#include "energy/power/trace.h"

namespace gpusim::power {

struct RecordOptions {
  Hertz rate{100};
  std::optional<Seconds> most;  // stop after this long
};

struct RecordStatus {
  Seconds elapsed;
  Watts now, mean, peak;
  Joules energy;
  size_t samples = 0;
};

// Polls at `rate` (or as fast as the source answers) until `is_over` says so, the source ends or
// `most` has passed. A source that throws ends the recording: it becomes partial, with a note, and
// what was read stays. `show` is called about ten times a second of the source's time.
Trace record(PowerSource& source, const RecordOptions& options,
             const std::function<bool()>& is_over,
             const std::function<void(const RecordStatus&)>& show);

struct EnergySummary {
  Seconds duration;
  Watts mean, peak, least;  // mean over time
  Joules energy;            // trapezoids over what is not a gap
  // One standard deviation, see summarize_energy(). Not known where no update brought another
  // value and nothing is said of the sensor's error.
  std::optional<Joules> uncertainty;
  // By the source's own counter, where it has one, between its first reading in there and its last.
  std::optional<Joules> counted;
  Seconds counted_for{0};
  size_t samples = 0, updates = 0;
  std::optional<Seconds> update_period;
  Seconds skipped;  // gaps
};

// Over [begin, end], or everything. The uncertainty has two parts, added in squares: of sampling,
// where between two updates the power may have moved at any time (change * step / sqrt(12) for each
// pair), and of the sensor, `sensor_error` watts all the time (NVML says +- 5 W, others 0 if
// nothing is known of them).
EnergySummary summarize_energy(const Trace& trace, std::optional<Interval> part,
                               Watts sensor_error);

}  // namespace gpusim::power
