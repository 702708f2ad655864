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

std::optional<uint64_t> branch_target(uint32_t word, uint64_t pc) {
  const auto target = [&](unsigned lsb, unsigned width) {
    const uint32_t top = word << (32 - lsb - width);
    return pc + 4 * static_cast<uint64_t>(int64_t{static_cast<int32_t>(top)} >> (32 - width));
  };
  if ((word & 0x7c000000) == 0x14000000) return target(0, 26);  // B, BL
  if ((word & 0xff000010) == 0x54000000) return target(5, 19);  // B.cond
  if ((word & 0x7e000000) == 0x34000000) return target(5, 19);  // CBZ, CBNZ
  if ((word & 0x7e000000) == 0x36000000) return target(5, 14);  // TBZ, TBNZ
  return std::nullopt;
}

}  // namespace gpusim::a64
