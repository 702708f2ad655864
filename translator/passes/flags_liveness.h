// Flags that nobody reads, or only on one way out of a block.
#pragma once
#include <functional>
#include <vector>

#include "translator/passes/block_graph.h"

namespace gpusim {

/// Per block: whether flags at its end may be read. Where only the less travelled way out of a
/// conditional end reads them, their computation moves to that way (CodeBlock::on_taken,
/// on_fall_through), and they count as unread at the end.
/// Behind indirect jumps flags are read, and outside of `blocks` unless `reads_flags` says
/// otherwise. An ISA without flags has none.
std::vector<bool> find_live_flags(const GuestIsa& isa, const std::vector<Successors>& successors,
                                  const std::function<bool(uint64_t pc)>& reads_flags,
                                  std::vector<CodeBlock>& blocks);

/// What a block does with flags first.
enum class FlagsUse : uint8_t { kPasses, kReads, kWrites };
FlagsUse first_use_of_flags(const GuestIsa& isa, const CodeBlock& block);

}  // namespace gpusim
