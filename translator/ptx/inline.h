// Calls: functions take their callers' place, but for those that call themselves or are called by
// address. These stand behind the kernel, each once.
#pragma once
#include <map>
#include <string>

#include "translator/ptx/emitter.h"
#include "translator/ptx/unit.h"

namespace gpusim::ptx {

using Functions = std::map<std::string, const Function*, std::less<>>;

struct WholeKernel {
  Function function;
  // Functions that are called by address: their labels. Others have units of code addresses, too.
  std::map<uint64_t, std::string> addressed;
  uint32_t addressed_units = 0;
  bool has_stack = false, has_alloca = false;
};

/// The kernel with all that it calls. `places`: functions whose addresses are taken are there.
/// Throws Error for functions that are not there or hand values over in ways that are not
/// supported.
WholeKernel inline_calls(const Function& kernel, const Functions& functions, const Places& places);

}  // namespace gpusim::ptx
