// Loads and stores that all lanes of a warp make before any of them goes on.
#pragma once
#include <cstdint>

namespace gpusim {

// aux of such a load or store: native code would else execute several micro-ops for some lanes at a
// time. That is what volatile means to old warp-synchronous code.
inline constexpr uint8_t kInStep = 1;

}  // namespace gpusim
