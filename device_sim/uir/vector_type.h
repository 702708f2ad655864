// What a core's vector type says (RISC-V vector extension 1.0, section 3.4).
#pragma once

#include "device_sim/uir/vector.h"

namespace gpusim::vector {

struct Type {
  bool is_legal;
  int log_size, log_group;  // as in Work
  uint64_t longest;
};
GPUSIM_HD constexpr Type type_of(uint64_t vtype) {
  const int group = static_cast<int>(vtype & 7), log_group = group >= 4 ? group - 8 : group;
  const int log_size = static_cast<int>(vtype >> 3 & 7);
  const bool is_legal = vtype >> 8 == 0 && group != 4 && log_size <= kLogElen &&
                        (log_group >= 0 || log_size <= kLogElen + log_group);
  if (!is_legal) return {false, 0, 0, 0};
  return {true, log_size, log_group, uint64_t{1} << (kLogBits - 3 - log_size + log_group)};
}

}  // namespace gpusim::vector
