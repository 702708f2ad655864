// Which slots hold values below 2^32, so that extending them again can be left out.
#pragma once
#include <vector>

#include "translator/passes/block_graph.h"
#include "translator/passes/operands.h"

namespace gpusim {

/// Whether a micro-op's result (its d) is below 2^32, given which slots are.
bool result_is_zero_extended(const Uop& u, const SlotSet& zero_extended);

/// Brings the set from before a micro-op to behind it.
void step_zero_extended(const Uop& u, SlotSet& zero_extended);

/// Per block: slots that are below 2^32 at its start whenever it is entered by direct flow.
/// `is_root[i]`: block i is entered in other ways, about which nothing is known.
std::vector<SlotSet> find_zero_extended(const GuestIsa& isa, const std::vector<CodeBlock>& blocks,
                                        const std::vector<Successors>& successors,
                                        const std::vector<bool>& is_root);

}  // namespace gpusim
