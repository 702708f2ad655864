#include "host/run/timeline_power.h"

#include <fmt/format.h>

#include <filesystem>

#include "device_sim/base/error.h"
#include "device_sim/base/page.h"
#include "energy/report.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

using page::Json;

std::vector<size_t> classes_that_occur(const std::vector<PowerTrace>& traces) {
  std::vector<size_t> list;
  for (size_t c = 0; c < kInsnClassCount; ++c) {
    bool occurs = false;
    for (const PowerTrace& trace : traces)
      for (const PowerSlice& s : trace.slices) occurs |= s.joules[c] != 0;
    if (occurs) list.push_back(c);
  }
  return list;
}

double watts(double joules, const PowerSlice& s) {
  const double seconds = s.end_s - s.start_s;
  return seconds > 0 ? joules / seconds : 0;
}

// What all of the run took.
std::string answer_of(const PowerTrace& trace) {
  energy::Joules dynamic(0), idle(0);
  for (const PowerSlice& s : trace.slices) {
    dynamic = dynamic + energy::Joules(s.dynamic_joules);
    idle = idle + energy::Joules(s.idle_watts * (s.end_s - s.start_s));
  }
  const energy::Seconds time(trace.slices.empty() ? 0 : trace.slices.back().end_s);
  std::string text = fmt::format("{}: {} above idle in {}", trace.target->name,
                                 energy::pretty(dynamic), energy::pretty(time));
  if (idle > energy::Joules(0))
    text += fmt::format(", and {} that the machine takes when idle", energy::pretty(idle));
  return text + ". ";
}

}  // namespace

PowerTrace power_trace(const energy::Target& target, const ActivityRecorder& activity, size_t base,
                       bool memory_is_placed) {
  PowerTrace trace{.target = &target, .time_base = activity.bases()[base].name,
                   .memory_is_placed = memory_is_placed, .slices = {}};
  const double idle = target.states.empty() ? 0 : target.states.front().idle_power.value();
  double now = 0;
  for (const TimeSlice& slice : activity.slices()) {
    PowerSlice s{.start_s = now, .end_s = now + slice.seconds[base], .joules = {}, .idle_watts = idle};
    for (size_t c = 0; c < kInsnClassCount; ++c) {
      if (slice.classes[c] == 0) continue;
      ClassCounts alone{};
      alone[c] = slice.classes[c];
      s.joules[c] = energy::dynamic_energy(target, alone, memory_is_placed).value.value();
      s.dynamic_joules += s.joules[c];
    }
    now = s.end_s;
    trace.slices.push_back(s);
  }
  return trace;
}

PowerTrack power_track(const PowerTrace& trace) {
  PowerTrack track{.name = trace.target->name, .parts = {}, .watts = {}};
  const std::vector<size_t> classes = classes_that_occur({trace});
  track.parts.push_back("idle");
  for (const size_t c : classes) track.parts.push_back(kInsnClassNames[c]);
  for (const PowerSlice& s : trace.slices) {
    std::vector<double>& row = track.watts.emplace_back();
    row.push_back(s.idle_watts);
    for (const size_t c : classes) row.push_back(watts(s.joules[c], s));
  }
  return track;
}

std::string power_csv(const std::vector<PowerTrace>& traces) {
  const std::vector<size_t> classes = classes_that_occur(traces);
  std::string out = "target,start_s,end_s";
  for (const size_t c : classes) out += fmt::format(",{}_W", kInsnClassNames[c]);
  out += ",dynamic_W,idle_W,total_W,dynamic_J\n";
  for (const PowerTrace& trace : traces)
    for (const PowerSlice& s : trace.slices) {
      out += fmt::format("{},{:.9g},{:.9g}", trace.target->name, s.start_s, s.end_s);
      for (const size_t c : classes) out += fmt::format(",{:.6g}", watts(s.joules[c], s));
      const double dynamic = watts(s.dynamic_joules, s);
      out += fmt::format(",{:.6g},{:.6g},{:.6g},{:.12g}\n", dynamic, s.idle_watts,
                         dynamic + s.idle_watts, s.dynamic_joules);
    }
  return out;
}

std::string power_html(const std::vector<PowerTrace>& traces, const std::string& program) {
  page::Page p("Power of " + std::filesystem::path(program).filename().string());
  p.set_subtitle("Idle power, and above it what the instructions of each class take. Time is "
                 "simulated: each slice takes what its busiest core would take on the target.");
  std::string answer;
  for (const PowerTrace& trace : traces) answer += answer_of(trace);
  p.set_answer(answer);
  for (const PowerTrace& trace : traces) {
    p.add_section(trace.target->name);
    Json series = Json::array();
    const auto points_of = [&](auto value) {
      Json points = Json::array();
      for (const PowerSlice& s : trace.slices)
        // The chart has one value at a time: just before its end.
        for (const double t : {s.start_s, s.end_s - 1e-3 * (s.end_s - s.start_s)})
          points.push_back({page::rounded(t, 9), page::rounded(value(s))});
      return points;
    };
    if (!trace.slices.empty() && trace.slices.front().idle_watts > 0)
      series.push_back({{"name", "idle"},
                        {"style", "idle"},
                        {"points", points_of([](const PowerSlice& s) { return s.idle_watts; })}});
    for (const size_t c : classes_that_occur({trace}))
      series.push_back(
          {{"name", energy::class_title(c, trace.memory_is_placed)},
           {"points", points_of([&](const PowerSlice& s) { return watts(s.joules[c], s); })}});
    p.add_chart({{"kind", "area"},
                 {"title", "Power over time: " + trace.target->title},
                 {"x", {{"label", "simulated time"}, {"format", "si"}, {"unit", "s"}}},
                 {"y", {{"label", "power"}, {"format", "si"}, {"unit", "W"}}},
                 {"series", std::move(series)}});
    if (trace.target->timing->is_assumed)
      p.add_text("Times and powers rest on assumed cycles per instruction.");
  }
  return p.html();
}

OutputFile power_file(const std::string& path) {
  if (!path.ends_with(".csv") && !path.ends_with(".html"))
    throw Error(fmt::format(
        "--power-trace {}: the name should end in .csv or .html, which says what it holds", path));
  return OutputFile("--power-trace", path);
}

void write_power(const OutputFile& file, const std::vector<PowerTrace>& traces,
                 const std::string& program) {
  file.write(file.path().ends_with(".csv") ? power_csv(traces) : power_html(traces, program));
}

}  // namespace gpusim::host
