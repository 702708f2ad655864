#include "energy/power/attach/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "device_sim/base/child_process.h"
#include "device_sim/base/child_session.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "energy/power/simulated.h"

namespace gpusim::power::attach {
namespace {

constexpr const char* kLibrary = "libgpusim_power_attach.so";

std::vector<std::string> variables(const SessionOptions& o, const std::string& library,
                                   const std::string& folder) {
  return {"LD_PRELOAD=" + preload_value(library), fmt::format("{}={}", kFolderVariable, folder),
          fmt::format("{}={}", kTimingVariable, static_cast<int>(o.timing)),
          fmt::format("{}={}", kMostVariable, o.most_records),
          fmt::format("{}={}", kCallsVariable, o.has_calls ? 1 : 0)};
}

void sample(PowerSource& source, Hertz rate, const std::atomic<bool>& stop, Trace& trace) {
  const Seconds step(1 / rate.value());
  try {
    while (!stop) {
      const Seconds next = source.now() + step;
      const std::optional<Sample> s = source.poll();
      if (!s) {
        trace.notes.push_back("the source ended before the program did");
        trace.is_partial = true;
        return;
      }
      if (trace.samples.empty() || s->time >= trace.samples.back().time)
        trace.samples.push_back(*s);
      source.sleep_until(next);
    }
  } catch (const Error& error) {
    trace.notes.push_back(std::string("the source failed: ") + error.what());
    trace.is_partial = true;
  }
}

}  // namespace

std::string find_library(const std::string& given) { return find_preload_library(given, kLibrary); }

Session run_session(const SessionOptions& options, PowerSource* source) {
  if (options.command.empty())
    throw Error("name a program: gpusim power attach [OPTIONS] -- PROGRAM [ARGUMENT]...");
  if (!(options.rate.value() > 0) || options.rate.value() > 1e6)
    throw Error("--rate: above 0, up to 1000000 readings per second");
  const std::string library = find_library(options.library);
  const SessionFolder folder("gpusim-attach");
  Session session;
  const IgnoreInterrupts guard;
  std::atomic<bool> stop = false;
  std::thread reader;
  struct Joiner {
    std::atomic<bool>& stop;
    std::thread& thread;
    ~Joiner() {
      stop = true;
      if (thread.joinable()) thread.join();
    }
  };
  {
    const Joiner joiner{stop, reader};
    if (source != nullptr) {
      session.trace.source = source->name();
      reader = std::thread([&] { sample(*source, options.rate, stop, session.trace); });
      monotonic_sleep_until(monotonic_now() + options.lead);
    }
    session.begin = monotonic_now();
    ChildProcess program(options.command,
                         {.variables = variables(options, library, folder.path())});
    session.status = program.wait();
    session.end = monotonic_now();
    if (source != nullptr) monotonic_sleep_until(session.end + options.tail);
  }
  for (ProcessLog& log : read_logs(folder.path()))
    if (!log.calls.empty() || !log.operations.empty()) session.logs.push_back(std::move(log));
  return session;
}

Curve read_truth(const std::string& path) {
  std::istringstream in(read_text(path));
  struct Busy {
    double begin, end, watts;
  };
  std::vector<Busy> busy;
  double idle = -1;
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line);
    std::string first;
    if (!(words >> first)) continue;
    const auto fail = [&](const char* what) {
      throw Error(fmt::format("--truth {}: line {}: {}", path, number, what));
    };
    if (first == "#") {
      std::string word;
      double value = 0;
      if (words >> word >> value && word == "idle") idle = value;
      continue;
    }
    Busy b{};
    std::istringstream numbers(line);
    if (!(numbers >> b.begin >> b.end >> b.watts)) fail("BEGIN END WATTS NAME are expected");
    if (b.end < b.begin) fail("it ends before it begins");
    busy.push_back(b);
  }
  if (idle < 0) throw Error(fmt::format("--truth {}: a line \"# idle WATTS\" is missing", path));
  std::stable_sort(busy.begin(), busy.end(),
                   [](const Busy& a, const Busy& b) { return a.begin < b.begin; });
  std::vector<Knot> knots = {{Seconds(0), Watts(idle)}};
  for (const Busy& b : busy) {
    const Seconds begin = std::max(Seconds(b.begin), knots.back().time), end(b.end);
    if (end <= begin) continue;
    knots.push_back({begin, knots.back().power});
    knots.push_back({begin, Watts(b.watts)});
    knots.push_back({end, Watts(b.watts)});
    knots.push_back({end, Watts(idle)});
  }
  return Curve(knots);
}

Trace simulated_readings(const std::string& sensor_file, const Curve& truth, Seconds begin,
                         Seconds end, Hertz rate) {
  // The simulation's clock starts with the session: a day of idle time would only cost memory.
  nlohmann::ordered_json file = parse_json(read_text(sensor_file), sensor_file);
  auto curve = nlohmann::ordered_json::array();
  for (const Knot& k : truth.knots())
    curve.push_back({std::max(0.0, (k.time - begin).value()), k.power.value()});
  if (!file.is_object()) throw Error(sensor_file + ": an object is expected");
  file["device"] = {{"curve", curve}, {"length_s", (end - begin).value()}};
  const auto source = parse_simulated(file.dump(), sensor_file);
  Trace trace;
  trace.source = fmt::format("sim:{} of a known truth", sensor_file);
  const Seconds step(1 / rate.value());
  for (;;) {
    const Seconds next = source->now() + step;
    std::optional<Sample> s = source->poll();
    if (!s) break;
    s->time += begin;
    trace.samples.push_back(*s);
    source->sleep_until(next);
  }
  return trace;
}

}  // namespace gpusim::power::attach
