#include "device_sim/simd/jit/avx512.h"
#include "device_sim/simd/jit/translate.h"
#include "device_sim/simd/jit/translation.h"

namespace gpusim::simd {

bool translate_avx512(const Trace& trace, const NativeCalls& calls, asmjit::CodeHolder& code) {
  Avx512 isa(&code);
  return Translation<Avx512>(trace, calls, isa).run();
}

}  // namespace gpusim::simd
