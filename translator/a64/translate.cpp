#include "translator/a64/translate.h"

#include "translator/a64/dispatch.h"
#include "translator/a64/visitor.h"

namespace gpusim::a64 {

Translated translate_instruction(uint32_t word, uint64_t pc, BlockBuilder& builder) {
  builder.begin_instruction();
  Visitor visitor(pc, builder);
  if (dispatch(visitor, decode_at(pc, word)) == Visit::kTranslated)
    return builder.ended() ? Translated::kEndsBlock : Translated::kNext;
  builder.set_class(InsnClass::kOther);
  builder.trap(Fault::kUndefined);
  return Translated::kUnknown;
}

bool is_translated(Op op) { return has_visitor<Visitor>(op); }

// Reads the end that the instruction's own translation emits, so that the two cannot disagree.
Flow control_flow(uint32_t word, uint64_t pc, uint32_t cpu) {
  // Most of a program: rows whose visitors never refuse and never end a block.
  const Row* row = decode(word);
  if (row && row->group < Group::kBranchesSystem && has_visitor<Visitor>(row->op)) return {};

  BlockBuilder builder = make_block_builder();
  builder.set_cpu(cpu);
  builder.begin_block(pc);
  if (translate_instruction(word, pc, builder) == Translated::kNext) return {};
  const DraftBlock& block = builder.draft();
  const Uop& last = block.uops.back();
  Flow flow;
  flow.ends_block = true;
  flow.falls_through = false;
  switch (last.op) {
    case MicroOp::jmp:
    case MicroOp::jmp_reg:
      flow.is_call = static_cast<JumpHint>(last.aux) == JumpHint::kCall;
      if (last.op == MicroOp::jmp) flow.target = block.end.taken_pc;
      break;
    case MicroOp::service:
    case MicroOp::give_way:
      flow.falls_through = true;
      break;
    case MicroOp::trap:
      break;
    default:  // conditional
      flow.falls_through = true;
      flow.target = block.end.taken_pc;
  }
  return flow;
}

}  // namespace gpusim::a64
