#include "tests/cuda_emulated/faults/chosen.h"

#include <cstdlib>

int chosen_fault() {
  static const int number = [] {
    const char* const text = std::getenv("GPUSIM_EMULATED_FAULT");
    return text ? std::atoi(text) : 0;
  }();
  return number;
}
