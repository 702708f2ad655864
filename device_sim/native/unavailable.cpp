// Hosts for which no native code is generated.
#include "device_sim/native/engine.h"

namespace gpusim::native {

std::unique_ptr<Engine> Engine::make(const Module&, const MemoryView&, uint64_t, Guard) {
  return nullptr;
}

}  // namespace gpusim::native
