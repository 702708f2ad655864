// The files of host/chip/chips.
#pragma once
#include "device_sim/base/embedded_file.h"

namespace gpusim::host::chip {

std::span<const EmbeddedFile> builtin_chip_files();

}  // namespace gpusim::host::chip
