#include "translator/common/guest_isa.h"

#include <bit>

namespace gpusim {

uint32_t GuestIsa::pc_shift() const { return static_cast<uint32_t>(std::countr_zero(insn_align)); }

GuestInsn GuestIsa::first_insn(uint64_t pc, std::span<const uint8_t> code) const {
  const uint32_t length = insn_length(code);
  return {pc, length <= code.size() ? code.first(length) : std::span<const uint8_t>()};
}

ControlFlow control_flow_of(const DraftBlock& block) {
  if (!block.end.present) return {};
  const Uop& last = block.uops.back();
  ControlFlow flow;
  flow.ends_block = true;
  flow.falls_through = false;
  switch (last.op) {
    case Op::jmp:
    case Op::jmp_reg:
      flow.is_call = static_cast<JumpHint>(last.aux) == JumpHint::kCall;
      if (last.op == Op::jmp) flow.target = block.end.taken_pc;
      break;
    case Op::service:
    case Op::give_way:
      flow.falls_through = true;
      break;
    case Op::trap:
      break;
    default:  // conditional
      flow.falls_through = true;
      flow.target = block.end.taken_pc;
  }
  return flow;
}

}  // namespace gpusim
