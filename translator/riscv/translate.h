// What the block former needs from the RISC-V front end: one instruction into a builder, and where
// control can go after it.
#pragma once

#include <cstdint>

#include "translator/common/guest_isa.h"
#include "translator/riscv/decode.h"
#include "translator/riscv/registers.h"

namespace gpusim::riscv {

/// A builder for canonical RISC-V slots.
inline BlockBuilder make_block_builder() { return {kFpState, kFirstTemp, kTempCount}; }

/// Appends the instruction to the builder's block, begin_instruction() included. Never fails.
InsnResult translate_instruction(const Insn& insn, uint64_t pc, BlockBuilder& builder);

/// The translator has a method for the row; it may still refuse some of its words.
bool is_translated(Op op);

/// For discovery without translating. `ends_block` agrees with translate_instruction.
ControlFlow control_flow(const Insn& insn, uint64_t pc);

}  // namespace gpusim::riscv
