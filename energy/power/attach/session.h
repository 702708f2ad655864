// Runs a program with the preloaded library while a source of power is read.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "energy/power/attach/log_reader.h"
#include "energy/power/curve.h"
#include "energy/power/source.h"
#include "energy/power/trace.h"

namespace gpusim::power::attach {

struct SessionOptions {
  std::vector<std::string> command;
  Timing timing = Timing::kSynchronous;
  Hertz rate{1000};       // of readings; the source may be slower
  Seconds lead{0.5};      // readings before the program starts,
  Seconds tail{1.0};      // and after it has ended: sensors lag
  bool has_calls = true;  // else only kernels and copies are written down
  uint64_t most_records = 8u << 20;
  std::string library;  // libgpusim_power_attach.so; empty: beside this program
};

struct Session {
  std::vector<ProcessLog> logs;  // of processes that called CUDA
  Trace trace;
  int status = 0;      // exit status; 128 + signal where one killed it
  Seconds begin, end;  // of the program
};

// Throws Error where the program cannot be started or the library is not there. A source
// that dies half-way ends the readings, which are marked partial. SIGINT ends the program and not
// us. `source` null: no readings.
Session run_session(const SessionOptions& options, PowerSource* source);

// The library's path: `given`, or beside /proc/self/exe, or in ../lib/gpusim from there.
std::string find_library(const std::string& given);

// What a simulated GPU truly drew: lines "BEGIN END WATTS NAME" and "# idle WATTS".
Curve read_truth(const std::string& path);
// Readings of a simulated sensor (the file's sensor, energy/power/simulated.h) of such a truth,
// over the session's time.
Trace simulated_readings(const std::string& sensor_file, const Curve& truth, Seconds begin,
                         Seconds end, Hertz rate);

}  // namespace gpusim::power::attach
