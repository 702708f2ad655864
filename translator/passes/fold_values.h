// Constants and copies inside a block.
#pragma once
#include "translator/common/draft.h"
#include "translator/passes/operands.h"

namespace gpusim {

/// Replaces sources by what they are copies of and operations by cheaper ones of the same result:
/// constant operands become immediates, constant results constants, extensions of values already
/// below 2^32 (`zero_extended` at the block's start) copies. Removes nothing.
/// Returns whether a fact about the block's start was needed.
bool fold_values(const GuestIsa& isa, const SlotSet& zero_extended, DraftBlock& block);

}  // namespace gpusim
