// Decides, before code is emitted, how each step of a trace is executed and which form its operands
// have by then. Forms follow from what was recorded and from what the generated code makes of it:
// it keeps single precision in 32-bit lanes, say, where the interpreter does not.
#pragma once
#include <array>
#include <vector>

#include "device_sim/core/access.h"
#include "device_sim/simd/jit/trace.h"

namespace gpusim::simd {

// How a step is executed.
enum class Method : uint8_t {
  kCall,     // by the interpreter's handler
  kVector,   // chunk by chunk, in a segment with its neighbours
  kUniform,  // once, in one register of eight equal words
  kAffine,   // on bases and strides
  kJump,     // an end of block that goes one way
};

struct Plan {
  Method method = Method::kCall;
  bool narrow = false;          // kVector: in 32-bit lanes
  uint8_t source_kind[4] = {};  // as the generated code finds them
  uint8_t d_kind = 0;           // the same of d, which a store reads
  bool keeps_narrow = false;    // kVector: d is a narrow row afterwards
  bool need_32_bits[4] = {};    // sources that have to fit 32 bits, compact ones
};

// The slots that a micro-op reads, in the order of its fields a, b, c, aux.
struct Sources {
  Slot slot[4] = {};
  int count = 0;
};
Sources sources_of(const Uop& u);

struct AccessInfo {
  int size = 0;
  Extend extend = Extend::kZero;
  AddressMode mode = AddressMode::kImmediate;
  // Whether loaded values fit 32 bits.
  bool is_narrow() const { return size <= 4 && extend != Extend::kSign64; }
};
AccessInfo access_info(Op op);

constexpr Shape shape_of(const Uop& u) { return op_info(u.op).shape; }
constexpr ShapeInfo info_of(const Uop& u) { return shape_info(shape_of(u)); }
constexpr bool is_load(Shape s) {
  return s == Shape::kLdI || s == Shape::kLdX || s == Shape::kLdW;
}
constexpr bool is_store(Shape s) {
  return s == Shape::kStI || s == Shape::kStX || s == Shape::kStW;
}
constexpr bool is_branch(Shape s) { return s == Shape::kBrAB || s == Shape::kBrAI; }
constexpr bool is_compact(uint8_t kind) { return kind == kUniform || kind == kAffine; }
// Handlers of these may find their operands to be compact, or spread them.
constexpr bool changes_sources(Shape s) { return is_load(s) || is_store(s) || is_branch(s); }

struct TracePlan {
  std::vector<Plan> steps;
  // What must hold at the start: forms of slots that are read before they are written.
  std::vector<std::pair<Slot, uint8_t>> guards;
  bool loops = false;      // closed, and the guards hold again at the end
  bool worthwhile = false;  // something is done better than by calls
};
TracePlan make_plan(const Trace& trace);

}  // namespace gpusim::simd
