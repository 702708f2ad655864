// The kinds of sources that open_source() knows. Each throws Error where there is none.
#pragma once
#include <memory>
#include <string>

#include "energy/power/source.h"

namespace gpusim::power {

std::unique_ptr<PowerSource> open_recording(const std::string& path);
std::unique_ptr<PowerSource> open_nvml(const std::string& index, const SourceOptions& options);
std::unique_ptr<PowerSource> open_rapl(const std::string& zone, const SourceOptions& options);
std::unique_ptr<PowerSource> open_hwmon(const std::string& name, const SourceOptions& options);

}  // namespace gpusim::power
