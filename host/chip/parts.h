// The parts of a core's time.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "host/chip/shape.h"

namespace gpusim::host::chip {

// Where a core's time goes.
enum class Part : uint8_t {
  kCompute,     // instructions, as if all were in the L1
  kDependence,  // for results of earlier instructions that are not loads
  kFetch,       // misses of the instruction cache
  kL1,          // hits that take longer than one cycle
  kL2,
  kNetwork,
  kShared,  // slices of the shared cache, or scratchpad
  kMemory,
  kCoherence,  // other cores' copies: told to go, or fetched
  kWaiting,    // for other cores: barriers, locks, words that shall change
};
inline constexpr size_t kParts = 10;
inline constexpr const char* kPartNames[kParts] = {"compute",   "dependence", "fetch",  "l1",
                                                   "l2",        "network",    "shared", "memory",
                                                   "coherence", "waiting"};
using Stack = std::array<Ticks, kParts>;

}  // namespace gpusim::host::chip
