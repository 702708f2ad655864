// Registers that are zero throughout a program, such as the upper halves of vector registers that
// it only uses for scalar floating point.
#pragma once
#include <vector>

#include "translator/common/draft.h"
#include "translator/passes/operands.h"

namespace gpusim {

/// Slots that start as zero and are never given anything else, by the blocks or by the host.
SlotSet find_zero_slots(const GuestIsa& isa, const std::vector<CodeBlock>& blocks);

/// Reads of these slots become reads of the ISA's zero slot; writes of zero to them are removed.
/// Other writes stay.
void replace_zero_slots(const GuestIsa& isa, const SlotSet& zero_slots, DraftBlock& draft);

}  // namespace gpusim
