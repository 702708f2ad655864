// Recordings of an external power meter (a PMD of ElmorLabs, as in the GPU_Power_Benchmark data).
#pragma once
#include <string>

#include "energy/power/trace.h"

namespace gpusim::power {

// `data`: records of nine little-endian 16-bit words: ticks of 2933.5 per ms, then voltage and
// current of four rails as 12-bit numbers in the upper bits, 0.007568 V and 0.0488 A (signed) each.
// Power is the rails' sum. `start`: time of the first record, seconds from the epoch.
// Ticks wrap every 22 ms: longer pauses of the meter cannot be seen.
// Throws Error for an empty file; half a record at the end is a note.
Trace parse_meter(const std::string& data, Seconds start, const std::string& origin);

// A trace's CSV file; a meter's PMD_data.bin, with PMD_start_ts.txt (microseconds from the epoch)
// beside it; or the folder of both.
Trace read_trace_or_meter(const std::string& path, TimeOrder order = TimeOrder::kRefuse);

}  // namespace gpusim::power
