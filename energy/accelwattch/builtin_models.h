// The files of data/, built into the program.
#pragma once
#include <span>

namespace gpusim::accelwattch {

struct BuiltinModel {
  const char* name;
  const char* text;
};
std::span<const BuiltinModel> builtin_model_files();

}  // namespace gpusim::accelwattch
