#include "translator/passes/note_accesses.h"

#include <algorithm>
#include <optional>

#include "translator/passes/operands.h"

namespace gpusim {
namespace {

struct NotedAccess {
  AccessKind kind;
  AddressMode mode = AddressMode::kImmediate;
  uint8_t bytes;
};

std::optional<NotedAccess> access_of(const Uop& u) {
  const auto sized = [&] { return static_cast<uint8_t>(1u << u.aux); };
  switch (op_info(u.op).shape) {
    case Shape::kLdI:
    case Shape::kLdX:
    case Shape::kLdW: {
      const AccessInfo info = access_info(u.op);
      return NotedAccess{AccessKind::kLoad, info.mode, static_cast<uint8_t>(info.size)};
    }
    case Shape::kStI:
    case Shape::kStX:
    case Shape::kStW: {
      const AccessInfo info = access_info(u.op);
      return NotedAccess{AccessKind::kStore, info.mode, static_cast<uint8_t>(info.size)};
    }
    case Shape::kAmo:
    case Shape::kCas:
    case Shape::kStx: return NotedAccess{.kind = AccessKind::kAtomic, .bytes = sized()};
    case Shape::kCas128:
    case Shape::kStx128: return NotedAccess{.kind = AccessKind::kAtomic, .bytes = 16};
    default: return std::nullopt;
  }
}

// Immediates of atomics mean other things.
uint64_t offset_of(const Uop& u, const NotedAccess& access) {
  return access.kind == AccessKind::kAtomic ? 0 : u.imm;
}

// Calls, returns, and jumps that may be either.
bool leaves_function(const Uop& u) {
  return u.op == Op::jmp_reg ||
         (u.op == Op::jmp && static_cast<JumpHint>(u.aux) == JumpHint::kCall);
}

class Noter {
 public:
  Noter(const GuestIsa& isa, DraftBlock& draft, const NoteOptions& options)
      : isa_(isa), draft_(draft), options_(options) {}

  void run() {
    add({.op = Op::note, .a = isa_.roles.zero, .b = isa_.roles.zero, .aux = kNoteBlock}, 0);
    if (options_.clocks)
      add({.op = Op::note, .a = isa_.roles.zero, .b = isa_.roles.zero, .aux = kNoteClock}, 0);
    const NotedFunction* const function = function_at(draft_.pc);
    if (function && function->begin == draft_.pc)
      for (uint32_t i = 0; i < std::size(isa_.abi.call_args); ++i)
        if (function->arguments >> i & 1) add(value_note(isa_.abi.call_args[i]), 0);
    for (size_t i = 0; i < draft_.uops.size(); ++i) {
      const Uop& u = draft_.uops[i];
      const uint16_t insn = draft_.uop_insn[i];
      if (last_ && insn_ != insn) last_.reset();
      if (options_.accesses)
        if (auto access = access_of(u)) {
          if (options_.exchanges && is_store_by_exchange(i)) access->bytes |= kStoresByExchange;
          note(u, insn, *access);
        }
      if (options_.stack_pointers && i + 1 == draft_.uops.size() && leaves_function(u))
        add({.op = Op::note,
             .a = static_cast<Slot>(isa_.abi.stack_pointer),
             .b = isa_.roles.zero,
             .e = kNoBytes},
            insn);
      if (function && u.op == Op::jmp_reg && static_cast<JumpHint>(u.aux) == JumpHint::kReturn)
        add(value_note(isa_.abi.call_args[0]), insn);
      if (last_ && writes_slot(u, base_)) last_.reset();
      add(u, insn);
      if (options_.stamps && u.op == Op::fence)
        add({.op = Op::note, .a = isa_.roles.zero, .b = isa_.roles.zero, .aux = kNoteStamp}, insn);
    }
    draft_.uops = std::move(uops_);
    draft_.uop_insn = std::move(uop_insn_);
  }

 private:
  const NotedFunction* function_at(uint64_t pc) const {
    const auto behind = std::ranges::upper_bound(options_.functions, pc, {}, &NotedFunction::begin);
    if (behind == options_.functions.begin()) return nullptr;
    return pc < behind[-1].end ? &behind[-1] : nullptr;
  }

  Uop value_note(int slot) const {
    return {.op = Op::note,
            .a = static_cast<Slot>(slot),
            .b = isa_.roles.zero,
            .e = kNoBytes,
            .aux = kNoteValue};
  }

  // GCC stores so on RISC-V, with the order that a plain store does not have. The old value goes
  // nowhere, or to a temporary that its own instruction does not read.
  bool is_store_by_exchange(size_t i) const {
    const Uop& u = draft_.uops[i];
    if (u.op != Op::amo_swp) return false;
    if (u.d == isa_.roles.sink) return true;
    if (!isa_.roles.is_temp(u.d)) return false;
    for (size_t k = i + 1; k < draft_.uops.size() && draft_.uop_insn[k] == draft_.uop_insn[i]; ++k)
      if (reads_slot(draft_.uops[k], u.d)) return false;
    return true;
  }

  void note(const Uop& u, uint16_t insn, const NotedAccess& access) {
    const uint64_t offset = offset_of(u, access);
    const bool is_plain =
        access.mode == AddressMode::kImmediate && access.kind != AccessKind::kAtomic;
    if (last_ && is_plain && kind_ == access.kind && base_ == u.a && end_ == offset) {
      Uop& before = uops_[*last_];
      const int bytes = NoteField::bytes(before) + access.bytes;
      if (bytes <= NoteField::kMaxBytes) {
        before.e = static_cast<uint8_t>(bytes);
        end_ += access.bytes;
        return;
      }
    }
    last_.reset();
    if (is_plain) last_ = uops_.size();
    insn_ = insn;
    kind_ = access.kind;
    base_ = u.a;
    end_ = offset + access.bytes;
    add({.op = Op::note,
         .a = u.a,
         .b = access.mode == AddressMode::kImmediate ? isa_.roles.zero : u.b,
         .e = access.bytes,
         .aux = NoteField::pack(access.kind, access.mode),
         .imm = offset},
        insn);
  }

  void add(const Uop& u, uint16_t insn) {
    uops_.push_back(u);
    uop_insn_.push_back(insn);
  }

  const GuestIsa& isa_;
  DraftBlock& draft_;
  const NoteOptions options_;
  std::vector<Uop> uops_;
  std::vector<uint16_t> uop_insn_;
  // The note that the next access may be part of: its place, and the access so far.
  std::optional<size_t> last_;
  uint16_t insn_ = 0;
  AccessKind kind_{};
  Slot base_ = 0;
  uint64_t end_ = 0;
};

}  // namespace

void note_accesses(const GuestIsa& isa, DraftBlock& draft, const NoteOptions& options) {
  Noter(isa, draft, options).run();
}

}  // namespace gpusim
