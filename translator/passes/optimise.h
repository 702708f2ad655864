// The order in which the passes run.
#pragma once
#include <vector>

#include "translator/common/draft.h"

namespace gpusim {

/// Improves blocks in place. `whole_program`: the blocks are all there is, so what is dead behind
/// their direct successors is dead; otherwise everything is live where a block is left.
void optimise_blocks(const GuestIsa& isa, std::vector<CodeBlock>& blocks, bool whole_program);

}  // namespace gpusim
