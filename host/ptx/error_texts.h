// Results of CUDA's functions by name and text.
#pragma once

namespace gpusim::ptx {

struct ErrorText {
  int number;
  const char *runtime, *driver;  // names; empty: the driver has none
  const char* text;
};

/// Null: there is no such result.
const ErrorText* find_error(int number);

}  // namespace gpusim::ptx
