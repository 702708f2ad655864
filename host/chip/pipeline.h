// An in-order pipeline: instructions begin one after the other, and wait for what they read until
// earlier ones have it ready (a scoreboard).
//
// Which results a block's instructions wait for is known when the block is, up to what comes in
// from the blocks before it: results that are still under way at its begin. So a block has a
// schedule for each such state, and each state and block lead to the next one. Schedules are made
// once.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "device_sim/uir/module.h"
#include "host/chip/shape.h"

namespace gpusim::host::chip {

// Cycles of a block in which nothing begins: for hits of the L1, and for other results.
struct Stalls {
  Ticks l1 = 0, dependence = 0;
  Stalls& operator+=(const Stalls& b) {
    l1 += b.l1;
    dependence += b.dependence;
    return *this;
  }
  Stalls operator-(const Stalls& b) const { return {l1 - b.l1, dependence - b.dependence}; }
};

// A moment of a block's schedule, and the stalls before it.
struct Point {
  Ticks at = 0;
  Stalls stalls;
};

// A result that is under way: for so long from the block's end.
struct Underway {
  Slot slot = 0;
  bool is_load = false;
  Ticks left = 0;
  uint8_t ends = 1;  // of blocks, over which it is
  bool operator==(const Underway&) const = default;
  auto operator<=>(const Underway&) const = default;
};

class Pipeline {
 public:
  // Over the ends of more blocks it counts as ready: else random branches under long latencies lead
  // to states without end.
  static constexpr uint8_t kMostEnds = 8;

  // Of a chip with `cores.latency`.
  Pipeline(const Module& module, const ChipShape& shape);

  // What the instructions of a block read and write, beside what they alone use.
  struct Result {
    Slot slot;
    bool is_load;
    Ticks latency;  // from when its instruction begins
  };
  struct Insn {
    Ticks cost = 0;  // until the next may begin
    uint32_t unit = 0;
    std::vector<Slot> reads;
    std::vector<Result> results;
  };
  using Code = std::vector<Insn>;
  Code code_of(const Block& block, std::span<const Ticks> costs) const;

  // How long an instruction waits.
  struct Stall {
    uint32_t insn;
    Ticks time;
    bool is_l1;
  };
  struct Schedule {
    std::vector<Point> begin;  // per instruction, and of the block's end
    std::vector<Stall> stalls;
    std::vector<Underway> left;  // at the end
  };
  // `after`: so long after the block before ended, with these results under way, it begins.
  static Schedule schedule(const Code& code, std::span<const Underway> before, Ticks after);

 private:
  const Module& module_;
  std::array<Ticks, kInsnClassCount> latency_{};
  Ticks multiplication_ = 0, load_ = 0;
};

}  // namespace gpusim::host::chip
