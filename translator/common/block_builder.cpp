#include "translator/common/block_builder.h"

#include <stdexcept>

namespace gpusim {

Slot BlockBuilder::temp_run(int n) {
  if (next_temp_ + n > temp_count_) throw std::logic_error("an instruction needs too many temporaries");
  const int first = first_temp_ + next_temp_;
  next_temp_ += n;
  return static_cast<Slot>(first);
}

Uop& BlockBuilder::emit(Op op, Slot d, Slot a, Slot b, Slot c, uint64_t imm, uint8_t aux) {
  block_.uops.push_back(Uop{op, d, a, b, c, 0, aux, imm});
  block_.uop_insn.push_back(static_cast<uint16_t>(block_.classes.size() - 1));
  return block_.uops.back();
}

void BlockBuilder::end(Op op, Slot d, Slot a, Slot b, uint8_t aux, uint64_t taken_pc) {
  emit(op, d, a, b, 0, 0, aux);
  block_.end = {.present = true, .taken_pc = taken_pc};
}

void BlockBuilder::jmp(uint64_t target_pc) { end(Op::jmp, 0, 0, 0, 0, target_pc); }
void BlockBuilder::call(uint64_t target_pc) {
  end(Op::jmp, 0, 0, 0, static_cast<uint8_t>(JumpHint::kCall), target_pc);
}
void BlockBuilder::jmp_reg(Slot address, JumpHint hint) {
  end(Op::jmp_reg, 0, address, 0, static_cast<uint8_t>(hint), 0);
}
void BlockBuilder::branch(Op op, Slot a, Slot b, uint64_t taken_pc) {
  end(op, 0, a, b, 0, taken_pc);
}
void BlockBuilder::branch_imm(Op op, Slot a, uint16_t imm16, uint64_t taken_pc) {
  end(op, 0, a, 0, 0, taken_pc);
  block_.uops.back().set_imm16(imm16);
}
void BlockBuilder::give_way(Turn turn, Slot monitor, uint64_t next_pc) {
  end(Op::give_way, 0, monitor, 0, static_cast<uint8_t>(turn), next_pc);
}
void BlockBuilder::service(Service what, uint64_t next_pc, Slot d) {
  end(Op::service, d, 0, 0, static_cast<uint8_t>(what), next_pc);
}
void BlockBuilder::trap(Fault fault) { end(Op::trap, 0, 0, 0, static_cast<uint8_t>(fault), 0); }

}  // namespace gpusim
