// What the cores did when: activity per slice of time, of a bounded size however long the run and
// however many the cores. The simulator has no clock; a slice takes as long as its busiest core would.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "host/run/tallies.h"
#include "host/run/timeline_cycles.h"

namespace gpusim::host {

// Instructions of steps, times cores; docs/profile.md.
struct RowActivity {
  double running = 0, diverged = 0, waiting = 0, ended = 0;
  double all() const { return running + diverged + waiting + ended; }
  RowActivity& operator+=(const RowActivity& o);
};

struct TimeSlice {
  ClassCounts classes{};
  std::vector<double> seconds;    // by time base
  std::vector<RowActivity> rows;  // by row
};

class ActivityRecorder {
 public:
  // Neighbouring slices are merged beyond so many, and neighbouring groups.
  static constexpr size_t kMostSlices = 1024, kMostRows = 64;
  static constexpr uint64_t kFirstSlice = 1000;

  // `bases`: at least one.
  ActivityRecorder(uint32_t cores, uint32_t group_width, std::vector<CycleTable> bases,
                   size_t most_slices = kMostSlices, size_t most_rows = kMostRows);

  using IsAlive = std::function<bool(uint32_t core)>;
  // So many instructions per core a slice may take for the picture to show what happens within it,
  // such as barriers: few at first, more as the run gets longer. Each slice is then looked at.
  uint64_t slice_length() {
    has_own_slices_ = true;
    return kFirstSlice << merges_;
  }
  // After each slice of the run; cheap, as most are only looked at together with others.
  void after_slice(const Module& module, Backend& backend, const Tallies& tallies,
                   const IsAlive& is_alive);
  // What has not been looked at yet.
  void finish(const Module& module, Backend& backend, const Tallies& tallies,
              const IsAlive& is_alive);

  // After finish(): so many memory accesses of the run left the chip. Each slice gets its share, as if
  // caches had served all alike.
  void place_memory(uint64_t off_chip);

  const std::vector<TimeSlice>& slices() const { return slices_; }
  const std::vector<CycleTable>& bases() const { return bases_; }
  bool knows_lanes() const { return knows_lanes_; }
  size_t row_count() const { return rows_; }
  std::string row_name(size_t row) const;

 private:
  void sample(const Module& module, Backend& backend, const Tallies& tallies,
              const IsAlive& is_alive);
  void merge_pairs();

  uint32_t cores_, cores_per_row_;
  size_t most_slices_, rows_;
  uint32_t group_width_;
  std::vector<CycleTable> bases_;
  std::vector<TimeSlice> slices_;
  uint64_t every_ = 1, since_ = 0;
  unsigned merges_ = 0;
  bool has_own_slices_ = false;
  bool knows_lanes_ = false;
  // At the last sample.
  ClassCounts classes_{};
  std::vector<std::vector<double>> core_cycles_;  // [base][core]
  std::vector<uint64_t> core_instructions_;
  std::vector<GroupUse> groups_;
};

// Chrome's trace events, which Perfetto and chrome://tracing open: a track per row and, if `power` is
// given, counters of watts.
struct PowerTrack {
  std::string name;                              // of the target
  std::vector<std::string> parts;
  std::vector<std::vector<double>> watts;        // [slice][part]
};
std::string timeline_json(const ActivityRecorder& activity, const std::string& program,
                          const std::vector<PowerTrack>& power);

}  // namespace gpusim::host
