#pragma once
#include "device_sim/core/wait.h"

namespace gpusim::simd {

// Whether a core with this watch shall look for itself: its event has come, or the word may no
// longer be read. The host's page may have the guest's permissions (core/guarded_space.h): it is
// not looked at then.
bool has_event(const Watch& watch, const MemoryView& memory);

}  // namespace gpusim::simd
