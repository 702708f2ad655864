#include "translator/ptx/finish.h"

#include <bitset>

#include "device_sim/uir/warp.h"
#include "translator/common/link.h"
#include "translator/common/op_shape.h"
#include "translator/passes/block_graph.h"
#include "translator/ptx/memory_map.h"
#include "translator/ptx/slots.h"

namespace gpusim::ptx {
namespace {

using Slots = std::bitset<256>;

// Calls f(slot, reads, writes) for the slots that a micro-op names.
template <class F>
void for_slots(const Uop& u, F f) {
  const ShapeInfo& s = shape_of(u.op);
  const auto run = [&](const OperandUse& use, Slot first) {
    for (int k = 0; k < std::max(use.reads, use.writes); ++k)
      f(static_cast<Slot>(first + k), k < use.reads, k < use.writes);
  };
  run(s.d, u.d);
  run(s.a, u.a);
  run(s.b, u.b);
  run(s.c, u.c);
  run(s.e, u.e);
  if (s.fp_state) f(u.e, true, false);  // constant: all flags are set
}

// Whether it can go if nobody reads its result. State words do not change.
bool is_pure(const Uop& u) {
  const ShapeInfo& s = shape_of(u.op);
  return s.pure || s.fp_state;
}

void step_back(const Uop& u, Slots& live) {
  for_slots(u, [&](Slot s, bool, bool writes) {
    if (writes) live.reset(s);
  });
  for_slots(u, [&](Slot s, bool reads, bool) {
    if (reads) live.set(s);
  });
  if (u.op == Op::service)
    for (int k = 0; k < kCallSlotCount; ++k) live.set(static_cast<size_t>(kCallSlots + k));
}

bool is_dead(const Uop& u, const Slots& live) {
  if (!is_pure(u)) return false;
  if (u.op == Op::mov && u.d == u.a) return true;
  bool needed = false;
  for_slots(u, [&](Slot s, bool, bool writes) { needed |= writes && live.test(s); });
  return !needed;
}

void remove_dead(std::vector<CodeBlock>& blocks) {
  const std::vector<Successors> next = find_successors(blocks);
  std::vector<Slots> live_in(blocks.size());
  const auto live_out = [&](size_t k) {
    Slots live;
    if (next[k].indirect) live.set();  // it may go on anywhere
    for (const int s : {next[k].taken, next[k].next})
      if (s >= 0) live |= live_in[static_cast<size_t>(s)];
    return live;
  };
  // Dead micro-ops read nothing.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = blocks.size(); k-- > 0;) {
      Slots live = live_out(k);
      const std::vector<Uop>& uops = blocks[k].draft.uops;
      for (size_t i = uops.size(); i-- > 0;)
        if (!is_dead(uops[i], live)) step_back(uops[i], live);
      if (live == live_in[k]) continue;
      live_in[k] = live;
      changed = true;
    }
  }
  for (size_t k = 0; k < blocks.size(); ++k) {
    DraftBlock& draft = blocks[k].draft;
    Slots live = live_out(k);
    std::vector<Uop> kept;
    std::vector<uint16_t> insns;
    for (size_t i = draft.uops.size(); i-- > 0;) {
      if (is_dead(draft.uops[i], live)) continue;
      step_back(draft.uops[i], live);
      kept.push_back(draft.uops[i]);
      insns.push_back(draft.uop_insn[i]);
    }
    draft.uops.assign(kept.rbegin(), kept.rend());
    draft.uop_insn.assign(insns.rbegin(), insns.rend());
  }
}

}  // namespace

void finish(std::vector<CodeBlock> blocks, const std::map<uint64_t, Slot>& constants,
            uint32_t units, uint64_t entry, Notes notes, KernelCode& kernel) {
  remove_dead(blocks);
  for (CodeBlock& b : blocks) add_notes(b.draft, notes);
  Slots used;
  used.set(kZeroSlot);
  for (const CodeBlock& b : blocks)
    for (const Uop& u : b.draft.uops) {
      for_slots(u, [&](Slot s, bool, bool) { used.set(s); });
      if (u.op == Op::service)
        for (int k = 0; k < kCallSlotCount; ++k) used.set(static_cast<size_t>(kCallSlots + k));
    }
  int number[256];
  Module& m = kernel.module;
  for (int s = 0; s < 256; ++s)
    number[s] = used.test(static_cast<size_t>(s)) ? static_cast<int>(m.slot_count++) : kNoSlot;
  const auto renumber = [&](Slot& s) { s = static_cast<Slot>(number[s]); };
  for (CodeBlock& b : blocks)
    for (Uop& u : b.draft.uops) {
      const ShapeInfo& s = shape_of(u.op);
      const auto names = [](const OperandUse& use) { return use.reads != 0 || use.writes != 0; };
      if (names(s.d)) renumber(u.d);
      if (names(s.a)) renumber(u.a);
      if (names(s.b)) renumber(u.b);
      if (names(s.c)) renumber(u.c);
      if (names(s.e) || s.fp_state) renumber(u.e);
    }

  m.isa = "ptx";
  m.warp_size = kWarpLanes;
  const auto initial = [&](int slot, uint64_t value) {
    if (number[slot] != kNoSlot && value != 0)
      m.initial_values.push_back({static_cast<Slot>(number[slot]), value});
  };
  initial(kOneSlot, 1);
  for (int k = 0; k < kFpSlotCount; ++k) initial(kFpSlots + k, fp_state(k));
  for (const auto& [value, slot] : constants) initial(slot, value);
  kernel.param_base = number[kParamBase];
  for (int k = 0; k < static_cast<int>(Special::kCount); ++k)
    kernel.specials[k] = number[special_slot(static_cast<Special>(k))];
  for (int k = 0; k < kCallSlotCount; ++k) kernel.call_slots[k] = number[kCallSlots + k];

  m.code.text_base = kCodeBase;
  m.entry = entry;
  m.code.pc_shift = 2;
  m.code.uop_at.assign(units, kNoUop);
  m.code.insn_class.assign(units, CodeMap::kNotCode);
  link_blocks(std::move(blocks), m);
  // Micro-ops of blocks without instructions.
  for (uint16_t& insn : m.uop_insn)
    if (insn == 0xffff) insn = 0;
}

}  // namespace gpusim::ptx
