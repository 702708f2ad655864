// What the user reads about cores that stopped: one report for all that stopped for the same reason
// in the same place, called from the same places.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "host/run/call_frames.h"
#include "host/run/stop_record.h"

namespace gpusim::host {

struct StopReport {
  StopRecord first;
  CallStack calls;               // of that core
  std::vector<CallFrame> stack;  // their functions, the innermost first
  bool has_place = true;         // false: one report for all places
  uint64_t lowest = 0, highest = 0;  // addresses, if there are any
  std::vector<uint32_t> cores;       // in the order in which they stopped
  uint64_t said = 0;                 // of them, to the user
};

// "0-55, 60"; at most so many ranges, then "...".
std::string core_ranges(std::vector<uint32_t> cores, size_t most_ranges = 8);
// "core 3"; "cores 0-55, 60 (57 cores)". A core that had several threads may come several times.
std::string core_list(std::vector<uint32_t> cores);

class StopReports {
 public:
  explicit StopReports(std::function<void(const std::string&)> line) : line_(std::move(line)) {}

  // `frames` is called if the core is the first of its kind. Returns the report's number.
  uint32_t add(const StopRecord& record, const CallStack& stack,
               const std::function<std::vector<CallFrame>()>& frames);
  // Functions and lines once more, where more is known by now.
  void find_frames(const std::function<std::vector<CallFrame>(const CallStack&)>& frames);
  // Says what is new: the first few reports in full, and at the end late cores and all others.
  void say_new();
  void finish();
  const std::vector<StopReport>& all() const { return reports_; }

  // For checkpoints, which define it.
  template <class Archive>
  void describe(Archive& a, uint32_t cores);

 private:
  static constexpr size_t kMostInFull = 8, kMostShort = 8;
  static constexpr size_t kMostReports = 1024;
  using Key = std::tuple<std::string, uint64_t, std::vector<uint64_t>>;  // reason, pc, callers

  static Key key(const StopRecord& record, const CallStack& calls, bool has_place);
  void say(const StopReport& report) const;
  void say_short(const StopReport& report, std::span<const uint32_t> cores, const char* how) const;

  std::function<void(const std::string&)> line_;
  std::vector<StopReport> reports_;
  std::map<Key, uint32_t> numbers_;
  size_t in_full_ = 0;  // reports that were said so, the first ones
};

}  // namespace gpusim::host
