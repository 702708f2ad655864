// Texts of device_sim/base/assets, built into the program.
#pragma once
#include <string>

namespace gpusim::page {

// "page.css". Empty for a name that is not there.
const std::string& asset(const std::string& name);

}  // namespace gpusim::page
