// A recorded series of power samples and its CSV file. docs/power.md describes the format.
#pragma once
#include <string>
#include <vector>

#include "energy/power/sample.h"

namespace gpusim::power {

// Something that ran meanwhile: a command, a kernel, a copy.
struct Interval {
  std::string name;
  Seconds begin, end;  // on the trace's clock
};

struct Trace {
  std::string source;           // PowerSource::name()
  std::vector<Sample> samples;  // times never fall
  std::vector<Interval> intervals;
  std::vector<std::string> notes;  // what a reader repaired or doubts: duplicates, clocks that jump
  bool is_partial = false;         // the source or the user ended it early

  Seconds duration() const;
};

// What a reader does with times that fall (an unsorted file, or a clock that was set back).
enum class TimeOrder { kRefuse, kSort };

// Our own format. Lines `# key: value` carry source, intervals and notes; a header line; a line per
// sample. Columns that no sample has are left out.
std::string trace_csv(const Trace& trace);

// Reads our own format and logs of nvidia-smi (`timestamp, power.draw [W], ...`), told apart by
// their headers; times of such logs count from the epoch, in seconds, as their clock says (no time
// zone). Units in headers are obeyed: [W], [mW], [MHz], [GHz], time_s, time_ms, time_us, time_ns.
// Throws Error with file and line.
Trace parse_trace(const std::string& text, const std::string& origin,
                  TimeOrder order = TimeOrder::kRefuse);
Trace read_trace(const std::string& path, TimeOrder order = TimeOrder::kRefuse);

// A longer step between samples is a gap, across which nothing is known: 5 times the median step,
// at least 1 s (the longest pause of a K20x was 0.6 s: Burtscher et al., section 6.3).
Seconds longest_bridged(const std::vector<Sample>& samples);

// Energy by trapezoids over the samples in [begin, end], where values between samples are
// interpolated and those beyond the first and last are held. J
Joules trapezoid(const std::vector<Sample>& samples, Seconds begin, Seconds end);
Joules trapezoid(const std::vector<Sample>& samples);

}  // namespace gpusim::power
