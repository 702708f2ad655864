#include "energy/quantities.h"

#include <fmt/format.h>

#include <cstring>

#include "device_sim/base/error.h"

namespace gpusim::energy {
namespace {

struct Unit {
  const char *kind, *name;
  double scale;
};
constexpr Unit kUnits[] = {
    {"energy", "J", 1},         {"energy", "mJ", 1e-3},     {"energy", "uJ", 1e-6},
    {"energy", "nJ", 1e-9},     {"energy", "pJ", 1e-12},    {"power", "W", 1},
    {"power", "mW", 1e-3},      {"power", "uW", 1e-6},      {"time", "s", 1},
    {"time", "ms", 1e-3},       {"time", "us", 1e-6},       {"time", "ns", 1e-9},
    {"frequency", "Hz", 1},     {"frequency", "kHz", 1e3},  {"frequency", "MHz", 1e6},
    {"frequency", "GHz", 1e9},  {"size", "B", 1},           {"size", "kB", 1e3},
    {"size", "MB", 1e6},        {"size", "GB", 1e9},        {"bandwidth", "B/s", 1},
    {"bandwidth", "MB/s", 1e6}, {"bandwidth", "GB/s", 1e9},
};

}  // namespace

double unit_scale(const char* kind, const std::string& unit, const std::string& where) {
  std::string names;
  for (const Unit& u : kUnits) {
    if (std::strcmp(u.kind, kind) != 0) continue;
    if (unit == u.name) return u.scale;
    names += (names.empty() ? "" : ", ") + std::string(u.name);
  }
  for (const Unit& u : kUnits)
    if (unit == u.name)
      throw Error(fmt::format("{}: {} is a unit of {}, but {} is wanted ({})", where, unit, u.kind,
                              kind, names));
  throw Error(fmt::format("{}: unknown unit {}; units of {}: {}", where, unit, kind, names));
}

}  // namespace gpusim::energy
