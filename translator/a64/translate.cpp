#include "translator/a64/translate.h"

#include "translator/a64/dispatch.h"
#include "translator/a64/visitor.h"

namespace gpusim::a64 {

InsnResult translate_instruction(uint32_t word, uint64_t pc, BlockBuilder& builder) {
  builder.begin_instruction();
  Visitor visitor(pc, builder);
  if (dispatch(visitor, decode_at(pc, word)) == Visit::kTranslated)
    return builder.ended() ? InsnResult::kEndsBlock : InsnResult::kNext;
  builder.set_class(InsnClass::kOther);
  builder.trap(Fault::kUndefined);
  return InsnResult::kUnknown;
}

bool is_translated(Op op) { return has_visitor<Visitor>(op); }

// Reads the end that the instruction's own translation emits, so that the two cannot disagree.
ControlFlow control_flow(uint32_t word, uint64_t pc, uint32_t cpu) {
  // Most of a program: rows whose visitors never refuse and never end a block.
  const Row* row = decode(word);
  if (row && row->group < Group::kBranchesSystem && has_visitor<Visitor>(row->op)) return {};

  BlockBuilder builder = make_block_builder();
  builder.set_cpu(cpu);
  builder.begin_block(pc);
  if (translate_instruction(word, pc, builder) == InsnResult::kNext) return {};
  return control_flow_of(builder.draft());
}

}  // namespace gpusim::a64
