// Calls: functions take their callers' place.
#pragma once
#include <map>
#include <string>

#include "translator/ptx/unit.h"

namespace gpusim::ptx {

using Functions = std::map<std::string, const Function*, std::less<>>;

/// The kernel with the bodies of all that it calls. Throws Error for recursion, and for functions
/// that are not there or hand values over in ways that are not supported.
Function inline_calls(const Function& kernel, const Functions& functions);

}  // namespace gpusim::ptx
