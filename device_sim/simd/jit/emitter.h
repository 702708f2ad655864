// Where generated code goes, and what the instruction sets that it is made of share (avx512.h,
// avx2.h). Each has the same operations on vector registers under the same names; what one lacks it
// composes of several instructions.
#pragma once
#include <asmjit/x86.h>

#include <cstdint>

#include "device_sim/uir/softfloat/format.h"

namespace gpusim::simd {

namespace x86 = asmjit::x86;

struct Emitter {
  explicit Emitter(asmjit::CodeHolder* code) : cc(code) {}
  virtual ~Emitter() = default;
  // Adds 16 words of 32 bits to those in memory.
  virtual void add_counts(const x86::Gp& to, const uint32_t* counts) = 0;

  x86::Compiler cc;
  // Of the micro-op being emitted: where lanes that do not take the common path are computed.
  asmjit::Label cold;
  bool cold_used = false;
  bool always_cold = false;
  // Whether the next question of the micro-op for a quicker way is answered no.
  bool is_not_quick = false;
  // How floating-point results are rounded, between begin_rounding and end_rounding.
  softfloat::Rounding rounding = softfloat::Rounding::kTieEven;
  // Lanes of the chunk that run, if not all do; what the others compute is of no interest.
  bool partial = false;

  x86::Mem constant(const void* bytes, size_t size) {
    return cc.newConst(asmjit::ConstPoolScope::kLocal, bytes, size);
  }

  // Only one function is generated at a time per host thread.
  static Emitter*& current() {
    static thread_local Emitter* emitter = nullptr;
    return emitter;
  }
};

}  // namespace gpusim::simd
