// High-resolution power profiles from a low-resolution sensor (Lang and Ruenger): a kernel is run
// many times, each run meets the sensor's updates in another phase, and the updates of all runs,
// placed by time since the kernel's start, draw one curve.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "energy/power/source.h"
#include "energy/power/trace.h"
#include "energy/power/updates.h"
#include "energy/power/workload.h"

namespace gpusim::power {

struct ProfilePoint {
  Seconds time;  // since the kernel's start; negative before it
  Watts power;
};

struct ProfileOptions {
  unsigned runs = 200;              // n_ex; some hundreds
  std::optional<Seconds> interval;  // T; measured where not given
  unsigned interval_changes =
      100;                   // changes of value that it is measured from (the paper: 100,000)
  Seconds most_waiting{30};  // for those changes
  Seconds delay{0};          // t_delay: how much longer than the kernel the sensor is watched
  Seconds resync{0.2};       // on-line: at most this long between synchronisations
  double beta = 0.8;         // on-line: synchronises with updates in this part of the kernel
  uint64_t seed = 1;         // of the random waits
};

struct PowerProfile {
  std::string source;
  UpdatePeriod interval;
  std::vector<ProfilePoint> points;  // by time
  unsigned runs = 0;
  unsigned synchronisations = 0;      // on-line
  Seconds kernel, kernel_spread;      // mean duration, standard deviation
  Watts baseline;                     // before the kernel and long after it
  Watts plateau;                      // median over the kernel, without its first and last tenth
  std::optional<Seconds> rise, fall;  // where power passes the middle between them
  Joules energy;                      // trapezoids over the kernel's time
  Joules energy_error;                // standard error, from how far neighbouring points are apart
  Joules above_baseline;              // over the whole curve, less the baseline: right for sensors
                                      // that delay or average, too
  std::vector<std::string> notes;
};

// Section 3.2: polls until the value has changed often enough. Throws Error where it does
// not change within options.most_waiting.
UpdatePeriod measure_interval(PowerSource& source, const ProfileOptions& options);

// Algorithm 1. It polls without a pause, also in the waits of T to 2 T between runs, whose updates
// show the power before the kernel. Throws Error.
PowerProfile profile_offline(PowerSource& source, Workload& workload,
                             const ProfileOptions& options);

// Algorithm 2: one reading after each run; when its update happened follows from the last
// synchronisation and T. `pause`: what the application does between kernels, at most this long,
// random. Kernels must be shorter than T.
PowerProfile profile_online(PowerSource& source, Workload& workload, Seconds pause,
                            const ProfileOptions& options);

// From a recording whose intervals are runs of one kernel (those named `kernel`, or all).
PowerProfile profile_from_trace(const Trace& trace, const std::string& kernel,
                                const ProfileOptions& options);

std::string profile_csv(const PowerProfile& profile);   // time_s,power_W
std::string profile_json(const PowerProfile& profile);  // the numbers, without points
std::string profile_text(const PowerProfile& profile);  // for people

// The curve as medians of `bins` equal parts of its time, without those that have no point.
std::vector<ProfilePoint> profile_curve(const PowerProfile& profile, unsigned bins);

}  // namespace gpusim::power
