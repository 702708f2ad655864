// Registers to slots, by colouring the graph of those that are live together.
#pragma once
#include <vector>

#include "translator/ptx/unit.h"

namespace gpusim::ptx {

struct Allocation {
  std::vector<int> colours;  // per register, or -1 if it is never named
  int count = 0;
  std::vector<uint32_t> live_at_entry;  // registers that may be read before they are written
  std::vector<uint32_t> live_blocks;    // per register: basic blocks at whose beginning it is live
};

Allocation allocate_registers(const Function& f);

/// Registers that are live before each of these instructions.
std::vector<std::vector<uint32_t>> live_before(const Function& f,
                                               const std::vector<uint32_t>& instructions);

/// Whether control may go on behind an instruction, and whether it goes to its label.
bool falls_through(const Instruction& insn);
bool is_branch(const Instruction& insn);

}  // namespace gpusim::ptx
