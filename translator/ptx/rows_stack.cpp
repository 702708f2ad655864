// alloca, stacksave, stackrestore (PTX ISA, "Stack Manipulation Instructions").
//
// A thread's stack grows down from its end, whose address a slot of its own has. Its lowest byte
// is "@alloca" in local memory. Frames of functions that stand apart (frames.h) lie above its end.
#include "translator/ptx/emitter.h"
#include "translator/ptx/memory_map.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

constexpr Slot kTop = special_slot(Special::kStackTop);

// d, size, alignment: where the block would begin, or 0 where the stack has no room for it.
void stack_room(Emitter& e, I i) {
  const Operand lowest{.kind = Operand::Kind::kSymbol, .symbol = kStackBottom};
  const Slot size = e.reg(i.operands[1]), bottom = e.konst(e.place_of(lowest).address);
  const Slot left = e.temp(), at = e.temp();
  e.b.sub64(left, kTop, bottom);
  e.b.sub64(at, kTop, size);
  e.b.andi64(at, at, 0 - i.operands[2].value);
  e.b.sel_cmp(at, kZeroSlot, at, left, size, kBelow64);
  e.b.sel_cmp(at, kZeroSlot, at, at, bottom, kBelow64);
  e.b.mov(e.dst(i.operands[0]), at);
}

void set_top(Emitter& e, I i) {
  const Slot a = e.src(i.operands[0], i.type());
  if (i.type().bits == 64) return e.b.mov(kTop, a);
  e.b.addi64(kTop, a, kLocalWindowBase);  // which has no bits of these
}

void stack_save(Emitter& e, I i) { e.zero_extend(e.dst(i.operands[0]), kTop, i.type().bits); }

// stack: frames begin behind what alloca gives.
void set_stack_above(Emitter& e, I i) { e.b.mov(e.dst(i.operands[0]), kTop); }

}  // namespace

const Row kStackRoom = {"alloca", "d0 s0 n", RowClass::kOther, stack_room};
const Row kSetStackTop = {"stackrestore", "s0", RowClass::kControl, set_top};
const Row kSaveStackTop = {"stacksave", "d0", RowClass::kOther, stack_save};
const Row kSetStackAbove = {"call", "d0", RowClass::kControl, set_stack_above};
const Row kOtherInPlace = {"alloca", "", RowClass::kOther, [](Emitter&, I) {}};

const RowList& stack_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"alloca .u64", "d0 s0 ? n", kOther, nullptr},
      {"stacksave .u32|.u64", "d0", kOther, stack_save},
      {"stackrestore .u32|.u64", "r0", kControl, set_top},
  };
  return rows;
}

}  // namespace gpusim::ptx
