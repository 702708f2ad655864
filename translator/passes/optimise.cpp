#include "translator/passes/optimise.h"

#include "translator/passes/block_graph.h"
#include "translator/passes/dead_values.h"
#include "translator/passes/flags_liveness.h"
#include "translator/passes/fold_values.h"
#include "translator/passes/fuse_compare_branch.h"
#include "translator/passes/fuse_compare_select.h"
#include "translator/passes/zero_extension.h"

namespace gpusim {
namespace {

// Blocks that are entered, or probably entered, otherwise than from the ends of other blocks:
// functions, what follows a call, and what no other block leads to.
std::vector<bool> find_roots(const std::vector<CodeBlock>& blocks,
                             const std::vector<Successors>& successors,
                             const std::function<bool(uint64_t pc)>& is_function) {
  std::vector<bool> has_predecessor(blocks.size()), root(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool calls = blocks[i].is_call();
    for (const int s : {successors[i].taken, successors[i].next}) {
      if (s < 0) continue;
      has_predecessor[static_cast<size_t>(s)] = true;
      if (calls) root[static_cast<size_t>(s)] = true;
    }
    if (is_function(blocks[i].draft.pc)) root[i] = true;
    if (calls && i + 1 < blocks.size()) root[i + 1] = true;
  }
  for (size_t i = 0; i < blocks.size(); ++i)
    if (!has_predecessor[i]) root[i] = true;
  return root;
}

}  // namespace

void optimise_blocks(const GuestIsa& isa, const OptimiseScope& scope,
                     std::vector<CodeBlock>& blocks) {
  for (CodeBlock& b : blocks) fold_values(isa, {}, b.draft);
  const std::vector<Successors> successors = find_successors(blocks);
  if (scope.whole_program) {
    const std::vector<bool> roots = find_roots(blocks, successors, scope.is_function);
    const std::vector<SlotSet> facts = find_zero_extended(isa, blocks, successors, roots);
    for (size_t i = 0; i < blocks.size(); ++i)
      if (fold_values(isa, facts[i], blocks[i].draft)) blocks[i].direct_entry_only = true;
  }
  for (CodeBlock& b : blocks) {
    fuse_compare_branch(isa, b.draft);
    fuse_compare_select(isa, b.draft);
  }
  if (scope.exact_flags) {
    for (CodeBlock& b : blocks) remove_dead_values(isa, VisibleFlags::kAlways, b);
    return;
  }
  const std::vector<bool> live = find_live_flags(isa, successors, scope.reads_flags, blocks);
  for (size_t i = 0; i < blocks.size(); ++i)
    remove_dead_values(isa, live[i] ? VisibleFlags::kAtEnd : VisibleFlags::kNever, blocks[i]);
}

}  // namespace gpusim
