#include "translator/common/link.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "device_sim/uir/journal.h"

namespace gpusim {
namespace {

class Linker {
 public:
  Linker(std::vector<CodeBlock> blocks, Module& module, OpenTargets* open,
         Breakpoints* breakpoints)
      : blocks_(std::move(blocks)), module_(module), open_(open), breakpoints_(breakpoints) {}

  void run() {
    first_number_ = static_cast<uint32_t>(module_.blocks.size());
    for (size_t i = 0; i < blocks_.size(); ++i) place(i);
    for (size_t i = 0; i < blocks_.size(); ++i) add_taken_stub(i);
    if (breakpoints_) add_traps();
    resolve();
    if (open_) close_targets();
  }

 private:
  // A field of a micro-op that waits for the place of a guest address.
  struct Pending {
    uint32_t uop;
    uint64_t pc;
  };

  uint32_t uop_count() const { return static_cast<uint32_t>(module_.uops.size()); }

  void append(const Uop& u, uint32_t block, uint16_t insn) {
    if (module_.uops.size() >= kNoUop) throw std::length_error("module: too many micro-ops");
    module_.uops.push_back(u);
    module_.uop_block.push_back(block);
    module_.uop_insn.push_back(insn);
  }

  void append_jump(Op op, uint64_t pc, uint32_t block, uint16_t insn) {
    pending_.push_back({uop_count(), pc});
    append(Uop{.op = op, .imm = Uop::pack_target(block, 0)}, block, insn);
  }

  void place(size_t index) {
    CodeBlock& from = blocks_[index];
    DraftBlock& draft = from.draft;
    const auto number = static_cast<uint32_t>(module_.blocks.size());
    end_pending_.push_back(0);
    Block block;
    block.pc = draft.pc;
    block.insn_count = static_cast<uint32_t>(draft.classes.size());
    block.first_uop = uop_count();
    if (!from.insn_offsets.empty()) {
      block.first_offset = static_cast<uint32_t>(module_.insn_offsets.size());
      module_.insn_offsets.insert(module_.insn_offsets.end(), from.insn_offsets.begin(),
                                  from.insn_offsets.end());
    }
    CodeMap& code = module_.code;
    placed_.emplace(draft.pc, block.first_uop);
    if (!from.direct_entry_only) code.uop_at[code.unit_of(draft.pc)] = block.first_uop;
    for (uint32_t i = 0; i < block.insn_count; ++i) {
      ++block.classes[static_cast<size_t>(draft.classes[i])];
      code.insn_class[code.unit_of(insn_pc(module_, block, i))] =
          static_cast<uint8_t>(draft.classes[i]);
    }
    const auto last_insn = static_cast<uint16_t>(draft.classes.size() - 1);
    for (size_t i = 0; i < draft.uops.size(); ++i) {
      Uop u = draft.uops[i];
      if (u.op == Op::note && u.aux == kNoteBlock) u.imm = kBlockMark | number;
      append(u, number, draft.uop_insn[i]);
    }
    if (!draft.end.present) {
      append_jump(Op::jmp, from.next_pc, number, last_insn);
    } else {
      Uop& end = module_.uops.back();
      end_pending_.back() = pending_.size();
      if (from.has_target()) pending_.push_back({uop_count() - 1, draft.end.taken_pc});
      end.imm = Uop::pack_target(number, 0);
    }
    block.uop_count = uop_count() - block.first_uop;
    module_.blocks.push_back(block);

    if (!from.falls_through()) return;
    const bool next_follows = index + 1 < blocks_.size() &&
                              blocks_[index + 1].draft.pc == from.next_pc &&
                              !has_breakpoint(from.next_pc);
    for (const Uop& u : from.on_fall_through) append(u, number, last_insn);
    if (!next_follows || !from.on_fall_through.empty())
      append_jump(Op::link, from.next_pc, number, last_insn);
  }

  // Behind all blocks, so that the way that needs it pays and no other.
  void add_taken_stub(size_t index) {
    const CodeBlock& from = blocks_[index];
    if (from.on_taken.empty()) return;
    const auto number = static_cast<uint32_t>(first_number_ + index);
    const Block& block = module_.blocks[number];
    const auto last_insn = static_cast<uint16_t>(block.insn_count - 1);
    const uint32_t end = block.first_uop + block.uop_count - 1;
    set_target(end, uop_count());
    for (const Uop& u : from.on_taken) append(u, number, last_insn);
    // The link takes over what the end was waiting for.
    pending_[end_pending_[index]].uop = uop_count();
    append(Uop{.op = Op::link, .imm = Uop::pack_target(number, 0)}, number, last_insn);
  }

