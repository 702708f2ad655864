// Which simulated cores may be the last to end, whatever an instruction of each class takes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device_sim/uir/insn_class.h"

namespace gpusim::energy {

// Keeps cores whose counts no other core reaches in every class: for any cycles per instruction,
// none below zero, one of them has the most cycles. Time O(cores x kept), memory O(kept).
class LongestCores {
 public:
  // Of more than these, those with the most instructions are kept; the longest of a run may then
  // be missing for unusual cycles per instruction.
  static constexpr size_t kMost = 1024;

  void add(const ClassCounts& core);
  // Cores that are not listed, because those that are cover them.
  void add_covered(uint32_t cores) { active_ += cores; }

  uint32_t active_cores() const { return active_; }  // that executed anything
  // By instructions, most first; equal counts once.
  const std::vector<ClassCounts>& list() const { return list_; }

 private:
  std::vector<ClassCounts> list_;
  uint32_t active_ = 0;
};

}  // namespace gpusim::energy
