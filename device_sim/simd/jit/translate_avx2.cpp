#include "device_sim/simd/jit/avx2.h"
#include "device_sim/simd/jit/translate.h"
#include "device_sim/simd/jit/translation.h"

namespace gpusim::simd {

bool translate_avx2(const Trace& trace, const NativeCalls& calls, asmjit::CodeHolder& code) {
  Avx2 isa(&code);
  return Translation<Avx2>(trace, calls, isa).run();
}

}  // namespace gpusim::simd
