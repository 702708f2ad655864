// Texts of device_sim/base/assets, built into the program.
#pragma once
#include "device_sim/base/embedded_file.h"

namespace gpusim::page {

std::span<const EmbeddedFile> assets();
// "page.css". Empty for a name that is not there.
const std::string& asset(const std::string& name);

}  // namespace gpusim::page
