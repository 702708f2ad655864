// The files of energy/targets, compiled in: a program finds them wherever it lies.
#pragma once
#include <span>
#include <string>

namespace gpusim::energy {

struct BuiltinTarget {
  const char* name;  // "fermi.json"
  std::string text;
};
std::span<const BuiltinTarget> builtin_target_files();

}  // namespace gpusim::energy
