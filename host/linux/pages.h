// Pages of a guest's address space, behind AddressSpace's bookkeeping.
#pragma once
#include "host/linux/kernel.h"

namespace gpusim::host {

void map_pages(Kernel& kernel, uint32_t core, const AddressRange& range, uint8_t rights);
// Also of files that were mapped there.
void unmap_pages(Kernel& kernel, uint32_t core, const AddressRange& range);

}  // namespace gpusim::host
