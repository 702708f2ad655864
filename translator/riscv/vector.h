// The vector extension: one micro-op per instruction, which does what the core's vector type says.
#pragma once

#include "translator/common/block_builder.h"
#include "translator/riscv/decode.h"

namespace gpusim::riscv {

/// The operation of a row of rows/vector.def.
VectorOp vector_operation(Op op);
constexpr bool is_vector(const Row& row) { return row.extension == Extension::kV; }
/// Appends the micro-ops of an instruction of such a row.
void translate_vector(const Insn& insn, BlockBuilder& builder);

/// "vadd.vx v1,v2,a0,v0.t".
std::string vector_mnemonic(const Row& row, uint32_t word);
std::string vector_operands(const Row& row, uint32_t word);

}  // namespace gpusim::riscv
