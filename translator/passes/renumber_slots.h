// Canonical slots to the module's: those that a program really uses become 0 .. n-1.
#pragma once
#include <vector>

#include "device_sim/uir/module.h"
#include "translator/common/draft.h"
#include "translator/passes/operands.h"

namespace gpusim {

/// Per canonical slot: the module's slot, or kNoSlot.
using SlotMap = std::vector<int>;

/// Slots that micro-ops of the blocks name.
SlotSet used_slots(const std::vector<CodeBlock>& blocks);

/// Dense and in canonical order, so that runs of consecutive slots stay consecutive. Adds the zero
/// slot and what the host needs: the stack pointer and, if `has_syscalls`, the registers of system
/// calls.
SlotMap make_slot_map(const GuestIsa& isa, SlotSet used, bool has_syscalls);

/// Fills slot_count, slot_names, initial_values and abi.
void describe_slots(const GuestIsa& isa, const SlotMap& map, Module& module);

/// The map that describe_slots() left in the module. Error-free for a module that was checked.
SlotMap recover_slot_map(const GuestIsa& isa, const Module& module);

/// Renumbers in place. False, with the block unchanged behind it, at an instruction that needs a
/// slot the module lacks: the block then ends there with a trap (kUndefined).
bool renumber_slots(const SlotMap& map, CodeBlock& block);

}  // namespace gpusim
