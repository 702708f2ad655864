// Hosts for which no native code is generated.
#include "device_sim/simd/jit/compiler.h"

namespace gpusim::simd {

struct TraceCompiler::Code {};
TraceCompiler::TraceCompiler() = default;
TraceCompiler::~TraceCompiler() = default;
bool TraceCompiler::available() { return false; }
NativeCode TraceCompiler::compile(const Trace&, const NativeCalls&) { return nullptr; }

}  // namespace gpusim::simd
