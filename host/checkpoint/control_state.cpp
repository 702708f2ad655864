// What a checkpoint keeps of run control.
#include "host/checkpoint/archive.h"
#include "host/run/run_control.h"

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
void Tallies::describe(A& a, const Module& module, uint32_t cores) {
  std::vector<std::pair<uint32_t, Tally>> partial(partial_.begin(), partial_.end());
  a.list(partial, cores, [&](auto& entry) {
    a.value(entry.first);
    describe_counts(a, entry.second.classes);
    a.value(entry.second.micro_ops);
    a.require(entry.first < cores, "a tally");
  });
  std::vector<std::pair<std::pair<uint32_t, bool>, Tallies::Stops>> stops(stops_.begin(),
                                                                          stops_.end());
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
  describe_counts(a, by_host_);
  if constexpr (A::kReading) {
    partial_ = {partial.begin(), partial.end()};
    stops_ = {stops.begin(), stops.end()};
  }
}

template <class A>
void StopReports::describe(A& a, uint32_t cores) {
  a.list(reports_, kMostEntries, [&](StopReport& report) {
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
  a.value(in_full_);
  a.require(in_full_ <= reports_.size(), "a report");
  if constexpr (A::kReading) {
    numbers_.clear();
    for (const StopReport& report : reports_)
      numbers_.emplace(key(report.first, report.calls, report.has_place),
                       static_cast<uint32_t>(numbers_.size()));
  }
}

template <class A>
void CodeGuard::describe(A& a, uint32_t cores) {
  uint64_t seen = seen_blocks_;
  a.value(seen);
  a.require(seen <= module_.blocks.size(), "blocks");
  a.list(watched_, kMostEntries, [&](CodeGuard::Page& page) {
    a.value(page.core);
    a.value(page.address);
    a.require(page.core < cores && active_ && in_writable_code(page.address), "a page");
  });
  if constexpr (A::kReading) {
    if (!active_) return;
    seen_blocks_ = 0;
    translated_.assign(module_.code.uop_at.size(), false);
    note_translated(seen);
  }
}

template <class A>
void LivelockDetector::describe(A& a, const Module& module) {
  a.value(quiet_slices_);
  a.value(look_at_);
  a.plain_array(counts_, module.blocks.size());
  std::vector<uint8_t> executed(executed_.begin(), executed_.end());
  a.plain_array(executed, module.blocks.size());
  a.value(registers_);
  if constexpr (A::kReading) executed_.assign(executed.begin(), executed.end());
}

template <class A>
void RunControl::describe(A& a, bool same_machine) {
  const auto cores = static_cast<uint32_t>(status_.size());
  tallies_.describe(a, module(), cores);
  a.list(result_.stops, kMostEntries, [&](StopRecord& stop) { describe_stop(a, stop, cores); });
  for (int16_t& status : status_) a.value(status);
  reports_.describe(a, cores);
  for (const StopRecord& stop : result_.stops)
    a.require(stop.report < reports_.all().size(), "a core that stopped");
  guard_.describe(a, cores);
  slice_of_threads_.describe(a);
  a.value(slice_of_sharing_);
  a.require(slice_of_sharing_ != 0 && slice_of_sharing_ <= SliceOfThreads::kFirst,
            "the length of slices");

  LivelockDetector detector = livelock_;
  detector.describe(a, module());
  if constexpr (A::kReading)
    if (same_machine) livelock_ = detector;
}

template void RunControl::describe(Saving& a, bool same_machine);
template void RunControl::describe(Loading& a, bool same_machine);

}  // namespace gpusim::host
