#include "translator/passes/flags_liveness.h"

#include <algorithm>
#include <optional>

#include "translator/passes/difference.h"

namespace gpusim {
namespace {

class FlagsLiveness {
 public:
  FlagsLiveness(const GuestIsa& isa, const std::vector<Successors>& successors,
                const std::function<bool(uint64_t)>& reads_flags, std::vector<CodeBlock>& blocks)
      : flags_(static_cast<Slot>(isa.roles.flags)),
        isa_(isa),
        successors_(successors),
        reads_flags_(reads_flags),
        blocks_(blocks) {}

  std::vector<bool> run() {
    solve();
    std::vector<bool> live_at_end(blocks_.size());
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const bool taken = live_into(successors_[i].taken, blocks_[i].draft.end.taken_pc),
                 next = live_into(successors_[i].next, blocks_[i].next_pc);
      live_at_end[i] = taken || next || successors_[i].indirect;
      if (taken != next && blocks_[i].falls_through() && sink(blocks_[i], taken))
        live_at_end[i] = false;
    }
    return live_at_end;
  }

 private:
  bool is_read_outside(int block, uint64_t pc) const {
    return block == Successors::kOutside && (!reads_flags_ || reads_flags_(pc));
  }
  bool live_into(int block, uint64_t pc) const {
    if (block >= 0) return live_in_[static_cast<size_t>(block)];
    return is_read_outside(block, pc);
  }

  void solve() {
    const size_t n = blocks_.size();
    std::vector<FlagsUse> effect(n);
    std::vector<std::vector<uint32_t>> predecessors(n);
    live_in_.assign(n, false);
    std::vector<size_t> work;
    const auto become_live = [&](size_t i) {
      if (live_in_[i]) return;
      live_in_[i] = true;
      work.push_back(i);
    };
    for (size_t i = 0; i < n; ++i) {
      effect[i] = first_use_of_flags(isa_, blocks_[i]);
      for (const int s : {successors_[i].taken, successors_[i].next})
        if (s >= 0) predecessors[static_cast<size_t>(s)].push_back(static_cast<uint32_t>(i));
    }
    for (size_t i = 0; i < n; ++i) {
      const CodeBlock& b = blocks_[i];
      const auto leaves = [&] {
        return successors_[i].indirect ||
               is_read_outside(successors_[i].taken, b.draft.end.taken_pc) ||
               is_read_outside(successors_[i].next, b.next_pc);
      };
      if (effect[i] == FlagsUse::kReads || (effect[i] == FlagsUse::kPasses && leaves()))
        become_live(i);
    }
    while (!work.empty()) {
      const size_t i = work.back();
      work.pop_back();
      for (const uint32_t p : predecessors[i])
        if (effect[p] == FlagsUse::kPasses) become_live(p);
    }
  }

  // Moves the last computation of flags out of the block. False if it has to stay.
  bool sink(CodeBlock& block, bool to_taken) {
    const std::vector<Uop>& uops = block.draft.uops;
    // Behind a backward branch is the way out of a loop; a forward branch is taken less often than
    // not. The other way pays nothing, and this one pays a link more.
    const bool backward = block.draft.end.taken_pc <= block.draft.pc;
    if (to_taken == backward) return false;
    const auto def = last_write(uops, flags_, uops.size());
    if (!def || !shape_of(uops[*def].op).pure) return false;
    for (size_t i = *def + 1; i < uops.size(); ++i)
      if (reads_slot(uops[i], flags_)) return false;

    // What the operands were has to be what they are at the end, or to come back from there.
    std::optional<size_t> difference;
    if (uops[*def].op == Op::fl_sub64 || uops[*def].op == Op::fl_sub32)
      difference = find_difference(isa_, uops, *def);
    std::vector<Uop> stub;
    if (difference) stub.push_back(undo_difference(uops[*difference]));
    bool possible = true;
    for_each_operand(uops[*def], [&](Slot s, uint8_t reads, uint8_t) {
      if (!reads) return;
      const auto written = last_write(uops, s, uops.size());
      if (written && *written >= *def && written != difference) possible = false;
      // A constant made for this computation moves with it.
      if (written && isa_.roles.is_temp(s) && uops[*written].op == Op::konst)
        stub.push_back(uops[*written]);
    });
    if (!possible) return false;
    stub.push_back(uops[*def]);
    if (difference) stub.push_back(uops[*difference]);
    (to_taken ? block.on_taken : block.on_fall_through) = std::move(stub);
    return true;
  }

  const Slot flags_;
  const GuestIsa& isa_;
  const std::vector<Successors>& successors_;
  const std::function<bool(uint64_t)>& reads_flags_;
  std::vector<CodeBlock>& blocks_;
  std::vector<bool> live_in_;
};

}  // namespace

FlagsUse first_use_of_flags(const GuestIsa& isa, const CodeBlock& block) {
  const auto flags = static_cast<Slot>(isa.roles.flags);
  for (const Uop& u : block.draft.uops) {
    if (reads_slot(u, flags)) return FlagsUse::kReads;
    if (writes_slot(u, flags)) return FlagsUse::kWrites;
  }
  return FlagsUse::kPasses;
}

std::vector<bool> find_live_flags(const GuestIsa& isa, const std::vector<Successors>& successors,
                                  const std::function<bool(uint64_t pc)>& reads_flags,
                                  std::vector<CodeBlock>& blocks) {
  if (!isa.roles.has_flags()) return std::vector<bool>(blocks.size());
  return FlagsLiveness(isa, successors, reads_flags, blocks).run();
}

}  // namespace gpusim
