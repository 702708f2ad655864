// What a checkpoint keeps of run control.
#include "host/checkpoint/access.h"

namespace gpusim::host {
namespace {

template <class A>
void describe_counts(A& a, ClassCounts& counts) {
  for (auto& count : counts) a.value(count);
}

template <class A>
void describe_stop(A& a, StopRecord& stop, uint32_t cores) {
  a.value(stop.core);
  a.value(stop.pc);
  a.text(stop.symbol);
  a.text(stop.reason);
  a.text(stop.instruction);
  a.value(stop.address);
  a.value(stop.has_address);
  a.value(stop.exit_status);
  a.value(stop.pc_is_return);
  a.value(stop.report);
  a.require(stop.core < cores, "a core that stopped");
}

}  // namespace

template <class A>
void CheckpointAccess::describe_tallies(A& a, const Module& module, Tallies& t, uint32_t cores) {
  std::vector<std::pair<uint32_t, Tally>> partial(t.partial_.begin(), t.partial_.end());
  a.list(partial, cores, [&](auto& entry) {
    a.value(entry.first);
    describe_counts(a, entry.second.classes);
    a.value(entry.second.micro_ops);
    a.require(entry.first < cores, "a tally");
  });
  std::vector<std::pair<std::pair<uint32_t, bool>, Tallies::Stops>> stops(t.stops_.begin(),
                                                                          t.stops_.end());
  a.list(stops, kMostEntries, [&](auto& entry) {
    a.value(entry.first.first);
    a.value(entry.first.second);
    a.value(entry.second.count);
    a.value(entry.second.block);
    a.value(entry.second.instructions);
    describe_counts(a, entry.second.classes);
    a.require(entry.first.first < module.uops.size() && entry.second.block < module.blocks.size() &&
                  entry.second.instructions <= module.blocks[entry.second.block].insn_count + 1,
              "a tally");
  });
  describe_counts(a, t.by_host_);
  if constexpr (A::kReading) {
    t.partial_ = {partial.begin(), partial.end()};
    t.stops_ = {stops.begin(), stops.end()};
  }
}

template <class A>
void CheckpointAccess::describe_reports(A& a, StopReports& r, uint32_t cores) {
  a.list(r.reports_, kMostEntries, [&](StopReport& report) {
    describe_stop(a, report.first, cores);
    a.list(report.stack, kMostEntries, [&](CallFrame& frame) {
      a.value(frame.pc);
      a.text(frame.function);
      a.text(frame.source);
      a.value(frame.was_interrupted);
      a.value(frame.is_library);
    });
    a.list(report.calls.places, kMostEntries, [&](CallPlace& place) {
      a.value(place.pc);
      a.value(place.is_return);
      a.value(place.was_interrupted);
    });
    describe_optional(a, report.calls.bad_return, [&](uint64_t& address) { a.value(address); });
    a.value(report.calls.is_cut);
    a.value(report.has_place);
    a.value(report.lowest);
    a.value(report.highest);
    a.plain_array(report.cores, kMostEntries);
    a.value(report.said);
    a.require(!report.cores.empty() && report.said <= report.cores.size(), "a report");
  });
  a.value(r.in_full_);
  a.require(r.in_full_ <= r.reports_.size(), "a report");
  if constexpr (A::kReading) {
    r.numbers_.clear();
    for (const StopReport& report : r.reports_)
      r.numbers_.emplace(r.key(report.first, report.calls, report.has_place),
                         static_cast<uint32_t>(r.numbers_.size()));
  }
}

template <class A>
void CheckpointAccess::describe_guard(A& a, const Module& module, CodeGuard& guard,
                                      uint32_t cores) {
  uint64_t seen = guard.seen_blocks_;
  a.value(seen);
  a.require(seen <= module.blocks.size(), "blocks");
  a.list(guard.watched_, kMostEntries, [&](CodeGuard::Page& page) {
    a.value(page.core);
    a.value(page.address);
    a.require(page.core < cores && guard.active_ && guard.in_writable_code(page.address), "a page");
  });
  if constexpr (A::kReading) {
    if (!guard.active_) return;
    guard.seen_blocks_ = 0;
    guard.translated_.assign(module.code.uop_at.size(), false);
    guard.note_translated(seen);
  }
}

template <class A>
void CheckpointAccess::describe_control(A& a, RunControl& c, bool same_machine) {
  const auto cores = static_cast<uint32_t>(c.status_.size());
  const Module& module = c.module();
  describe_tallies(a, module, c.tallies_, cores);
  a.list(c.result_.stops, kMostEntries, [&](StopRecord& stop) { describe_stop(a, stop, cores); });
  for (int16_t& status : c.status_) a.value(status);
  describe_reports(a, c.reports_, cores);
  for (const StopRecord& stop : c.result_.stops)
    a.require(stop.report < c.reports_.all().size(), "a core that stopped");
  describe_guard(a, module, c.guard_, cores);

  LivelockDetector detector = c.livelock_;
  a.value(detector.quiet_slices_);
  a.value(detector.look_at_);
  a.plain_array(detector.counts_, module.blocks.size());
  std::vector<uint8_t> executed(detector.executed_.begin(), detector.executed_.end());
  a.plain_array(executed, module.blocks.size());
  a.value(detector.registers_);
  if constexpr (A::kReading) {
    detector.executed_.assign(executed.begin(), executed.end());
    if (same_machine) c.livelock_ = detector;
  }
}

void CheckpointAccess::describe(Saving& a, RunControl& control, bool same_machine) {
  describe_control(a, control, same_machine);
}
void CheckpointAccess::describe(Loading& a, RunControl& control, bool same_machine) {
  describe_control(a, control, same_machine);
}

}  // namespace gpusim::host
