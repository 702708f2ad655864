#include "host/run/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "device_sim/base/trace_events.h"

namespace gpusim::host {
namespace {

using Json = nlohmann::ordered_json;

// The state that took most of a row's slots, and shares in per cent.
struct State {
  const char* name;
  long running, diverged, waiting, ended;
  bool operator==(const State&) const = default;
};

State state_of(const RowActivity& a) {
  const double all = a.all();
  const auto percent = [&](double x) { return all > 0 ? std::lround(100 * x / all) : 0; };
  const double most = std::max({a.running, a.diverged, a.waiting, a.ended});
  const char* const name = most == a.running    ? "running"
                           : most == a.diverged ? "diverged"
                           : most == a.waiting  ? "waiting"
                                                : "ended";
  return {name, percent(a.running), percent(a.diverged), percent(a.waiting), percent(a.ended)};
}

const char* colour_of(const State& s) {
  switch (s.name[0]) {
    case 'r': return "thread_state_running";
    case 'd': return "thread_state_runnable";
    case 'w': return "thread_state_sleeping";
    default: return "thread_state_unknown";
  }
}

double microseconds(double seconds) { return seconds * 1e6; }

}  // namespace

RowActivity& RowActivity::operator+=(const RowActivity& o) {
  running += o.running;
  diverged += o.diverged;
  waiting += o.waiting;
  ended += o.ended;
  return *this;
}

ActivityRecorder::ActivityRecorder(uint32_t cores, uint32_t group_width,
                                   std::vector<CycleTable> bases, size_t most_slices,
                                   size_t most_rows)
    : cores_(cores),
      most_slices_(std::max<size_t>(2, most_slices)),
      group_width_(group_width),
      bases_(std::move(bases)),
      core_cycles_(bases_.size(), std::vector<double>(cores)),
      core_instructions_(cores) {
  const uint64_t groups = (uint64_t{cores} + group_width - 1) / group_width;
  const uint64_t groups_per_row = (groups + most_rows - 1) / most_rows;
  cores_per_row_ = static_cast<uint32_t>(groups_per_row * group_width);
  rows_ = (uint64_t{cores} + cores_per_row_ - 1) / cores_per_row_;
}

std::string ActivityRecorder::row_name(size_t row) const {
  const uint64_t first = row * uint64_t{cores_per_row_};
  const uint64_t last = std::min<uint64_t>(first + cores_per_row_, cores_) - 1;
  return first == last ? fmt::format("core {}", first) : fmt::format("cores {}-{}", first, last);
}

void ActivityRecorder::after_slice(const Module& module, Backend& backend, const Tallies& tallies,
                                   const IsAlive& is_alive) {
  if (++since_ < every_) return;
  sample(module, backend, tallies, is_alive);
}

void ActivityRecorder::finish(const Module& module, Backend& backend, const Tallies& tallies,
                              const IsAlive& is_alive) {
  sample(module, backend, tallies, is_alive);
}

void ActivityRecorder::sample(const Module& module, Backend& backend, const Tallies& tallies,
                              const IsAlive& is_alive) {
  since_ = 0;
  const ClassCounts now = tallies.total(module, backend).classes;
  TimeSlice slice;
  uint64_t instructions = 0;
  for (size_t c = 0; c < now.size(); ++c) instructions += slice.classes[c] = now[c] - classes_[c];
  if (instructions == 0) return;
  classes_ = now;

  slice.rows.resize(rows_);
  std::vector<double> longest(bases_.size()), ended(rows_);
  std::vector<uint64_t> executed(rows_), cores(rows_);
  uint64_t most = 0;
  uint32_t busy = 0;
  for (uint32_t core = 0; core < cores_; ++core) {
    const size_t row = core / cores_per_row_;
    const ClassCounts classes = tallies.of_core(backend, core);
    const uint64_t sum = Tally{classes, 0}.instructions();
    const uint64_t delta = sum - core_instructions_[core];
    core_instructions_[core] = sum;
    ++cores[row];
    if (!is_alive(core)) ended[row] += 1;
    if (delta == 0) continue;
    ++busy;
    executed[row] += delta;
    most = std::max(most, delta);
    for (size_t b = 0; b < bases_.size(); ++b) {
      const double cycles = bases_[b].of(classes);
      longest[b] = std::max(longest[b], cycles - core_cycles_[b][core]);
      core_cycles_[b][core] = cycles;
    }
  }
  for (size_t b = 0; b < bases_.size(); ++b)
    slice.seconds.push_back(bases_[b].seconds(slice.classes, longest[b], busy));

  // Time of groups: the steps of the one that took most.
  const std::vector<GroupUse> groups = backend.group_use();
  knows_lanes_ = !groups.empty();
  groups_.resize(groups.size());
  double steps = static_cast<double>(most);
  const uint32_t width = groups.size() == cores_ ? 1 : group_width_;
  std::vector<double> diverged(rows_), running(rows_);
  for (size_t g = 0; g < groups.size(); ++g) {
    const uint64_t first = g * uint64_t{width};
    const size_t row = std::min<size_t>(first / cores_per_row_, rows_ - 1);
    const double members =
        static_cast<double>(std::max<uint64_t>(1, std::min<uint64_t>(width, cores_ - std::min<uint64_t>(first, cores_ - 1))));
    steps = std::max(steps, static_cast<double>(groups[g].offered - groups_[g].offered) / members);
    diverged[row] += static_cast<double>(groups[g].diverged - groups_[g].diverged);
    running[row] += static_cast<double>(groups[g].active - groups_[g].active);
    groups_[g] = groups[g];
  }
  for (size_t r = 0; r < rows_; ++r) {
    RowActivity& a = slice.rows[r];
    const double all = steps * static_cast<double>(cores[r]);
    a.running = std::min(all, knows_lanes_ ? running[r] : static_cast<double>(executed[r]));
    a.diverged = std::min(all - a.running, diverged[r]);
    a.ended = std::min(all - a.running - a.diverged, steps * ended[r]);
    a.waiting = all - a.running - a.diverged - a.ended;
  }
  slices_.push_back(std::move(slice));
  if (slices_.size() >= most_slices_) merge_pairs();
}

void ActivityRecorder::place_memory(uint64_t off_chip) {
  constexpr auto kOn = static_cast<size_t>(InsnClass::kOnChipMemory),
                 kOff = static_cast<size_t>(InsnClass::kOffChipMemory);
  const uint64_t all = classes_[kOff];
  uint64_t left = std::min(off_chip, all), accesses_left = all;
  for (TimeSlice& slice : slices_) {
    const uint64_t accesses = slice.classes[kOff];
    const double share = accesses_left > 0 ? static_cast<double>(accesses) / static_cast<double>(accesses_left) : 0;
    accesses_left -= accesses;
    // What is left has to find room in the slices to come.
    const uint64_t least = left > accesses_left ? left - accesses_left : 0;
    const auto wanted = static_cast<uint64_t>(share * static_cast<double>(left));
    const uint64_t off = std::clamp(wanted, least, std::max(least, std::min(accesses, left)));
    left -= off;
    slice.classes[kOn] += accesses - off;
    slice.classes[kOff] = off;
  }
}

void ActivityRecorder::merge_pairs() {
  std::vector<TimeSlice> merged;
  for (size_t i = 0; i < slices_.size(); i += 2) {
    merged.push_back(std::move(slices_[i]));
    if (i + 1 == slices_.size()) break;
    TimeSlice& to = merged.back();
    const TimeSlice& from = slices_[i + 1];
    for (size_t c = 0; c < to.classes.size(); ++c) to.classes[c] += from.classes[c];
    for (size_t b = 0; b < to.seconds.size(); ++b) to.seconds[b] += from.seconds[b];
    for (size_t r = 0; r < to.rows.size(); ++r) to.rows[r] += from.rows[r];
  }
  slices_ = std::move(merged);
  constexpr unsigned kMostMerges = 24;
  if (has_own_slices_)
    merges_ = std::min(merges_ + 1, kMostMerges);
  else
    every_ *= 2;
}

std::string timeline_json(const ActivityRecorder& activity, const std::string& program,
                          const std::vector<PowerTrack>& power) {
  constexpr int kCores = 1, kPower = 2;
  const std::vector<TimeSlice>& slices = activity.slices();
  std::vector<double> start{0};
  for (const TimeSlice& s : slices) start.push_back(start.back() + s.seconds[0]);

  TraceEvents events(
      {{"program", program},
       {"time", "simulated: the busiest core's instructions of each slice; " +
                    activity.bases()[0].name},
       {"lanes", activity.knows_lanes() ? "counted" : "this backend does not count divergence"}});
  events.name_process(kCores, "cores of " + program);
  for (size_t r = 0; r < activity.row_count(); ++r) {
    events.name_track(kCores, r + 1, activity.row_name(r), r);
    for (size_t i = 0; i < slices.size();) {
      const State state = state_of(slices[i].rows[r]);
      size_t end = i + 1;
      while (end < slices.size() && state_of(slices[end].rows[r]) == state) ++end;
      events.add({{"ph", "X"},
                  {"pid", kCores},
                  {"tid", r + 1},
                  {"cat", "cores"},
                  {"name", state.name},
                  {"cname", colour_of(state)},
                  {"ts", microseconds(start[i])},
                  {"dur", microseconds(start[end] - start[i])},
                  {"args",
                   {{"running %", state.running},
                    {"diverged %", state.diverged},
                    {"waiting %", state.waiting},
                    {"ended %", state.ended}}}});
      i = end;
    }
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    RowActivity all;
    for (const RowActivity& a : slices[i].rows) all += a;
    const double percent = all.all() > 0 ? 100 / all.all() : 0;
    events.counter(kCores, "cores, %", microseconds(start[i]),
                   {{"running", all.running * percent}, {"diverged", all.diverged * percent},
                    {"waiting", all.waiting * percent}, {"ended", all.ended * percent}});
  }
  if (!power.empty()) events.name_process(kPower, "power");
  for (const PowerTrack& track : power) {
    for (size_t i = 0; i <= slices.size() && !slices.empty(); ++i) {
      Json args = Json::object();
      for (size_t p = 0; p < track.parts.size(); ++p)
        args[track.parts[p]] = i < slices.size() ? track.watts[i][p] : 0.0;
      events.counter(kPower, "W, " + track.name, microseconds(start[i]), std::move(args));
    }
  }
  return events.finish();
}

}  // namespace gpusim::host
