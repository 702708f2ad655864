// The kind of comparison that a compare-and-select micro-op makes, in its aux.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"

namespace gpusim {

enum class CompareRelation : uint8_t { kEqual, kLessSigned, kLessUnsigned };

// The converse relations exchange what is selected.
struct CompareKind {
  CompareRelation relation = CompareRelation::kEqual;
  bool is_32bit = false;      // compares the low 32 bits
  bool narrow_result = false;  // zero-extends the low 32 bits of the selected value

  GPUSIM_HD constexpr uint8_t pack() const {
    return static_cast<uint8_t>(static_cast<int>(relation) | is_32bit << 2 | narrow_result << 3);
  }
  GPUSIM_HD static constexpr CompareKind unpack(uint8_t aux) {
    return {static_cast<CompareRelation>(aux & 3), (aux >> 2 & 1) != 0, (aux >> 3 & 1) != 0};
  }
  GPUSIM_HD static constexpr bool is_valid(uint8_t aux) {
    return aux < 16 && (aux & 3) <= static_cast<int>(CompareRelation::kLessUnsigned);
  }
};

}  // namespace gpusim
