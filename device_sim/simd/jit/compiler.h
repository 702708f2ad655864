// Turns traces into native code for groups of 64 lanes on processors with AVX-512 or AVX2.
//
// Runs of micro-ops on rows of lanes become one loop over chunks of 16 or 8 lanes, in which values
// stay in registers; a row is stored once. Compact values are computed as the interpreter does,
// without its questions, and kept in registers (residents.h). Everything else is a call of the
// interpreter's own handler. Between these pieces it is known what the group lacks, so the code can
// hand over to the interpreter at any of them: that is what it does when a value's form or a branch
// is not what it was while recording.
#pragma once
#include <memory>

#include "device_sim/simd/group.h"
#include "device_sim/simd/jit/trace.h"

namespace gpusim::simd {

// Returns the micro-op where the group goes on (null: reschedule), or one of those below if the
// first micro-op has not been executed.
using NativeCode = const Uop* (*)(Group& group, const Uop* uops);
inline const Uop* const kMissed = reinterpret_cast<const Uop*>(uintptr_t{1});  // in other forms
// The budget may end within what the code does at once.
inline const Uop* const kEarly = reinterpret_cast<const Uop*>(uintptr_t{2});

// What generated code calls, for the SIMD target in use.
struct NativeCalls {
  using Handler = const Uop* (*)(Group&, const Uop*);
  const Handler* handlers = nullptr;  // [kOpCount], for the trace's kind of mask
  // Ends a block by a conditional branch, taken by the lanes in `taken`.
  const Uop* (*branch)(Group&, const Uop*, uint64_t taken) = nullptr;
  // A run of linear memory all of which has `permissions`, or null.
  uint8_t* (*linear_run)(Group&, uint64_t address, uint64_t bytes, uint64_t permissions) =
      nullptr;
  // Lane 0's element in the words of the lanes' own windows, if the addresses, of which lane 0's is
  // given, lie at one offset there, in one word each, and all may be accessed; or null.
  uint8_t* (*window_row)(Group&, uint64_t address, uint64_t stride, uint64_t size,
                         uint64_t permissions) = nullptr;
  void (*spread)(Group&, uint32_t slot) = nullptr;  // gives the slot a 64-bit word per lane
  const BlockTally* block_tallies = nullptr;  // while compiling
  const MemoryView* memory = nullptr;         // while compiling
};

// The instruction sets that code for groups is made of, each wider than the one before.
enum class VectorCode : uint8_t { kNone, kAvx2, kAvx512 };

class TraceCompiler {
 public:
  // made_of: best() or less.
  explicit TraceCompiler(VectorCode made_of);
  ~TraceCompiler();
  // The widest that this processor can run.
  static VectorCode best();
  // Null if the trace is not worth it or cannot be compiled. The code lives as long as the compiler;
  // the same trace has the same.
  NativeCode compile(const Trace& trace, const NativeCalls& calls);

 private:
  struct Code;
  VectorCode made_of_;
  std::unique_ptr<Code> code_;
};

}  // namespace gpusim::simd
