// Micro-ops that write a journal of what the program does (device_sim/uir/journal.h).
#pragma once
#include <span>

#include "device_sim/uir/journal.h"
#include "translator/common/draft.h"

namespace gpusim {

/// aux of a note with kNoBytes: the word is an argument of a function, or its result.
inline constexpr uint8_t kNoteValue = static_cast<uint8_t>(AccessKind::kStore) << 2;

/// A function whose arguments are noted where it begins, and whose result where it returns.
struct NotedFunction {
  uint64_t begin, end;
  uint8_t arguments;  // a bit for each integer argument
};

struct NoteOptions {
  bool accesses = true;
  bool clocks = false;  // one of the core's clock behind that of the block
  bool stamps = false;  // one behind each fence that says in which order cores came to fences
  // One before a call or an indirect jump that ends the block, of the stack pointer.
  bool stack_pointers = false;
  bool exchanges = false;                         // kStoresByExchange
  std::span<const NotedFunction> functions = {};  // by `begin`
};

/// Beside the bytes of the note of an atomic operation: an exchange of which nobody uses the old
/// value, which is how GCC stores with release order on RISC-V.
inline constexpr uint8_t kStoresByExchange = 0x80;

/// Puts a note at the block's start and one before each access to memory. Accesses of one
/// instruction to neighbouring bytes through the same register are one: a pair, a vector.
/// To be run after all passes that optimise, before slots are renumbered.
void note_accesses(const GuestIsa& isa, DraftBlock& draft, const NoteOptions& options = {});

}  // namespace gpusim
