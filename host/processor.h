// The processor that the simulator runs on.
#pragma once
#include <cstdint>
#include <string>

namespace gpusim::host {

std::string processor_name();
uint32_t host_threads();  // that this process may use

}  // namespace gpusim::host
