// Micro-ops that write a journal of what the program does (device_sim/uir/journal.h).
#pragma once
#include "translator/common/draft.h"

namespace gpusim {

struct NoteOptions {
  bool accesses = true;
  bool stamps = false;  // one behind each fence that says in which order cores came to fences
  // One before a call or an indirect jump that ends the block, of the stack pointer.
  bool stack_pointers = false;
};

/// Puts a note at the block's start and one before each access to memory. Accesses of one
/// instruction to neighbouring bytes through the same register are one: a pair, a vector.
/// To be run after all passes that optimise, before slots are renumbered.
void note_accesses(const GuestIsa& isa, DraftBlock& draft, const NoteOptions& options = {});

}  // namespace gpusim
