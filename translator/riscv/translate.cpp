#include "translator/riscv/translate.h"

#include "translator/riscv/dispatch.h"
#include "translator/riscv/vector.h"
#include "translator/riscv/visitor.h"

namespace gpusim::riscv {
namespace {

// Whose visitors may end a block or refuse: the major opcodes of fences, branches, jumps and
// system, and SLTI to x0, a hint.
bool may_end_block(const Insn& insn) {
  if (insn.op() == Op::SLTI) return insn.field('d') == 0;
  const uint32_t major = insn.word & 0x7f;
  return major == 0x0f || major == 0x63 || major == 0x67 || major == 0x6f || major == 0x73;
}

}  // namespace

InsnResult translate_instruction(const Insn& insn, uint64_t pc, BlockBuilder& builder) {
  builder.begin_instruction();
  if (insn && is_vector(*insn.row)) {
    translate_vector(insn, builder);
    return InsnResult::kNext;
  }
  Visitor visitor(pc, insn.bytes, insn.xlen, builder);
  if (dispatch(visitor, insn) == Visit::kTranslated)
    return builder.ended() ? InsnResult::kEndsBlock : InsnResult::kNext;
  builder.set_class(InsnClass::kOther);
  builder.trap(Fault::kUndefined);
  return InsnResult::kUnknown;
}

bool is_translated(Op op) { return has_visitor<Visitor>(op) || is_vector(row(op)); }

// Reads the end that the instruction's own translation emits, so that the two cannot disagree.
ControlFlow control_flow(const Insn& insn, uint64_t pc) {
  if (insn && is_translated(insn.op()) && !may_end_block(insn)) return {};
  BlockBuilder builder = make_block_builder();
  builder.begin_block(pc);
  translate_instruction(insn, pc, builder);
  return control_flow_of(builder.draft());
}

}  // namespace gpusim::riscv
