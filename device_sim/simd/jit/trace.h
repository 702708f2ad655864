// What one pass of a group over a hot piece of code looked like: the micro-ops in the order in which
// they ran, and the forms that their operands had. The compiler specialises native code on it.
#pragma once
#include <cstdint>
#include <vector>

#include "device_sim/simd/group.h"
#include "device_sim/uir/uop.h"

namespace gpusim::simd {

// What a step is of a region (jit/regions.h): native code executes its blocks one after the other,
// each for the lanes that come to it.
enum class Side : uint8_t {
  kNone,
  kRoot,    // the branch at which lanes part
  kInside,  // a value in one of the blocks
  kEnd,     // a block's jump or branch
};

// One micro-op of a trace.
struct Step {
  Uop uop;             // with its own operation, not the mark of an entry
  uint32_t index = 0;  // in the module
  uint32_t next = 0;   // where the group went on, unless
  bool parted = false;  // its lanes did not go on together
  uint64_t jump = 0;   // where an indirect jump went: the guest address,
  uint64_t jump_unit = 0;  // and its place in the code map
  // Kinds of its sources, in the order of its fields, before and after it ran.
  uint8_t before[4] = {};
  uint8_t after[4] = {};
  uint8_t d_before = 0;  // of d
  uint8_t d_after = 0;
  uint8_t state_after = 0;  // of the floating-point state
  uint8_t words[4] = {};  // what is known of compact sources (simd/narrow.h)
  bool consecutive = false;     // a load or store of neighbouring elements in linear memory
  bool in_row = false;          // a load or store at one offset of the lanes' own windows, in a word
  bool scattered = false;       // a load or store of elements anywhere in one run of linear memory
  bool repeats = false;         // of which eight neighbouring lanes had the same
  // Scattered: each so many lanes had one address, or neighbouring elements; 0: not even eight.
  uint8_t alike = 0, neighbours = 0;
  bool uniform_linear = false;  // a load of one element of linear memory for all lanes
  bool compacted = false;    // a branch that found its operands to be compact
  bool fp_settled = false;   // the floating-point state was the one that makes arithmetic simple
  uint64_t fp_state = 0;     // FPCR << 32 | FPSR, if it was uniform
  Side side = Side::kNone;
  uint32_t block_start = 0;  // kInside, kEnd: the block's first micro-op
  uint32_t taken = 0, other = 0;  // kRoot, kEnd: where lanes go on; a jump's are the same
  uint8_t d_words = 0;       // kInside: what is known of d before, if compact
  uint8_t place = 0;         // kEnd: of the block (simd/side_counts.h)

  bool operator==(const Step&) const = default;
};

struct Trace {
  std::vector<Step> steps;
  bool closed = false;  // the last step goes back to the first
  bool partial = false;  // some lanes of the group waited
  uint32_t width = kMaxLanes;  // of the group

  // Whether code has to leave some lanes of a chunk alone.
  bool is_masked() const { return partial || width < kMaxLanes; }

  // Lets the trace end with step `i`, a branch, wherever lanes go from there.
  void end_at_branch(size_t i) {
    steps.resize(i + 1);
    steps[i].side = Side::kNone;
    steps[i].parted = true;
    closed = false;
  }

  bool operator==(const Trace&) const = default;
};

}  // namespace gpusim::simd
