// Times, powers and curves in the files of `gpusim power`, whose keys have their units.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "device_sim/base/json_object.h"
#include "energy/power/curve.h"

namespace gpusim::power {

inline constexpr const char* kDocs = " (docs/power.md lists them)";

// A key that is not there leaves `to` as it is.
inline void seconds(const JsonObject& in, const std::string& key, Seconds& to, double least = 0) {
  to = Seconds(in.number_or(key, to.value(), least));
}

inline void watts(const JsonObject& in, const std::string& key, Watts& to, double least = 0) {
  to = Watts(in.number_or(key, to.value(), least));
}

// [[seconds, watts], ...]
inline void knots(const JsonObject& in, const std::string& key, std::vector<Knot>& to) {
  if (!in.has(key)) return;
  const auto fail = [&](const std::string& what) { in.fail(fmt::format("\"{}\": {}", key, what)); };
  const auto& list = in.get(key);
  if (!list.is_array() || list.empty()) fail("a list of [seconds, watts] is expected");
  to.clear();
  for (const auto& pair : list) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number())
      fail("a list of [seconds, watts] is expected");
    const Knot k{Seconds(pair[0].get<double>()), Watts(pair[1].get<double>())};
    if (k.time < Seconds(0) || k.power < Watts(0)) fail("times and powers are not negative");
    if (!to.empty() && k.time < to.back().time)
      fail(fmt::format("time falls from {} s to {} s", to.back().time.value(), k.time.value()));
    to.push_back(k);
  }
}

}  // namespace gpusim::power
