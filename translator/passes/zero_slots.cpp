#include "translator/passes/zero_slots.h"

#include <algorithm>
#include <unordered_set>

#include "translator/passes/dead_values.h"
#include "translator/passes/renumber_slots.h"

namespace gpusim {
namespace {

// Whether the micro-op's only effect is to write zero to d, provided that `zero` slots hold it.
bool writes_zero(const GuestIsa& isa, const SlotSet& zero, const Uop& u) {
  if (u.op == Op::konst) return u.imm == 0;
  return u.op == Op::mov && (u.a == isa.roles.zero || zero[u.a]);
}

SlotSet slots_that_start_as_zero(const GuestIsa& isa) {
  SlotSet slots;
  for (int s = 0; s < isa.slot_count; ++s)
    slots.set(static_cast<size_t>(s), !isa.roles.is_temp(static_cast<Slot>(s)));
  slots.reset(isa.roles.zero);
  slots.reset(isa.roles.sink);
  if (isa.roles.has_flags()) slots.reset(static_cast<size_t>(isa.roles.flags));
  for (const InitialValue& v : isa.initial_values) slots.reset(v.slot);
  // The host writes these.
  AbiSlots abi = isa.abi;
  for_each_abi_slot(abi, [&](int& s) {
    if (s != kNoSlot) slots.reset(static_cast<size_t>(s));
  });
  return slots;
}

}  // namespace

SlotSet find_zero_slots(const GuestIsa& isa, const std::vector<CodeBlock>& blocks) {
  SlotSet zero = slots_that_start_as_zero(isa);
  for (bool changed = true; changed;) {
    changed = false;
    const auto drop = [&](size_t slot) {
      changed |= zero[slot];
      zero.reset(slot);
    };
    for (const CodeBlock& b : blocks)
      for (const Uop& u : b.draft.uops) {
        if (writes_zero(isa, zero, u)) continue;
        for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
          // A run of slots has to stay together.
          const int first_kept = reads > 1 || writes > 1 ? 0 : (writes ? 0 : 1);
          for (int i = first_kept; i < std::max(reads, writes); ++i)
            drop(static_cast<size_t>(s + i));
        });
      }
  }
  return zero;
}

SlotSet find_unused_slots(const GuestIsa& isa, const Guise& guise,
                          std::span<const std::span<const uint8_t>> code) {
  const GuestIsa::RareSlots& rare = isa.rare_slots;
  BlockBuilder builder = isa.make_builder();
  builder.set_cpu(guise.cpu);
  builder.set_has_simulated_time(guise.has_simulated_time);
  std::vector<CodeBlock> blocks(1);
  DraftBlock& all = blocks.front().draft;
  // One instruction after the other, whether or not control comes there. Most are there many times.
  std::unordered_set<uint32_t> seen;
  for (std::span<const uint8_t> bytes : code)
    while (const uint32_t length = isa.insn_length(bytes)) {
      const GuestInsn insn{0, bytes.first(length)};
      bytes = bytes.subspan(length);
      const uint32_t word = insn.word();
      if (!rare.may_use(word) || !seen.insert(word).second) continue;
      builder.begin_block(0);
      isa.translate(insn, builder);
      const DraftBlock& one = builder.draft();
      all.uops.insert(all.uops.end(), one.uops.begin(), one.uops.end());
      all.uop_insn.insert(all.uop_insn.end(), one.uop_insn.begin(), one.uop_insn.end());
    }
  remove_sink_writes(isa, all);
  const SlotSet zero = find_zero_slots(isa, blocks), used = used_slots(blocks);
  SlotSet unused;
  for (const Slot s : rare.slots) unused.set(s, zero[s] || !used[s]);
  return unused;
}

void replace_zero_slots(const GuestIsa& isa, const SlotSet& zero_slots, DraftBlock& draft) {
  size_t kept = 0;
  for (size_t i = 0; i < draft.uops.size(); ++i) {
    Uop u = draft.uops[i];
    if ((u.op == Op::konst || u.op == Op::mov) && zero_slots[u.d] &&
        writes_zero(isa, zero_slots, u))
      continue;
    for_each_operand(u, [&](Slot& s, uint8_t reads, uint8_t writes) {
      if (reads == 1 && writes == 0 && zero_slots[s]) s = isa.roles.zero;
    });
    draft.uops[kept] = u;
    draft.uop_insn[kept++] = draft.uop_insn[i];
  }
  draft.uops.resize(kept);
  draft.uop_insn.resize(kept);
}

}  // namespace gpusim
