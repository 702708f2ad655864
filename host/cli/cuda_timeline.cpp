#include "host/cli/cuda_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "device_sim/base/file.h"
#include "device_sim/base/trace_events.h"
#include "host/cuda_api/event_log.h"

namespace gpusim::host {
namespace {

namespace fs = std::filesystem;
using Json = TraceEvents::Json;

struct Slice {
  std::string name, category;
  size_t track = 0;  // thread or stream
  int64_t begin_ns = 0, end_ns = 0;
  bool is_ended = false;
  uint64_t call = 0;  // that submitted it
  int64_t submitted_ns = 0;
  Json args = Json::object();
};

struct Process {
  int number = 0;
  std::string program;
  bool is_complete = true;
  std::map<size_t, std::string> threads;
  std::map<uint64_t, Slice> calls, works;
  int64_t first_ns = std::numeric_limits<int64_t>::max(), last_ns = 0;

  void add(const Json& line);
  void finish();

 private:
  void see(int64_t ns) {
    first_ns = std::min(first_ns, ns);
    last_ns = std::max(last_ns, ns);
  }
  void end(Slice& slice, int64_t ns, const Json& line) {
    slice.end_ns = ns;
    slice.is_ended = true;
    if (line.contains("args")) slice.args.update(line.at("args"));
    see(ns);
  }
};

std::string call_category(std::string_view name) {
  return name.find("Synchronize") != std::string_view::npos ? "synchronisation" : "call";
}

void Process::add(const Json& line) {
  if (line.contains("process")) {
    number = line.at("process");
    program = line.at("program");
  } else if (line.contains("full")) {
    is_complete = false;
  } else if (line.contains("call") && !line.contains("work")) {
    Slice s;
    s.name = line.at("name");
    s.category = call_category(s.name);
    s.track = line.at("thread");
    s.begin_ns = line.at("ns");
    if (line.contains("end_ns")) end(s, line.at("end_ns"), line);
    see(s.begin_ns);
    calls.insert_or_assign(line.at("call"), std::move(s));
  } else if (line.contains("work")) {
    Slice s;
    s.name = line.at("name");
    s.category = line.at("type");
    s.track = line.at("stream");
    s.args = line.at("args");
    s.call = line.at("call");
    s.submitted_ns = line.at("submitted_ns");
    s.begin_ns = line.at("ns");
    see(s.begin_ns);
    works.insert_or_assign(line.at("work"), std::move(s));
  } else if (line.contains("end")) {
    const uint64_t number_of_slice = line.at("end");
    for (auto* slices : {&calls, &works})
      if (const auto at = slices->find(number_of_slice); at != slices->end())
        end(at->second, line.at("ns"), line);
  } else if (line.contains("thread")) {
    threads[line.at("thread")] = line.at("name");
  }
}

// What had not ended when the process did.
void Process::finish() {
  for (auto* slices : {&calls, &works})
    for (auto& [number_of_slice, s] : *slices) {
      if (s.is_ended) continue;
      s.end_ns = last_ns;
      s.args["unfinished"] = true;
    }
}

Process read(const fs::path& path) {
  const std::string text = read_text(path);
  // Zeros follow, and a line that was not finished may stand before them.
  std::string_view rest = std::string_view(text).substr(0, text.find('\0'));
  Process process;
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1))
    try {
      process.add(Json::parse(rest.substr(0, end)));
    } catch (const Json::exception&) {
      // The lines are in the program's memory, which it may damage.
      process.is_complete = false;
    }
  process.is_complete &= !fs::exists(path.string() + cuda_api::kLostEvents);
  process.finish();
  return process;
}

class Picture {
 public:
  Picture(int64_t zero_ns, const Json& about) : zero_ns_(zero_ns), out_(about) {}

  void add(const Process& p) {
    // Viewers want numbers of tracks that no other process has.
    const int host = ++last_;
    std::map<size_t, size_t> threads, streams;
    out_.name_process(host, fmt::format("{} ({}): calls", p.program, p.number));
    for (const auto& [thread, name] : p.threads)
      out_.name_track(host, threads[thread] = static_cast<size_t>(++last_), name, thread);
    for (const auto& [number, s] : p.calls) add_slice(host, threads[s.track], s);
    if (p.works.empty()) return;
    const int device = ++last_;
    out_.name_process(device, fmt::format("{} ({}): streams", p.program, p.number));
    for (const auto& [number, s] : p.works) streams[s.track] = 0;
    for (auto& [stream, track] : streams) {
      track = static_cast<size_t>(++last_);
      out_.name_track(device, track,
                      stream == 0 ? "default stream" : fmt::format("stream {}", stream), stream);
    }
    for (const auto& [number, s] : p.works) {
      add_slice(device, streams[s.track], s);
      const auto from = p.calls.find(s.call);
      if (from == p.calls.end()) continue;
      ++arrows_;
      add_arrow("s", host, threads[from->second.track], s.submitted_ns);
      add_arrow("f", device, streams[s.track], s.begin_ns);
    }
  }
  std::string finish() { return out_.finish(); }

 private:
  double microseconds(int64_t ns) const { return static_cast<double>(ns - zero_ns_) / 1000; }

  void add_slice(int process, size_t track, const Slice& s) {
    out_.add({{"ph", "X"},
              {"pid", process},
              {"tid", track},
              {"cat", s.category},
              {"name", s.name},
              {"ts", microseconds(s.begin_ns)},
              {"dur", static_cast<double>(s.end_ns - s.begin_ns) / 1000},
              {"args", s.args}});
  }

  void add_arrow(const char* end, int process, size_t track, int64_t ns) {
    Json event = {
        {"ph", end},           {"pid", process},    {"tid", track},          {"id", arrows_},
        {"cat", "submission"}, {"name", "submits"}, {"ts", microseconds(ns)}};
    // To the slice that begins there, not to the next one.
    if (*end == 'f') event["bp"] = "e";
    out_.add(event);
  }

  int64_t zero_ns_;
  TraceEvents out_;
  int last_ = 0;
  uint64_t arrows_ = 0;
};

}  // namespace

std::string cuda_timeline_json(const std::string& folder, const std::string& program) {
  std::vector<fs::path> paths;
  for (const auto& file : fs::directory_iterator(folder))
    if (file.path().extension() == ".events") paths.push_back(file.path());
  std::vector<Process> processes;
  for (const fs::path& path : paths) {
    Process p = read(path);
    if (!p.calls.empty() || !p.works.empty()) processes.push_back(std::move(p));
  }
  std::sort(processes.begin(), processes.end(),
            [](const Process& a, const Process& b) { return a.first_ns < b.first_ns; });
  bool is_complete = true;
  for (const Process& p : processes) is_complete &= p.is_complete;
  Picture picture(processes.empty() ? 0 : processes.front().first_ns,
                  {{"program", program},
                   {"time", "of the host that simulates, not of a GPU"},
                   {"complete", is_complete}});
  for (const Process& p : processes) picture.add(p);
  return picture.finish();
}

}  // namespace gpusim::host
