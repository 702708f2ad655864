// Flags that nobody reads, or only on one way out of a block.
#pragma once
#include <vector>

#include "translator/passes/block_graph.h"

namespace gpusim {

/// Per block: whether flags at its end may be read. Where only the less travelled way out of a
/// conditional end reads them, their computation moves to that way (CodeBlock::on_taken,
/// on_fall_through), and they count as unread at the end.
/// Behind indirect jumps and outside of `blocks` flags are read. An ISA without flags has none.
std::vector<bool> find_live_flags(const GuestIsa& isa, const std::vector<Successors>& successors,
                                  std::vector<CodeBlock>& blocks);

}  // namespace gpusim
