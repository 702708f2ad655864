// Moves cores between groups, so that lanes which run alone in theirs run together.
//
// Cores of one group that do different things, or that have ended, leave lanes idle. Between slices
// the runnable cores of such groups are sorted by the place where they are and dealt out anew. A
// moved core keeps its number, its registers and its tallies; what is lost is that neighbours in a
// group are neighbours in number, which makes values compact and stack accesses rows. So it is done
// only where most lanes idle, again after ever longer pauses if it did not help, and undone when
// all are together again. See docs/adr/0012-regrouping.md.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_sim/simd/group.h"

namespace gpusim::simd {

class Regrouper {
 public:
  void configure(std::span<Group> groups, uint32_t cores, uint32_t width);

  bool is_mixed() const { return !core_at_.empty(); }
  // Where a core is: group * width + lane.
  uint32_t position(uint32_t core) const { return is_mixed() ? position_of_[core] : core; }

  // Whether to tell after_slice of the slice that begins now.
  bool wants(uint64_t slice) const { return slice >= next_look_; }
  // A group's instructions, over all lanes, since the start of the run.
  static uint64_t instructions(const Group& g);
  // After a slice in which groups executed so many instructions over all lanes, in so many steps of
  // a group. True: cores were moved.
  bool after_slice(uint64_t slice, uint64_t instructions, uint64_t steps);
  // Deals all cores out at random.
  void shuffle(uint64_t seed, uint64_t slice);

  // For checkpoints. `core_at`: by position; empty: every core is in its own place.
  struct State {
    std::vector<uint32_t> core_at;
    uint64_t next_look = 0, pause = 0;
    double before = 0;
  };
  State state() const { return {core_at_, next_look_, pause_, before_}; }
  // Before cores have registers. False, and nothing done, if that is no such state.
  bool set_state(const State& state);

 private:
  void look_again(uint64_t slice, uint64_t pause);
  std::vector<uint32_t> thin_groups() const;
  // Steps that the runnable cores of these groups need to get further by one block each: as they
  // are; if they were dealt out by place.
  uint64_t steps_now(std::span<const uint32_t> groups) const;
  uint64_t steps_sorted(std::span<const uint32_t> groups) const;
  bool is_better_unmixed() const;
  void sort(std::span<const uint32_t> groups);
  void unmix();
  // Puts core_of[i] to the i-th lane that exists in these groups.
  void deal(std::span<const uint32_t> groups, std::span<const uint32_t> core_of);

  std::span<Group> groups_;
  uint32_t cores_ = 0, width_ = 0;
  std::vector<uint32_t> core_at_, position_of_;  // empty: every core is in its own place
  uint64_t next_look_ = 0, pause_ = 0;
  double before_ =
      0;  // use of lanes before the last move; 0: there was none, or it has been judged
};

}  // namespace gpusim::simd
