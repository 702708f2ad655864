// Which cores of a backend sleep. Readers of journals need it: a core that writes nothing may
// sleep, or others may have had their turns before it.
#pragma once
#include <cstdint>
#include <span>

#include "device_sim/core/backend.h"

namespace gpusim {

class Sleepers {
 public:
  virtual ~Sleepers() = default;
  // Between slices, with all events handled. `out`: one per core; 1: the core does nothing before
  // another core or the host does something for it. It is not started, has ended, waits for the
  // host, or waits for an event that has not come. 0: it goes on by itself, sooner or later.
  virtual void find_sleepers(std::span<uint8_t> out) = 0;
};

// Null: the backend does not say.
inline Sleepers* sleepers_of(Backend& backend) { return dynamic_cast<Sleepers*>(&backend); }

}  // namespace gpusim
