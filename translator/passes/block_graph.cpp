#include "translator/passes/block_graph.h"

#include <algorithm>

namespace gpusim {

std::vector<Successors> find_successors(const std::vector<CodeBlock>& blocks) {
  const auto find = [&](uint64_t pc) {
    const auto it =
        std::lower_bound(blocks.begin(), blocks.end(), pc,
                         [](const CodeBlock& b, uint64_t at) { return b.draft.pc < at; });
    return it != blocks.end() && it->draft.pc == pc ? static_cast<int>(it - blocks.begin())
                                                    : Successors::kOutside;
  };
  std::vector<Successors> out(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const CodeBlock& b = blocks[i];
    if (b.has_target()) out[i].taken = find(b.draft.end.taken_pc);
    if (!b.draft.end.present || b.falls_through()) out[i].next = find(b.next_pc);
    out[i].indirect = b.draft.end.present && b.draft.uops.back().op == Op::jmp_reg;
  }
  return out;
}

}  // namespace gpusim
