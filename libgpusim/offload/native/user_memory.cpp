// SPDX-License-Identifier: MIT
#include "libgpusim/offload/native/user_memory.h"

#include <cstdio>
#include <cstdlib>

#include "qemu_bridge/wire/gpusim_wire.h"

namespace gpusim::offload {

uint8_t user_memory_rights(uint64_t address, uint64_t size_bytes) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return GPUSIM_READ | GPUSIM_WRITE;  // no way to know
  uint8_t rights = GPUSIM_READ | GPUSIM_WRITE;
  uint64_t at = address;
  char* line = nullptr;
  size_t room = 0;
  while (at < address + size_bytes && getline(&line, &room, maps) > 0) {
    unsigned long long first = 0, last = 0;
    char flags[5] = {};
    if (std::sscanf(line, "%llx-%llx %4s", &first, &last, flags) != 3) continue;
    if (last <= at) continue;
    if (first > at) break;
    if (flags[0] != 'r') rights = static_cast<uint8_t>(rights & ~GPUSIM_READ);
    if (flags[1] != 'w') rights = static_cast<uint8_t>(rights & ~GPUSIM_WRITE);
    at = last;
  }
  std::free(line);
  std::fclose(maps);
  return at < address + size_bytes ? uint8_t{0} : rights;
}

}  // namespace gpusim::offload
