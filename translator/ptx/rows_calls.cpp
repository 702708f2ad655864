// Calls that stay calls (frames.h), as the inliner makes them.
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

// stack, where it begins
void set_stack(Emitter& e, I i) {
  e.b.konst(e.dst(i.operands[0]), e.place_of(i.operands[1]).address);
}

// d, stack, offset
void frame_address(Emitter& e, I i) {
  e.b.addi64(e.dst(i.operands[0]), e.reg(i.operands[1]), i.operands[2].value);
}

// {registers}: what may be read before it is written is zero.
void clear_registers(Emitter& e, I i) {
  for (const Operand& r : i.operands[0].elements) e.b.konst(e.dst(r), 0);
}

// stack, size of the frame, label or register, {registers to keep}, where
void call_out(Emitter& e, I i) {
  const Slot stack = e.reg(i.operands[0]);
  const uint64_t frame_bytes = i.operands[1].value;
  uint64_t at = i.operands[4].value;
  for (const Operand& r : i.operands[3].elements) {
    e.b.emit(Op::st64, e.reg(r), stack, 0, 0, at);
    at += 8;
  }
  const Slot back = e.temp();
  e.b.konst(back, e.next_pc);
  e.b.emit(Op::st64, back, stack, 0, 0, frame_bytes);
  e.b.addi64(stack, stack, frame_bytes);
  const Operand& target = i.operands[2];
  if (target.is(Operand::Kind::kSymbol)) return e.b.call(e.label_pc(target.symbol));
  e.b.jmp_reg(e.reg(target), JumpHint::kCall);
}

// {registers that were kept}, stack, size of the frame, where
void after_call(Emitter& e, I i) {
  const Slot stack = e.reg(i.operands[1]);
  e.b.addi64(stack, stack, 0 - i.operands[2].value);
  uint64_t at = i.operands[3].value;
  for (const Operand& r : i.operands[0].elements) {
    e.b.emit(Op::ld64, e.dst(r), stack, 0, 0, at);
    at += 8;
  }
}

// stack
void return_to_caller(Emitter& e, I i) {
  const Slot back = e.temp();
  e.b.emit(Op::ld64, back, e.reg(i.operands[0]), 0, 0, 0);
  e.b.jmp_reg(back, JumpHint::kReturn);
}

}  // namespace

const Row kSetStack = {"call", "", RowClass::kControl, set_stack};
const Row kFrameAddress = {"mov", "", RowClass::kLogical, frame_address};
const Row kClearRegisters = {"call", "", RowClass::kControl, clear_registers};
const Row kCallOut = {"call", "", RowClass::kControl, call_out};
const Row kAfterCall = {"call", "", RowClass::kControl, after_call};
const Row kReturn = {"ret", "", RowClass::kControl, return_to_caller};

}  // namespace gpusim::ptx
