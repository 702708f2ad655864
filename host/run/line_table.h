// Functions and source lines of some addresses of a program, for whoever cannot or must not read
// its debug information himself.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "device_sim/base/file_descriptor.h"
#include "host/run/profile_frames.h"

namespace gpusim::host {

// As InlineFrames::at() has them, the innermost first. Addresses of which nothing is known are
// there, with no frames.
using LineTable = std::map<uint64_t, std::vector<Frame>>;

// By the DWARF of the ELF file that the descriptor is for, which stays open. libdw reads it: for
// files that nobody vouches for, in a process that may come to harm.
LineTable find_lines(int elf, std::span<const uint64_t> addresses);

// A file without a name; invalid if there is no memory.
FileDescriptor memory_file(std::span<const uint8_t> bytes);

}  // namespace gpusim::host
