// Programs written as micro-ops, for tests.
#pragma once
#include <utility>

#include "device_sim/uir/module.h"

namespace gpusim::self_test {

// Assembles micro-ops; every jump ends a block of one instruction per micro-op.
class Assembler {
 public:
  Assembler() { begin(); }
  void op(Op op, Slot d, Slot a, Slot b = 0, Slot c = 0, uint64_t imm = 0, uint8_t aux = 0) {
    module_.uops.push_back({.op = op, .d = d, .a = a, .b = b, .c = c, .aux = aux, .imm = imm});
  }
  void op(const Uop& u) { module_.uops.push_back(u); }
  void konst(Slot d, uint64_t value) { op(Op::konst, d, 0, 0, 0, value); }
  uint32_t label() {  // a block starts here
    if (module_.uops.size() != block_.first_uop) end(Op::jmp, 0, 0, 0, next());
    return block_.first_uop;
  }
  uint32_t next() const { return static_cast<uint32_t>(module_.uops.size()) + 1; }
  uint32_t end(Op op, Slot a, Slot b, uint16_t imm16, uint32_t target, uint8_t aux = 0) {
    const auto number = static_cast<uint32_t>(module_.blocks.size());
    Uop u{.op = op, .a = a, .b = b, .aux = aux, .imm = Uop::pack_target(number, target)};
    if (imm16 != 0) u.set_imm16(imm16);
    module_.uops.push_back(u);
    block_.uop_count = static_cast<uint32_t>(module_.uops.size()) - block_.first_uop;
    block_.insn_count = block_.uop_count;
    block_.classes[number % kInsnClassCount] = block_.insn_count;
    module_.blocks.push_back(block_);
    begin();
    return static_cast<uint32_t>(module_.uops.size()) - 1;
  }
  void aim(uint32_t branch, uint32_t target) {
    Uop& u = module_.uops[branch];
    u.imm = Uop::pack_target(u.block(), target);
  }
  Module take(uint32_t slots) {
    end(Op::trap, 0, 0, 0, 0, static_cast<uint8_t>(Fault::kBreakpoint));
    module_.slot_count = slots;
    module_.uop_block.assign(module_.uops.size(), 0);
    module_.uop_insn.assign(module_.uops.size(), 0);
    return std::move(module_);
  }

 private:
  void begin() {
    block_ = Block{};
    block_.first_uop = static_cast<uint32_t>(module_.uops.size());
  }
  Module module_;
  Block block_;
};

}  // namespace gpusim::self_test
