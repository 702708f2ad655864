#include "translator/common/discover.h"

#include <algorithm>
#include <optional>

namespace gpusim {
namespace {

class Discovery {
 public:
  Discovery(const ElfFile& elf, uint32_t cpu) : elf_(elf), cpu_(cpu) {}

  CodeImage run() {
    lay_out();
    add_root(elf_.entry);
    for (const Symbol& s : elf_.symbols)
      if (s.is_function && image_.is_code(s.address) && !(image_.flags_at(s.address) & kData))
        add_root(s.address);
    follow_flow();
    sweep();
    return std::move(image_);
  }

 private:
  void lay_out() {
    image_.pc_shift = elf_.isa->pc_shift();
    image_.longest_insn = elf_.isa->longest_insn;
    image_.base = elf_.code.front().begin;
    const uint64_t size = elf_.code.back().end - image_.base;
    image_.flags.assign(size >> image_.pc_shift, 0);
    image_.bytes.assign(size, 0);
    for (const CodePiece& p : elf_.pieces()) {
      std::ranges::copy(p.bytes.first(p.size_bytes), image_.bytes.data() + (p.pc - image_.base));
      for (uint64_t pc = p.pc; pc < p.pc + p.size_bytes; pc += image_.step())
        image_.flags_at(pc) = p.is_data ? kCode | kData : kCode;
    }
    for (const AddressRange& r : elf_.code) image_.flags_at(r.begin) |= kLeader;
  }

  void add_leader(uint64_t pc) {
    if (image_.is_code(pc)) image_.flags_at(pc) |= kLeader;
  }
  void add_root(uint64_t pc) {
    add_leader(pc);
    if (image_.is_code(pc) && !(image_.flags_at(pc) & kReached)) to_follow_.push_back(pc);
  }

  GuestInsn insn_at(uint64_t pc) const { return elf_.isa->first_insn(pc, image_.code_at(pc)); }

  void follow_flow() {
    while (!to_follow_.empty()) {
      uint64_t pc = to_follow_.back();
      to_follow_.pop_back();
      while (image_.is_code(pc) && !(image_.flags_at(pc) & kReached)) {
        const GuestInsn insn = insn_at(pc);
        if (!insn) break;
        image_.flags_at(pc) |= kReached;
        const ControlFlow flow = elf_.isa->control_flow(insn, cpu_);
        pc += insn.bytes.size();
        if (flow.target) add_root(*flow.target);
        if (flow.ends_block) add_leader(pc);
        if (flow.ends_block && !flow.falls_through && !flow.is_call) break;
      }
    }
  }

  // An instruction inside this one is reached: this one is none, or is never executed.
  bool hides_reached(const GuestInsn& insn) const {
    for (uint64_t i = image_.step(); i < insn.bytes.size(); i += image_.step())
      if (image_.flags_at(insn.pc + i) & kReached) return true;
    return false;
  }

  void sweep() {
    for (uint64_t pc = image_.base; pc < image_.end();) {
      const uint8_t flags = image_.flags_at(pc);
      const GuestInsn insn = insn_at(pc);
      const bool is_reached = (flags & kReached) != 0;
      const bool is_data = (flags & kData) != 0;
      if (!insn || (!is_reached && (is_data || hides_reached(insn)))) {
        pc += image_.step();
        // Data is left alone; what comes behind it starts anew.
        if (is_data) add_leader(pc);
        continue;
      }
      pc += insn.bytes.size();
      if (is_reached) continue;
      const ControlFlow flow = elf_.isa->control_flow(insn, cpu_);
      if (flow.target) add_leader(*flow.target);
      if (flow.ends_block) add_leader(pc);
    }
  }

  const ElfFile& elf_;
  uint32_t cpu_;
  CodeImage image_;
  std::vector<uint64_t> to_follow_;
};

}  // namespace

CodeImage discover_code(const ElfFile& elf, uint32_t cpu) { return Discovery(elf, cpu).run(); }

void find_targets(const GuestIsa& isa, uint64_t pc, std::span<const uint8_t> code,
                  std::vector<uint64_t>& targets) {
  if (isa.find_targets) return isa.find_targets(pc, code, targets);
  while (!code.empty()) {
    const GuestInsn insn = isa.first_insn(pc, code);
    if (insn)
      if (const auto target = isa.control_flow(insn, 0).target) targets.push_back(*target);
    const size_t size = std::min(insn ? insn.bytes.size() : isa.insn_align, code.size());
    code = code.subspan(size);
    pc += size;
  }
}

std::vector<bool> find_leaders(const ElfFile& elf, const CodeMap& code) {
  const GuestIsa& isa = *elf.isa;
  std::vector<bool> leaders(code.insn_class.size());
  const auto add = [&](uint64_t pc) {
    if (code.is_aligned(pc) && code.is_code(pc)) leaders[code.unit_of(pc)] = true;
  };
  add(elf.entry);
  for (const Symbol& s : elf.symbols)
    if (s.is_function) add(s.address);
  std::vector<uint64_t> targets;
  for (const CodePiece& piece : elf.pieces()) {
    if (piece.is_data) continue;
    add(piece.pc);
    find_targets(isa, piece.pc, piece.bytes.first(piece.size_bytes), targets);
  }
  for (const uint64_t target : targets) add(target);
  return leaders;
}

void add_leaders(const GuestIsa& isa, const CodeMap& code, const Segment& late,
                 std::vector<bool>& leaders) {
  std::vector<uint64_t> targets;
  find_targets(isa, late.address, late.bytes, targets);
  for (const uint64_t target : targets)
    if (code.is_aligned(target) && code.is_code(target)) leaders[code.unit_of(target)] = true;
}

}  // namespace gpusim
