// What some instructions do, as functions in PTX that take their place.
#pragma once
#include <string_view>

#include "translator/ptx/unit.h"

namespace gpusim::ptx {

const Function& prelude_function(std::string_view name);

}  // namespace gpusim::ptx
