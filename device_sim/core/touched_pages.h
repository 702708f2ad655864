// Which pages of a range of this process's memory were ever touched, so that the rest need not be
// looked at, and does not appear by being looked at.
#pragma once
#include <cstdint>
#include <vector>

#include "device_sim/core/memory_view.h"

namespace gpusim {

class TouchedPages {
 public:
  TouchedPages(const uint8_t* data, uint64_t size_bytes);
  bool operator()(const uint8_t* p) const {
    return touched_[(reinterpret_cast<uintptr_t>(p) >> kPageShift) - first_];
  }

 private:
  uint64_t first_;
  std::vector<bool> touched_;
};

}  // namespace gpusim
