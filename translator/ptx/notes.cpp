#include "translator/ptx/notes.h"

#include "device_sim/uir/journal.h"
#include "device_sim/uir/warp.h"
#include "translator/passes/note_accesses.h"
#include "translator/ptx/slots.h"

namespace gpusim::ptx {
namespace {

Uop stamp() { return {.op = Op::note, .a = kZeroSlot, .b = kZeroSlot, .aux = kNoteStamp}; }

Uop value_of(Slot slot) {
  return {.op = Op::note,
          .a = slot,
          .b = kZeroSlot,
          .aux = NoteField::pack(AccessKind::kLoad, AddressMode::kImmediate)};
}

bool waits(Op op) { return op == Op::cta_sync || op == Op::cta_reduce || op == Op::warp_sync; }

}  // namespace

bool is_value_note(const Uop& u) {
  return u.op == Op::note && u.aux != kNoteBlock && u.aux != kNoteStamp && u.e == 0;
}

void add_notes(DraftBlock& draft, Notes notes) {
  if (notes == Notes::kNone) return;
  const bool has_checks = notes == Notes::kChecks;
  std::vector<Uop> uops;
  std::vector<uint16_t> insns;
  if (!has_checks) {
    uops.assign(2, stamp());
    insns.assign(2, 0);
  }
  for (size_t i = 0; i < draft.uops.size(); ++i) {
    const Uop& u = draft.uops[i];
    const auto add = [&](const Uop& x) {
      uops.push_back(x);
      insns.push_back(draft.uop_insn[i]);
    };
    if (has_checks && waits(u.op)) {
      add(stamp());
      if (u.op == Op::warp_sync) {
        if (WarpFields::unpack(u.imm).mask_in_slot) add(value_of(u.c));
      } else {
        const BarrierFields f = BarrierFields::unpack(u.imm);
        if (f.barrier_in_slot) add(value_of(u.b));
        if (f.threads_in_slot) add(value_of(u.c));
      }
    }
    add(u);
    if (has_checks && waits(u.op)) add(stamp());
    if (has_checks && op_info(u.op).shape == Shape::kStI) add(value_of(u.d));
  }
  draft.uops = std::move(uops);
  draft.uop_insn = std::move(insns);
  // Of an ISA, that pass needs only which slot is zero.
  static const GuestIsa isa = [] {
    GuestIsa made{};
    made.roles.zero = kZeroSlot;
    return made;
  }();
  note_accesses(isa, draft, {.stamps = has_checks});
  // The aux of amo_fadd is more than a size.
  for (size_t i = 1; i < draft.uops.size(); ++i)
    if (draft.uops[i].op == Op::amo_fadd && draft.uops[i - 1].op == Op::note)
      draft.uops[i - 1].e = static_cast<uint8_t>(1u << (draft.uops[i].aux & 3));
}

}  // namespace gpusim::ptx
