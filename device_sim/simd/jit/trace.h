// What one pass of a group over a hot piece of code looked like: the micro-ops in the order in which
// they ran, and the forms that their operands had. The compiler specialises native code on it.
#pragma once
#include <cstdint>
#include <vector>

#include "device_sim/simd/group.h"
#include "device_sim/uir/uop.h"

namespace gpusim::simd {

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
  bool uniform_linear = false;  // a load of one element of linear memory for all lanes
  bool compacted = false;    // a branch that found its operands to be compact
  bool fp_settled = false;   // the floating-point state was the one that makes arithmetic simple
  uint64_t fp_state = 0;     // FPCR << 32 | FPSR, if settled
};

struct Trace {
  std::vector<Step> steps;
  bool closed = false;  // the last step goes back to the first
  bool partial = false;  // some lanes of the group waited
};

}  // namespace gpusim::simd
