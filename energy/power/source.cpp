#include "energy/power/source.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <ctime>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "energy/power/simulated.h"
#include "energy/power/sources.h"

namespace gpusim::power {

Seconds monotonic_now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return Seconds(static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9);
}

void monotonic_sleep_until(Seconds time) {
  const double whole = std::floor(time.value());
  timespec t{};
  t.tv_sec = static_cast<time_t>(whole);
  t.tv_nsec = static_cast<long>((time.value() - whole) * 1e9);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

std::unique_ptr<PowerSource> open_source(const std::string& spec, const SourceOptions& options) {
  const size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  const auto need = [&](const char* what) {
    if (rest.empty()) throw Error(fmt::format("{}: expected is {}:{}", spec, kind, what));
  };
  if (kind == "csv") {
    need("FILE");
    return open_recording(rest);
  }
  if (kind == "sim") {
    need("FILE.json");
    return parse_simulated(read_text(rest), rest);
  }
  if (kind == "nvml") return open_nvml(rest, options);
  if (kind == "rapl") return open_rapl(rest, options);
  if (kind == "hwmon") return open_hwmon(rest, options);
  throw Error(fmt::format(
      "{}: no such source of power; there are nvml:INDEX, rapl[:ZONE], hwmon:NAME, csv:FILE and "
      "sim:FILE.json",
      spec));
}

}  // namespace gpusim::power
