#include "translator/common/block_former.h"

#include <algorithm>

#include "translator/passes/dead_values.h"

namespace gpusim {

BlockFormer::BlockFormer(const GuestIsa& isa, const Guise& guise, CodeAt code_at,
                         std::function<bool(uint64_t)> starts_block, size_t most)
    : isa_(isa),
      guise_(guise),
      code_at_(std::move(code_at)),
      starts_block_(std::move(starts_block)),
      most_(most) {}

void BlockFormer::add(uint64_t pc) {
  if (!seen_.insert(pc).second) return;
  blocks_.push_back(form(pc));
  want_successors(blocks_.back());
}

void BlockFormer::add_unless_unknown(uint64_t pc) {
  if (seen_.contains(pc)) return;
  CodeBlock block = form(pc);
  if (block.unknown && block.draft.classes.size() == 1) return;
  seen_.insert(pc);
  want_successors(block);
  blocks_.push_back(std::move(block));
}

std::vector<CodeBlock> BlockFormer::finish(const std::function<bool(uint64_t)>& exists) {
  while (!wanted_.empty() && blocks_.size() < most_) {
    const uint64_t pc = is_whole() ? wanted_.back() : wanted_.front();
    is_whole() ? wanted_.pop_back() : wanted_.pop_front();
    if (!exists(pc) && has_insn(pc)) add(pc);
  }
  std::sort(blocks_.begin(), blocks_.end(),
            [](const CodeBlock& a, const CodeBlock& b) { return a.draft.pc < b.draft.pc; });
  return std::move(blocks_);
}

CodeBlock BlockFormer::form(uint64_t pc) const {
  const auto starts = [this](uint64_t at) {
    return starts_block_(at) || (is_whole() && seen_.contains(at));
  };
  CodeBlock block = form_block(isa_, pc, code_at_, starts, guise_);
  remove_sink_writes(isa_, block.draft);
  return block;
}

void BlockFormer::want_successors(const CodeBlock& b) {
  const bool stays = b.is_call() && !is_whole();
  if (b.has_target() && !stays) want(b.draft.end.taken_pc);
  // A call returns to a place that a sweep finds, or else this.
  if (!b.draft.end.present || b.falls_through() || stays) want(b.next_pc);
}

void BlockFormer::want(uint64_t pc) {
  if ((pc & (isa_.insn_align - 1)) == 0 && !seen_.contains(pc)) wanted_.push_back(pc);
}

}  // namespace gpusim
