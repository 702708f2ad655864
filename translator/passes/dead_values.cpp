#include "translator/passes/dead_values.h"

#include "translator/passes/operands.h"

namespace gpusim {
namespace {

bool may_stop(const Uop& u) {
  const ShapeInfo& info = shape_of(u.op);
  return info.ends_block || (!info.pure && !info.fp_state && u.op != Op::fence);
}

void keep_only(const std::vector<bool>& keep, DraftBlock& draft) {
  size_t kept = 0;
  for (size_t i = 0; i < draft.uops.size(); ++i) {
    if (!keep[i]) continue;
    draft.uops[kept] = draft.uops[i];
    draft.uop_insn[kept++] = draft.uop_insn[i];
  }
  draft.uops.resize(kept);
  draft.uop_insn.resize(kept);
}

}  // namespace

void remove_sink_writes(const GuestIsa& isa, DraftBlock& draft) {
  std::vector<bool> keep(draft.uops.size());
  for (size_t i = 0; i < keep.size(); ++i) {
    const Uop& u = draft.uops[i];
    keep[i] = !shape_of(u.op).pure || u.d != isa.roles.sink;
  }
  keep_only(keep, draft);
}

void remove_dead_values(const GuestIsa& isa, VisibleFlags flags, CodeBlock& block) {
  const SlotRoles& roles = isa.roles;
  SlotSet visible;  // to whoever looks at a stopped core
  for (int s = 0; s < isa.slot_count; ++s)
    visible.set(static_cast<size_t>(s), !roles.is_temp(static_cast<Slot>(s)));
  visible.reset(roles.sink);
  visible.reset(roles.zero);
  const auto show_flags = [&](SlotSet& slots, bool are_visible) {
    if (roles.has_flags()) slots.set(static_cast<size_t>(roles.flags), are_visible);
  };
  show_flags(visible, flags == VisibleFlags::kAlways);

  SlotSet live = visible;
  show_flags(live, flags != VisibleFlags::kNever);
  const auto add_reads = [&](const Uop& u) {
    for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t) {
      for (int i = 0; i < reads; ++i) live.set(static_cast<size_t>(s + i));
    });
  };
  const auto remove_writes = [&](const Uop& u) {
    for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
      for (int i = reads; i < writes; ++i) live.reset(static_cast<size_t>(s + i));
    });
  };
  for (const auto* stub : {&block.on_taken, &block.on_fall_through}) {
    const SlotSet live_elsewhere = live;
    for (size_t i = stub->size(); i-- > 0;) {
      remove_writes((*stub)[i]);
      add_reads((*stub)[i]);
    }
    live |= live_elsewhere;
  }

  DraftBlock& draft = block.draft;
  std::vector<bool> keep(draft.uops.size(), true);
  for (size_t i = draft.uops.size(); i-- > 0;) {
    const Uop& u = draft.uops[i];
    const bool pure = shape_of(u.op).pure;
    if (pure && (!live[u.d] || (u.op == Op::mov && u.d == u.a))) {
      keep[i] = false;
      continue;
    }
    remove_writes(u);
    if (may_stop(u)) live |= visible;
    add_reads(u);
  }
  keep_only(keep, draft);
}

}  // namespace gpusim
