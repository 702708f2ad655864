// Blocks between translation and linking.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "translator/common/block_builder.h"
#include "translator/common/guest_isa.h"
#include "translator/common/limits.h"
#include "translator/common/op_shape.h"

namespace gpusim {

/// A translated block whose targets are still guest addresses.
struct CodeBlock {
  DraftBlock draft;  // draft.uops' last one is the end, if draft.end.present
  uint64_t next_pc = 0;
  // Where instructions differ in length: as Module::insn_offsets has it.
  std::vector<uint16_t> insn_offsets;
  bool unknown = false;  // its last instruction is one that the translator does not know

  // Its micro-ops rely on facts that hold only when it is entered by direct flow. An indirect jump
  // there gets a copy that doesn't (Translator::block_at).
  bool direct_entry_only = false;

  // Values that only one way out of a conditional end needs, computed on that way.
  std::vector<Uop> on_taken, on_fall_through;

  bool falls_through() const {
    return draft.end.present && shape_of(draft.uops.back().op).falls_through;
  }
  bool has_target() const { return draft.end.present && shape_of(draft.uops.back().op).has_target; }
  /// Whether it ends in a call, which returns to next_pc.
  bool is_call() const {
    const Op op = draft.end.present ? draft.uops.back().op : Op::link;
    return (op == Op::jmp || op == Op::jmp_reg) &&
           static_cast<JumpHint>(draft.uops.back().aux) == JumpHint::kCall;
  }
};

/// How the machine behaves to the guest.
struct Guise {
  uint32_t cpu = 0;  // its number in GuestIsa::cpus
  bool has_simulated_time = false;
  bool has_journals = false;
};

/// The code of a program from an address on: at least the instruction there, whole. Empty where none
/// can begin.
using CodeAt = std::function<std::span<const uint8_t>(uint64_t pc)>;

/// Translates from pc, where there is code, to the block's end, a limit, or the next address for
/// which `starts_block`.
CodeBlock form_block(const GuestIsa& isa, uint64_t pc, const CodeAt& code_at,
                     const std::function<bool(uint64_t pc)>& starts_block,
                     const Guise& guise = {});

}  // namespace gpusim
