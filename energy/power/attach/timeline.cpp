#include "energy/power/attach/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace gpusim::power::attach {
namespace {

// Perfetto sorts processes by number: hosts come first.
constexpr uint32_t kGpuProcess = 1u << 30;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

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

class Writer {
 public:
  explicit Writer(Seconds zero) : zero_(zero) {}

  void event(const std::string& fields) {
    text_ += fmt::format("{}\n{{{}}}", text_.empty() ? "" : ",", fields);
  }
  void slice(const std::string& name, const char* what, uint32_t process, uint64_t track,
             Seconds begin, Seconds end, const std::string& arguments) {
    event(fmt::format(
        R"("ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}})",
        quoted(name), what, process, track, microseconds(begin), (end - begin).value() * 1e6,
        arguments));
  }
  void counter(const char* name, Seconds time, Watts power) {
    event(fmt::format(R"("ph":"C","name":"{}","pid":{},"ts":{:.3f},"args":{{"W":{:.6g}}})", name,
                      kGpuProcess, microseconds(time), power.value()));
  }
  void name_process(uint32_t process, const std::string& name) {
    event(fmt::format(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}}})", process,
                      quoted(name)));
  }
  void name_track(uint32_t process, uint64_t track, const std::string& name) {
    event(fmt::format(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})",
                      process, track, quoted(name)));
  }
  std::string finish() const {
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + text_ + "\n]}\n";
  }

 private:
  double microseconds(Seconds time) const { return (time - zero_).value() * 1e6; }

  Seconds zero_;
  std::string text_;
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
  Writer out(zero);
  std::map<std::pair<uint32_t, uint64_t>, bool> tracks;
  for (const ProcessLog& log : logs) {
    if (log.calls.empty() && log.operations.empty()) continue;
    out.name_process(log.pid, fmt::format("host, process {}", log.pid));
    for (const Call& c : log.calls)
      out.slice(c.name, c.is_runtime ? "runtime" : "driver", log.pid, c.thread, c.begin, c.end,
                fmt::format("\"result\":{}", c.result));
    for (const Operation& op : log.operations) {
      const uint32_t gpu = kGpuProcess + op.device;
      // Several processes may use streams of one number.
      const uint64_t track = (uint64_t{log.pid} << 20 ^ op.stream) & 0x7fffffff;
      if (!tracks[{gpu, track}]) {
        tracks[{gpu, track}] = true;
        out.name_process(gpu, fmt::format("GPU {}", op.device));
        out.name_track(gpu, track,
                       op.stream == 0
                           ? fmt::format("default stream, process {}", log.pid)
                           : fmt::format("stream {:#x}, process {}", op.stream, log.pid));
      }
      std::string arguments = fmt::format("\"estimated\":{}", op.is_estimated);
      if (op.bytes != 0) arguments += fmt::format(",\"bytes\":{}", op.bytes);
      if (op.kind == RecordKind::kKernel)
        arguments += fmt::format(",\"blocks\":{},\"threads\":{}", op.blocks, op.threads);
      out.slice(readable(op.name), category(op), gpu, track, op.begin, op.end, arguments);
    }
  }
  out.name_process(kGpuProcess, "GPU 0");
  for (const Sample& s : trace.samples) out.counter("power read", s.time, s.power);
  for (const Sample& s : truth) out.counter("true power", s.time, s.power);
  return out.finish();
}

}  // namespace gpusim::power::attach
