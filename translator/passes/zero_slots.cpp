#include "translator/passes/zero_slots.h"

#include <algorithm>
#include <unordered_map>

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

// Whether it does no harm that the looks differ. Where instructions have several lengths, the
// halves of long ones look like any others, vector code among them, in all but small programs. A
// slot that only they use is zero and takes room. But by the thread pointer and the core's number
// the host tells C libraries' programs from those for many cores.
bool may_differ(const GuestIsa& isa, const SlotSet& unused, const SlotSet& other) {
  if (isa.has_one_length()) return false;
  for (const int slot : {isa.abi.thread_pointer, isa.abi.core_id})
    if (slot != kNoSlot && unused[static_cast<size_t>(slot)] != other[static_cast<size_t>(slot)])
      return false;
  return true;
}

}  // namespace

SlotSet find_zero_slots(const GuestIsa& isa, const std::vector<CodeBlock>& blocks,
                        const SlotSet& candidates) {
  SlotSet zero = slots_that_start_as_zero(isa) & candidates;
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

std::optional<SlotSet> find_unused_slots(const GuestIsa& isa, const Guise& guise,
                                         std::span<const CodePiece> code) {
  // Most words are there many times. True: as an instruction.
  std::unordered_map<uint32_t, bool> words;
  for (const CodePiece& piece : code)
    for (size_t at = 0, next = 0; at < piece.size_bytes; at += isa.insn_align) {
      const std::span<const uint8_t> rest = piece.bytes.subspan(at);
      const uint32_t length = isa.insn_length(rest);
      const bool is_insn = at == next && !piece.is_data;
      if (at == next) next += std::max(length, isa.insn_align);
      if (length == 0) continue;
      const uint32_t word = GuestInsn{0, rest.first(length)}.word();
      if (isa.rare_slots.may_use(word)) words[word] |= is_insn;
    }
  BlockBuilder builder = isa.make_builder();
  builder.set_cpu(guise.cpu);
  builder.set_has_simulated_time(guise.has_simulated_time);
  std::vector<CodeBlock> blocks(1);
  DraftBlock& all = blocks.front().draft;
  // What else writes the others is not among these words.
  SlotSet rare;
  for (const Slot s : isa.rare_slots.slots) rare.set(s);
  const auto unused = [&](bool is_insn) {
    for (const auto& [word, is] : words) {
      if (is != is_insn) continue;
      const auto* bytes = reinterpret_cast<const uint8_t*>(&word);
      const uint32_t length = isa.insn_length({bytes, sizeof word});
      builder.begin_block(0);
      isa.translate({0, {bytes, length}}, builder);
      const DraftBlock& one = builder.draft();
      all.uops.insert(all.uops.end(), one.uops.begin(), one.uops.end());
      all.uop_insn.insert(all.uop_insn.end(), one.uop_insn.begin(), one.uop_insn.end());
    }
    remove_sink_writes(isa, all);
    const SlotSet zero = find_zero_slots(isa, blocks, rare), used = used_slots(blocks);
    return rare & (zero | ~used);
  };
  const SlotSet by_insns = unused(true), by_all = unused(false);
  if (by_insns != by_all && !may_differ(isa, by_insns, by_all)) return std::nullopt;
  return by_all;
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
