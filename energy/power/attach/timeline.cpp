#include "energy/power/attach/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "device_sim/base/trace_events.h"

namespace gpusim::power::attach {
namespace {

using Json = TraceEvents::Json;

// Perfetto sorts processes by number: hosts come first.
constexpr uint32_t kGpuProcess = 1u << 30;

const char* category(const Operation& op) {
  switch (op.kind) {
    case RecordKind::kKernel:
      return "kernel";
    case RecordKind::kGraph:
      return "graph";
    case RecordKind::kSet:
      return "memory set";
    default:
      return "copy";
  }
}

// To the nanosecond, which is as exact as the clocks are.
double microseconds(Seconds time) { return std::round(time.value() * 1e9) / 1e3; }

class Timeline {
 public:
  explicit Timeline(Seconds zero)
      : zero_(zero),
        events_(Json{{"time", "the host's clock, from the first thing that happened"}}) {}

  void slice(const std::string& name, const char* what, uint32_t process, uint64_t track,
             Seconds begin, Seconds end, Json arguments) {
    events_.add({{"ph", "X"},
                 {"name", name},
                 {"cat", what},
                 {"pid", process},
                 {"tid", track},
                 {"ts", microseconds(begin - zero_)},
                 {"dur", microseconds(end - begin)},
                 {"args", std::move(arguments)}});
  }
  void watts(const char* name, const Sample& sample) {
    events_.counter(kGpuProcess, name, microseconds(sample.time - zero_),
                    {{"W", sample.power.value()}});
  }
  void name_process(uint32_t process, const std::string& name) {
    if (processes_.insert(process).second) events_.name_process(static_cast<int>(process), name);
  }
  void name_track(uint32_t process, uint64_t track, const std::string& name) {
    if (tracks_.insert({process, track}).second)
      events_.name_track(static_cast<int>(process), track, name, tracks_.size());
  }
  std::string finish() { return events_.finish(); }

 private:
  Seconds zero_;
  TraceEvents events_;
  std::set<uint32_t> processes_;
  std::set<std::pair<uint32_t, uint64_t>> tracks_;
};

}  // namespace

std::string timeline_json(const std::vector<ProcessLog>& logs, const Trace& trace,
                          const std::vector<Sample>& truth) {
  Seconds zero(1e300);
  for (const ProcessLog& log : logs) {
    if (!log.calls.empty()) zero = std::min(zero, log.calls.front().begin);
    if (!log.operations.empty()) zero = std::min(zero, log.operations.front().begin);
  }
  if (!trace.samples.empty()) zero = std::min(zero, trace.samples.front().time);
  Timeline out(zero);
  for (const ProcessLog& log : logs) {
    if (log.calls.empty() && log.operations.empty()) continue;
    out.name_process(log.pid, fmt::format("host, process {}", log.pid));
    for (const Call& c : log.calls)
      out.slice(c.name, c.is_runtime ? "runtime" : "driver", log.pid, c.thread, c.begin, c.end,
                {{"result", c.result}});
    for (const Operation& op : log.operations) {
      const uint32_t gpu = kGpuProcess + op.device;
      // Several processes may use streams of one number.
      const uint64_t track = (uint64_t{log.pid} << 20 ^ op.stream) & 0x7fffffff;
      out.name_process(gpu, fmt::format("GPU {}", op.device));
      out.name_track(gpu, track,
                     op.stream == 0 ? fmt::format("default stream, process {}", log.pid)
                                    : fmt::format("stream {:#x}, process {}", op.stream, log.pid));
      Json arguments = {{"estimated", op.is_estimated}};
      if (op.bytes != 0) arguments["bytes"] = op.bytes;
      if (op.kind == RecordKind::kKernel) {
        arguments["blocks"] = op.blocks;
        arguments["threads"] = op.threads;
      }
      out.slice(readable(op.name), category(op), gpu, track, op.begin, op.end,
                std::move(arguments));
    }
  }
  out.name_process(kGpuProcess, "GPU 0");
  for (const Sample& s : trace.samples) out.watts("power read", s);
  for (const Sample& s : truth) out.watts("true power", s);
  return out.finish();
}

}  // namespace gpusim::power::attach
