// Guest memory that others than the machine's own cores read and write while a slice runs.
#pragma once
#include "device_sim/core/backend.h"

namespace gpusim {

// Of backends for which that makes a difference.
class SharesMemory {
 public:
  virtual ~SharesMemory() = default;
  // From now on, until the next configure(): atomic operations and fences are the host's, also
  // while one thread runs all cores.
  virtual void memory_is_shared() = 0;
};

inline void tell_memory_is_shared(Backend& backend) {
  if (auto* const shares = dynamic_cast<SharesMemory*>(&backend)) shares->memory_is_shared();
}

}  // namespace gpusim
