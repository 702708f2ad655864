// What a chip's cores, links and channels did when, as Chrome's trace events.
#include <fmt/format.h>

#include <algorithm>

#include "device_sim/base/trace_events.h"
#include "host/chip/changes.h"
#include "host/chip/report.h"

namespace gpusim::host::chip {
namespace {

using Json = TraceEvents::Json;

constexpr int kCores = 1, kChip = 2;

const char* name_of(size_t phase) {
  switch (static_cast<Phase>(phase)) {
    case Phase::kWaitingOrder:
      return "waiting: barrier, start, wake-up";
    case Phase::kWaitingLock:
      return "waiting: lock";
    case Phase::kWaitingWord:
      return "waiting: word";
    default:
      return kPartNames[phase];
  }
}

const char* colour_of(size_t phase) {
  switch (part_of(phase)) {
    case Part::kCompute:
      return "thread_state_running";
    case Part::kWaiting:
      return "thread_state_sleeping";
    case Part::kCoherence:
      return "thread_state_uninterruptible";
    case Part::kMemory:
      return "thread_state_iowait";
    default:
      return "thread_state_runnable";
  }
}

// Pieces one after the other, in each of them one phase after the other. A piece begins with what
// the one before it ended with, so that long phases are one event.
void add_row(TraceEvents& events, const ChipTimeline& timeline, size_t row, double clock_hz) {
  const auto microseconds = [&](Ticks t) { return cycles_of(t) / clock_hz * 1e6; };
  const size_t tid = size_t{timeline.shown()[row]} + 1;
  Ticks begin = 0, end = 0;
  size_t now = kPhases;
  const auto flush = [&] {
    if (now == kPhases || end == begin) return;
    events.add({{"ph", "X"},
                {"pid", kCores},
                {"tid", tid},
                {"cat", kPartNames[static_cast<size_t>(part_of(now))]},
                {"name", name_of(now)},
                {"cname", colour_of(now)},
                {"ts", microseconds(begin)},
                {"dur", microseconds(end - begin)},
                {"args", {{"cycles", cycles_of(end - begin)}}}});
  };
  for (const ChipTimeline::Piece& piece : timeline.row(row)) {
    const size_t first = now == kPhases ? 0 : now;
    for (size_t i = 0; i < kPhases; ++i) {
      const size_t phase = (first + i) % kPhases;
      if (piece[phase] == 0) continue;
      if (phase != now) {
        flush();
        begin = end;
        now = phase;
      }
      end += piece[phase];
    }
  }
  flush();
}

}  // namespace

std::string chip_timeline_json(const ChipReport& r, const std::string& program) {
  const ChipTimeline& timeline = *r.result.timeline;
  const double clock_hz = r.shape.clock_hz;
  const auto microseconds = [&](Ticks t) { return cycles_of(t) / clock_hz * 1e6; };
  const std::string chip = text_of(ChangedChip{r.shape.name, r.shape.changes});
  TraceEvents events({{"program", program},
                      {"chip", chip},
                      {"cores", r.cores},
                      {"shown_cores", timeline.shown().size()},
                      {"clock_hz", clock_hz},
                      {"piece_cycles", cycles_of(timeline.piece_length())},
                      {"time",
                       "simulated, of the chip; within a piece, what a core did stands in "
                       "no order of time"}});
  events.name_process(kCores, fmt::format("cores of {} on {}", program, chip));
  if (r.result.has_region) {
    events.name_track(kCores, 0, "region of interest", 0);
    events.add({{"ph", "X"},
                {"pid", kCores},
                {"tid", 0},
                {"name", "region of interest"},
                {"ts", microseconds(r.result.begin)},
                {"dur", microseconds(r.result.totals.time)},
                {"args", {{"cycles", r.cycles}}}});
  }
  for (size_t row = 0; row < timeline.shown().size(); ++row) {
    const uint32_t core = timeline.shown()[row];
    events.name_track(kCores, size_t{core} + 1, fmt::format("core {}", core), row + 1);
    add_row(events, timeline, row, clock_hz);
  }
  // Of all cores, also those that are not shown.
  for (size_t i = 0; i < timeline.all().size(); ++i) {
    Json args = Json::object();
    for (size_t phase = 0; phase < kPhases; ++phase)
      args[name_of(phase)] =
          cycles_of(timeline.all()[i][phase]) / cycles_of(timeline.piece_length()) / r.cores * 100;
    events.counter(kCores, "all cores, %", microseconds(i * timeline.piece_length()),
                   std::move(args));
  }
  events.counter(kCores, "all cores, %",
                 microseconds(timeline.all().size() * timeline.piece_length()), {{name_of(0), 0}});
  events.name_process(kChip, "network and memory");
  const auto percent = [](double share) { return 100 * share; };
  for (const Sample& s : r.result.samples) {
    const double ts = microseconds(s.begin);
    events.counter(kChip, "links, %", ts,
                   {{"busiest", percent(s.busiest_link)}, {"mean", percent(s.mean_link)}});
    Json channels = {{"mean", percent(s.channels)}};
    for (size_t c = 0; c < s.each_channel.size(); ++c)
      channels[fmt::format("channel {}", c)] = percent(s.each_channel[c]);
    events.counter(kChip, "memory channels, %", ts, std::move(channels));
    events.counter(kChip, "slices, %", ts, {{"mean", percent(s.slices)}});
    events.counter(kChip, "instructions per cycle", ts, {{"all cores", s.instructions_per_cycle}});
  }
  if (!r.result.samples.empty()) {
    // A counter keeps its last value for ever.
    const double ts = microseconds(r.result.samples.back().end);
    for (const char* name : {"links, %", "memory channels, %", "slices, %"})
      events.counter(kChip, name, ts, {{"mean", 0}});
    events.counter(kChip, "instructions per cycle", ts, {{"all cores", 0}});
  }
  return events.finish();
}

}  // namespace gpusim::host::chip
