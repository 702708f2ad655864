// What is measured: the PTX instructions of Table I of Arafa et al. ("Verified Instruction-Level
// Energy Consumption Measurement for NVIDIA GPUs"), and those that the thesis's classes need beside
// them (section 5.1: comparison, branch, memory on and off the chip).
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device_sim/uir/insn_class.h"

namespace gpusim::power {

// A row of Table I, or one of ours (`is_published` false).
struct Row {
  std::string_view key;    // "int_add": the name that energy/targets/ptx-*.json uses
  std::string_view title;  // "Integer Arithmetic: add / sub / min / max"
  bool is_published;
};

// Where an instruction's memory is.
enum class MemoryUse { kNone, kShared, kL1, kL2, kDram };

// Registers that a body may name; the generator puts the kernel's own names in. x, y: a chain of
// values that no compiler can predict; s: what keeps results alive; t: a result; a, b, c: values
// that only the launch knows; p: a predicate. {v} stands for t where the instruction was measured,
// and for x where it was left out.
struct Instruction {
  std::string_view id;        // "add.s32"; unique
  std::string_view row;       // Row::key
  InsnClass insn_class;       // what it counts as
  char type;                  // of x, y, t, a, b, c: u (32 bits), l (64 bits), f, d, h (half)
  std::string_view before;    // of the overhead, too
  std::string_view measured;  // what is left out of the overhead
  std::string_view after;     // of the overhead, too
  MemoryUse memory = MemoryUse::kNone;
  bool takes_many = false;     // becomes a long sequence or a call: unrolled less
  bool needs_block = false;    // all threads of the block must come along (barriers)
  std::string_view instead{};  // stands in the overhead where `measured` is left out
};

std::span<const Row> rows();
const Row& row(std::string_view key);
std::span<const Instruction> instructions();
// nullptr if there is none.
const Instruction* find_instruction(std::string_view id);
// "int_add,sqrt.rn.f32,class:control_flow,all": instructions by id, row or class. Throws
// Error that lists what there is.
std::vector<const Instruction*> select_instructions(const std::string& list);

}  // namespace gpusim::power
