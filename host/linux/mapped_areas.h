// What a guest process has in memory, by pages of equal rights.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "host/linux/kernel.h"

namespace gpusim::host {

struct MappedArea {
  uint64_t begin = 0, end = 0;
  uint8_t rights = 0;  // SegmentFlags
  std::string name;    // the program's file, "[heap]", "[stack]"; "" of a mapping
};

// As `core` of the process sees it, by address. Of the cores whose stacks they are, `stacks`.
std::vector<MappedArea> mapped_areas(Kernel& kernel, const Process& process, uint32_t core,
                                     const std::vector<uint32_t>& stacks);

}  // namespace gpusim::host
