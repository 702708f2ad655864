// Decides, before code is emitted, how each step of a trace is executed and which form its operands
// have by then. Forms follow from what was recorded and from what the generated code makes of it:
// it keeps single precision in 32-bit lanes, say, where the interpreter does not.
#pragma once
#include <array>
#include <vector>

#include "device_sim/simd/jit/step_info.h"
#include "device_sim/simd/jit/trace.h"

namespace gpusim::simd {

// How a step is executed.
enum class Method : uint8_t {
  kCall,     // by the interpreter's handler
  kVector,   // chunk by chunk, in a segment with its neighbours
  kUniform,  // once, in one register of eight equal words
  kRowLoad,  // a load in the lanes' own windows of what is compact
  kAffine,   // on bases and strides
  kJump,     // an end of block that goes one way
};

struct Plan {
  Method method = Method::kCall;
  bool narrow = false;          // kVector: in 32-bit lanes
  bool scattered = false;       // kVector: a load or store at an address per lane
  bool in_row = false;          // kVector: one in the lanes' own windows
  uint8_t source_kind[4] = {};  // as the generated code finds them
  uint8_t d_kind = 0;           // the same of d, which a store reads
  uint8_t result = 0;           // kVector, narrow: what is known of d's words (simd/narrow.h)
  uint8_t row_kind = 0;         // kVector: of d afterwards; kLanes, or what words it has
  uint8_t need_words[4] = {};   // what compact sources have to be (simd/narrow.h)
  uint8_t need_d_words = 0;     // likewise d, inside a region
};

struct TracePlan {
  std::vector<Plan> steps;
  // What must hold at the start: forms of slots that are read before they are written.
  std::vector<std::pair<Slot, uint8_t>> guards;
  bool loops = false;      // closed, and the guards hold again at the end
  bool worthwhile = false;  // something is done better than by calls
  size_t unfit_region = SIZE_MAX;  // the step at which one begins that is not all vectors
};
TracePlan make_plan(const Trace& trace);
// Ends the trace before a region that generated code cannot have.
void leave_out_unfit_regions(Trace& trace);

}  // namespace gpusim::simd
