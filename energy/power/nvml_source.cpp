#include "energy/error.h"
#include "energy/power/sources.h"

namespace gpusim::power {

std::unique_ptr<PowerSource> open_nvml(const std::string&, const SourceOptions&) {
  throw energy::Error("nvml: this source is not built yet");
}

}  // namespace gpusim::power
