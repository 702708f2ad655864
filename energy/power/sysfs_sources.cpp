#include "energy/error.h"
#include "energy/power/sources.h"

namespace gpusim::power {

std::unique_ptr<PowerSource> open_rapl(const std::string&, const SourceOptions&) {
  throw energy::Error("rapl: this source is not built yet");
}
std::unique_ptr<PowerSource> open_hwmon(const std::string&, const SourceOptions&) {
  throw energy::Error("hwmon: this source is not built yet");
}

}  // namespace gpusim::power
