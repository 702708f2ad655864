// Hosts for which no native code is generated.
#include "device_sim/simd/jit/compiler.h"

namespace gpusim::simd {

struct TraceCompiler::Code {};
TraceCompiler::TraceCompiler(VectorCode made_of) : made_of_(made_of) {}
TraceCompiler::~TraceCompiler() = default;
VectorCode TraceCompiler::best() { return VectorCode::kNone; }
NativeCode TraceCompiler::compile(const Trace&, const NativeCalls&) { return nullptr; }

}  // namespace gpusim::simd
