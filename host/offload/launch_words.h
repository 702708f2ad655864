// What a launch says, checked and read from the context's memory.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "host/offload/device_memory.h"
#include "host/start_state.h"
#include "qemu_bridge/wire/gpusim_wire.h"

namespace gpusim::offload {

// All throw OffloadError.

/// What does not depend on programs: numbers in range, output in memory that is mapped.
void check_launch(const gpusim_launch& launch, const DeviceMemory& memory, uint32_t most_cores);

/// The arguments of the call, and what they point to.
struct LaunchWords {
  std::vector<host::CallWord> words;
  std::deque<std::vector<uint64_t>> tables;
};
LaunchWords launch_words(const gpusim_launch& launch, const DeviceMemory& memory);

/// argv of a program that runs as a process.
std::vector<std::string> launch_strings(const gpusim_launch& launch, const DeviceMemory& memory);

}  // namespace gpusim::offload
