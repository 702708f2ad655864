// run_slice() of a backend whose cores run on a device, in pieces: the caller's thread has other
// things to do meanwhile.
#pragma once
#include <cstdint>
#include <span>

#include "device_sim/core/backend.h"

namespace gpusim {

class AsyncSlices {
 public:
  virtual ~AsyncSlices() = default;
  // Then no other function but slice_is_done() may be called until end_slice().
  virtual void begin_slice(uint64_t instructions) = 0;
  virtual bool slice_is_done() = 0;
  virtual std::span<const Event> end_slice() = 0;  // waits
};

// Null: the backend runs slices on the caller's thread.
inline AsyncSlices* async_slices_of(Backend& backend) {
  return dynamic_cast<AsyncSlices*>(&backend);
}

}  // namespace gpusim
