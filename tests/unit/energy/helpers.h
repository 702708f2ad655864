#pragma once
#include <doctest/doctest.h>

#include <string>

#include "device_sim/base/error.h"
#include "energy/target.h"

namespace gpusim::energy {

// The message of the error that `f` throws; "" if it throws none.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool mentions(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE("\"" << part << "\" is not in: " << text);
  return false;
}

inline const Target& one_target(const std::string& name) {
  static std::vector<std::vector<Target>> kept;
  kept.push_back(find_targets(name));
  REQUIRE(kept.back().size() == 1);
  return kept.back()[0];
}

}  // namespace gpusim::energy
