// The files of energy/targets.
#pragma once
#include "device_sim/base/embedded_file.h"

namespace gpusim::energy {

std::span<const EmbeddedFile> builtin_target_files();

}  // namespace gpusim::energy
