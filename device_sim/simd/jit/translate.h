// Fill `code` with native code for a trace; false if it is not worth it or cannot be done.
#pragma once
#include <asmjit/core.h>

#include "device_sim/simd/jit/compiler.h"

namespace gpusim::simd {

bool translate_avx2(const Trace& trace, const NativeCalls& calls, asmjit::CodeHolder& code);
bool translate_avx512(const Trace& trace, const NativeCalls& calls, asmjit::CodeHolder& code);

}  // namespace gpusim::simd
