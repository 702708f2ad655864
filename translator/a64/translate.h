// What the block former needs from the AArch64 front end: one instruction into a builder, and where
// control can go after it.
#pragma once

#include <cstdint>
#include <optional>

#include "translator/a64/decode.h"
#include "translator/a64/registers.h"
#include "translator/common/guest_isa.h"

namespace gpusim::a64 {

/// A builder for canonical A64 slots.
inline BlockBuilder make_block_builder() { return {kFpState, kFirstTemp, kTempCount}; }

/// Appends the instruction to the builder's block, begin_instruction() included. Never fails.
InsnResult translate_instruction(uint32_t word, uint64_t pc, BlockBuilder& builder);

/// The translator has a method for the row; it may still refuse some of its words.
bool is_translated(Op op);

/// For discovery without translating. `ends_block` agrees with translate_instruction.
ControlFlow control_flow(uint32_t word, uint64_t pc, uint32_t cpu = 0);

/// The target that control_flow() says, from the word alone.
std::optional<uint64_t> branch_target(uint32_t word, uint64_t pc);

}  // namespace gpusim::a64
