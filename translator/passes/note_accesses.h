// Micro-ops that write a journal of what the program does (device_sim/uir/journal.h).
#pragma once
#include "translator/common/draft.h"

namespace gpusim {

/// Puts a note at the block's start and one before each access to memory. Accesses of one
/// instruction to neighbouring bytes through the same register are one: a pair, a vector.
/// `stamps`: one behind each fence, too, that says in which order cores came to fences.
/// To be run after all passes that optimise, before slots are renumbered.
void note_accesses(const GuestIsa& isa, DraftBlock& draft, bool stamps = false);

}  // namespace gpusim
