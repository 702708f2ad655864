// What a futex that a core waits for is part of, and who can end the wait.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/linux/kernel.h"
#include "host/run/call_frames.h"

namespace gpusim::host {

struct FutexUse {
  std::string kind = "futex";  // "mutex", "the end of core 3's thread, futex"
  std::string holder;          // ", which core 3 holds"; "" where that is not known
};

// A guess that is made only where all of it fits: guests may keep what they like in a futex.
FutexUse futex_use(Kernel& kernel, uint32_t core, uint64_t address,
                   const std::vector<CallFrame>& frames);

}  // namespace gpusim::host
