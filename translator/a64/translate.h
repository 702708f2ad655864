// What the block former needs from the AArch64 front end: one instruction into a builder, and where
// control can go after it.
#pragma once

#include <cstdint>
#include <optional>

#include "translator/a64/decode.h"
#include "translator/a64/registers.h"
#include "translator/common/block_builder.h"

namespace gpusim::a64 {

enum class Translated : uint8_t {
  kNext,       // the block can go on with pc + 4
  kEndsBlock,  // the builder holds a block end: jump, branch, service, give_way or an architected
               // trap
  kUnknown,    // the same with trap(Fault::kUndefined): unallocated, or not supported yet
};

/// A builder for canonical A64 slots.
inline BlockBuilder make_block_builder() { return {kFpState, kFirstTemp, kTempCount}; }

/// Appends the instruction to the builder's block, begin_instruction() included. Never fails.
Translated translate_instruction(uint32_t word, uint64_t pc, BlockBuilder& builder);

/// The translator has a method for the row; it may still refuse some of its words.
bool is_translated(Op op);

/// Direct control flow out of one instruction, for discovery without translating.
/// `ends_block` agrees with translate_instruction.
struct Flow {
  bool ends_block = false;
  bool falls_through = true;       // pc + 4 is reachable by other means than a return
  bool is_call = false;            // BL, BLR: pc + 4 is where the callee returns to
  std::optional<uint64_t> target;  // of a direct branch
};
Flow control_flow(uint32_t word, uint64_t pc, uint32_t cpu = 0);

}  // namespace gpusim::a64
