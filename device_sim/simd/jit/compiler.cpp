#include "device_sim/simd/jit/compiler.h"

#include <asmjit/x86.h>

#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "device_sim/simd/jit/avx2.h"
#include "device_sim/simd/jit/avx512.h"
#include "device_sim/simd/jit/plan.h"
#include "device_sim/simd/jit/translate.h"

// Debian builds asmjit with its assertions: after each instruction's registers are assigned, the
// whole assignment is checked, which took a third of the time of generating code. A strong
// definition here takes the place of the library's inline one.
__attribute__((visibility("hidden"))) bool accept_any_assignment(void*) asm(
    "_ZN6asmjit8_abi_1_912RAAssignment6verifyEv");
bool accept_any_assignment(void*) { return true; }

namespace gpusim::simd {

namespace {

class ErrorFlag : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error, const char*, asmjit::BaseEmitter*) override { failed = true; }
  bool failed = false;
};

}  // namespace

struct TraceCompiler::Code {
  asmjit::JitRuntime runtime;
  struct Compiled {
    std::unique_ptr<Trace> trace;  // generated code refers to its micro-ops
    NativeCode code;
  };
  std::unordered_map<uint32_t, std::vector<Compiled>> compiled;  // by the first micro-op's index
};

TraceCompiler::TraceCompiler(VectorCode made_of)
    : made_of_(made_of), code_(std::make_unique<Code>()) {}
TraceCompiler::~TraceCompiler() = default;

VectorCode TraceCompiler::best() {
  // For measurements and tests of what a processor without AVX-512 does.
  static const bool is_avx2_enough = [] {
    const char* const text = std::getenv("GPUSIM_NATIVE_CODE");
    return text != nullptr && std::string_view(text) == "avx2";
  }();
  return Avx512::available() && !is_avx2_enough ? VectorCode::kAvx512
         : Avx2::available()                    ? VectorCode::kAvx2
                                                : VectorCode::kNone;
}

NativeCode TraceCompiler::compile(const Trace& trace, const NativeCalls& calls) {
  if (made_of_ == VectorCode::kNone) return nullptr;
  auto kept = std::make_unique<Trace>(trace);
  leave_out_unfit_regions(*kept);
  if (kept->steps.empty()) return nullptr;
  std::vector<Code::Compiled>& compiled = code_->compiled[kept->steps.front().index];
  for (const Code::Compiled& earlier : compiled)
    if (*earlier.trace == *kept) return earlier.code;
  ErrorFlag errors;
  asmjit::CodeHolder holder;
  if (holder.init(code_->runtime.environment()) != asmjit::kErrorOk) return nullptr;
  holder.setErrorHandler(&errors);
  const auto translate = made_of_ == VectorCode::kAvx512 ? translate_avx512 : translate_avx2;
  NativeCode native = nullptr;
  if (!translate(*kept, calls, holder) || errors.failed) return nullptr;
  if (code_->runtime.add(&native, &holder) != asmjit::kErrorOk) return nullptr;
  compiled.push_back({std::move(kept), native});
  return native;
}

}  // namespace gpusim::simd