  bool has_breakpoint(uint64_t pc) const {
    return breakpoints_ && breakpoints_->addresses.contains(pc);
  }

  void add_traps() {
    for (auto& [pc, first_uop] : placed_) {
      if (!has_breakpoint(pc)) continue;
      breakpoints_->behind[pc] = first_uop;
      const uint32_t trap = add_trap(pc, Fault::kBreakpoint);
      module_.code.uop_at[module_.code.unit_of(pc)] = trap;
      first_uop = trap;
    }
  }

  void set_target(uint32_t uop, uint32_t target) {
    Uop& u = module_.uops[uop];
    u.imm = Uop::pack_target(u.block(), target);
  }

  void resolve() {
    for (const Pending& p : pending_) {
      const auto placed = placed_.find(p.pc);
      uint32_t found = placed != placed_.end() ? placed->second : find_block(module_.code, p.pc);
      if (found == kNoUop && open_ && module_.code.is_aligned(p.pc) &&
          (open_->takes_all || module_.code.is_code(p.pc)))
        found = open_stub(p);
      if (found == kNoUop) found = fault_stub(p.pc);
      set_target(p.uop, found);
    }
  }

  uint32_t open_stub(const Pending& p) {
    const auto [it, is_new] = open_->targets.try_emplace(p.pc);
    if (is_new) {
      it->second.stub = uop_count();
      const auto number = static_cast<uint32_t>(module_.blocks.size());
      module_.blocks.push_back({.pc = p.pc, .first_uop = uop_count(), .uop_count = 2});
      append(Uop{.op = Op::konst, .d = open_->address, .imm = p.pc}, number, 0);
      append(Uop{.op = Op::jmp_reg,
                 .a = open_->address,
                 .aux = static_cast<uint8_t>(JumpHint::kNone),
                 .imm = Uop::pack_target(number, 0)},
             number, 0);
    }
    it->second.ends.push_back(p.uop);
    return it->second.stub;
  }

  // Cores that are in a stub find the block by its address.
  void close_targets() {
    for (const auto& [pc, uop] : placed_) {
      const auto open = open_->targets.find(pc);
      if (open == open_->targets.end() || find_block(module_.code, pc) != uop) continue;
      for (const uint32_t end : open->second.ends) set_target(end, uop);
      module_.relinked.insert(module_.relinked.end(), open->second.ends.begin(),
                              open->second.ends.end());
      open_->targets.erase(open);
    }
  }

  // A block without instructions: it counts nothing and its pc is the bad target.
  uint32_t fault_stub(uint64_t pc) {
    const auto [it, is_new] = stubs_.try_emplace(pc, uop_count());
    if (is_new)
      add_trap(pc, module_.code.is_aligned(pc) ? Fault::kFetchAccess : Fault::kFetchAlignment);
    return it->second;
  }

  uint32_t add_trap(uint64_t pc, Fault fault) {
    const uint32_t first = uop_count();
    const auto number = static_cast<uint32_t>(module_.blocks.size());
    module_.blocks.push_back({.pc = pc, .first_uop = first, .uop_count = 1});
    append(
        Uop{.op = Op::trap, .aux = static_cast<uint8_t>(fault), .imm = Uop::pack_target(number, 0)},
        number, 0);
    return first;
  }

  std::vector<CodeBlock> blocks_;
  Module& module_;
  OpenTargets* open_;
  Breakpoints* breakpoints_;
  uint32_t first_number_ = 0;
  std::vector<Pending> pending_;
  std::vector<size_t> end_pending_;  // per block: index in pending_ of its end's target
  std::unordered_map<uint64_t, uint32_t> placed_;  // guest address -> first micro-op
  std::unordered_map<uint64_t, uint32_t> stubs_;
};

}  // namespace

void link_blocks(std::vector<CodeBlock> blocks, Module& module, OpenTargets* open,
                 Breakpoints* breakpoints) {
  Linker(std::move(blocks), module, open, breakpoints).run();
}

}  // namespace gpusim
