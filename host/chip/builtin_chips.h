// The files of host/chip/chips, compiled in: a program finds them wherever it lies.
#pragma once
#include <span>
#include <string>

namespace gpusim::host::chip {

struct BuiltinChip {
  const char* name;  // "mesh-1024.json"
  std::string text;
};
std::span<const BuiltinChip> builtin_chip_files();

}  // namespace gpusim::host::chip
