// Which extension of the architecture an instruction belongs to that the translator does not know.
#pragma once

#include <cstdint>

namespace gpusim::a64 {

/// "SVE", "SME", "MTE", "MOPS" or "PAuth": extensions that the CPUs which guests see say they lack.
/// Programs for many processors hold such instructions and ask before they execute them. Null for
/// others, and for what is no instruction at all.
const char* absent_extension(uint32_t word);

}  // namespace gpusim::a64
