#include "translator/passes/renumber_slots.h"

#include <algorithm>
#include <unordered_map>

#include "translator/passes/fuse_compare_select.h"

namespace gpusim {
namespace {

bool is_mapped(const SlotMap& map, const Uop& u) {
  bool ok = true;
  for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
    for (int i = 0; i < std::max(reads, writes); ++i)
      ok &= static_cast<size_t>(s + i) < map.size() && map[static_cast<size_t>(s + i)] != kNoSlot;
  });
  return ok;
}

void renumber(const SlotMap& map, std::vector<Uop>& uops) {
  for (Uop& u : uops) {
    clear_unused_fields(u);
    for_each_operand(u, [&](Slot& s, uint8_t, uint8_t) { s = static_cast<Slot>(map[s]); });
  }
}

// Cuts the block before the instruction that uop `at` belongs to and traps there.
void cut_with_trap(CodeBlock& block, size_t at) {
  DraftBlock& draft = block.draft;
  const uint16_t insn = draft.uop_insn[at];
  while (at > 0 && draft.uop_insn[at - 1] == insn) --at;
  draft.uops.resize(at);
  draft.uop_insn.resize(at);
  draft.classes.resize(insn + size_t{1});
  if (!block.insn_offsets.empty()) block.insn_offsets.resize(draft.classes.size() + 1);
  draft.uops.push_back(Uop{.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kUndefined)});
  draft.uop_insn.push_back(insn);
  draft.end = {.present = true, .taken_pc = 0};
  block.on_taken.clear();
  block.on_fall_through.clear();
}

}  // namespace

SlotSet used_slots(const std::vector<CodeBlock>& blocks) {
  SlotSet used;
  for (const CodeBlock& b : blocks)
    for (const Uop& u : b.draft.uops)
      for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
        for (int i = 0; i < std::max(reads, writes); ++i) used.set(static_cast<size_t>(s + i));
      });
  return used;
}

SlotMap make_slot_map(const GuestIsa& isa, SlotSet used, bool has_syscalls) {
  const auto keep = [&](int slot) {
    if (slot != kNoSlot) used.set(static_cast<size_t>(slot));
  };
  keep(isa.roles.zero);
  keep(isa.abi.stack_pointer);
  keep(isa.abi.link);
  keep(isa.abi.global_pointer);
  for (int i = 0; i < kSelectTemps && isa.roles.has_flags(); ++i) keep(select_temp(isa.roles, i));
  if (has_syscalls) {
    keep(isa.abi.syscall_number);
    keep(isa.abi.syscall_result);
    for (const int s : isa.abi.syscall_args) keep(s);
  }
  SlotMap map(static_cast<size_t>(isa.slot_count), kNoSlot);
  int next = 0;
  for (size_t s = 0; s < map.size(); ++s)
    if (used[s]) map[s] = next++;
  return map;
}

void describe_slots(const GuestIsa& isa, const SlotMap& map, Module& module) {
  module.slot_names.clear();
  module.initial_values.clear();
  for (size_t s = 0; s < map.size(); ++s)
    if (map[s] != kNoSlot)
      module.slot_names.push_back({static_cast<Slot>(map[s]), isa.slot_name(static_cast<int>(s))});
  module.slot_count = static_cast<uint32_t>(module.slot_names.size());
  for (const InitialValue& v : isa.initial_values)
    if (map[v.slot] != kNoSlot)
      module.initial_values.push_back({static_cast<Slot>(map[v.slot]), v.value});
  module.abi = isa.abi;
  for_each_abi_slot(module.abi, [&](int& slot) {
    if (slot != kNoSlot) slot = map[static_cast<size_t>(slot)];
  });
}

SlotMap recover_slot_map(const GuestIsa& isa, const Module& module) {
  std::unordered_map<std::string, int> by_name;
  for (const SlotName& n : module.slot_names) by_name[n.name] = n.slot;
  SlotMap map(static_cast<size_t>(isa.slot_count), kNoSlot);
  for (size_t s = 0; s < map.size(); ++s) {
    const auto found = by_name.find(isa.slot_name(static_cast<int>(s)));
    if (found != by_name.end()) map[s] = found->second;
  }
  return map;
}

bool renumber_slots(const SlotMap& map, CodeBlock& block) {
  bool whole = true;
  std::vector<Uop>& uops = block.draft.uops;
  for (size_t i = 0; i < uops.size(); ++i)
    if (!is_mapped(map, uops[i])) {
      cut_with_trap(block, i);
      whole = false;
      break;
    }
  renumber(map, uops);
  renumber(map, block.on_taken);
  renumber(map, block.on_fall_through);
  return whole;
}

}  // namespace gpusim
