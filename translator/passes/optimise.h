// The order in which the passes run.
#pragma once
#include <functional>
#include <vector>

#include "translator/common/draft.h"

namespace gpusim {

struct OptimiseScope {
  // The blocks are the whole program: what holds on all direct ways into a block holds in it,
  // unless it can be entered in other ways. Otherwise nothing is known about how blocks are
  // entered.
  bool whole_program = false;
  std::function<bool(uint64_t pc)> is_function;  // entered from anywhere
  // Whether the program may read flags behind an address outside of the blocks, where it is known.
  std::function<bool(uint64_t pc)> reads_flags;
  // The guest looks at flags where it faults (signal handlers): they are exact there, too.
  bool exact_flags = false;
};

/// Improves blocks, sorted by pc, in place.
void optimise_blocks(const GuestIsa& isa, const OptimiseScope& scope,
                     std::vector<CodeBlock>& blocks);

}  // namespace gpusim
