#include <cstring>

#include "translator/common/discover.h"

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
    image_.pc_shift = elf_.isa->pc_shift;
    image_.base = elf_.code.front().begin;
    const uint64_t count = (elf_.code.back().end - image_.base) >> image_.pc_shift;
    image_.flags.assign(count, 0);
    image_.words.assign(count, 0);
    size_t segment = 0;
    for (const AddressRange& r : elf_.code) {
      while (r.begin >= elf_.segments[segment].address + elf_.segments[segment].size_bytes)
        ++segment;
      const Segment& s = elf_.segments[segment];
      for (uint64_t pc = r.begin; pc < r.end; pc += image_.step()) {
        image_.flags_at(pc) = kCode;
        std::memcpy(&image_.words[(pc - image_.base) >> image_.pc_shift],
                    s.bytes.data() + (pc - s.address), sizeof(uint32_t));
      }
      image_.flags_at(r.begin) |= kLeader;
    }
    for (const AddressRange& d : elf_.data_in_code) {
      const uint64_t step = image_.step();
      const uint64_t begin = std::max(d.begin & ~(step - 1), image_.base);
      const uint64_t end = std::min((d.end + step - 1) & ~(step - 1), image_.end());
      for (uint64_t pc = begin; pc < end; pc += step)
        if (image_.is_code(pc)) image_.flags_at(pc) |= kData;
    }
  }

  void add_leader(uint64_t pc) {
    if (image_.is_code(pc)) image_.flags_at(pc) |= kLeader;
  }
  void add_root(uint64_t pc) {
    add_leader(pc);
    if (image_.is_code(pc) && !(image_.flags_at(pc) & kReached)) to_follow_.push_back(pc);
  }

  void follow_flow() {
    while (!to_follow_.empty()) {
      uint64_t pc = to_follow_.back();
      to_follow_.pop_back();
      while (image_.is_code(pc) && !(image_.flags_at(pc) & kReached)) {
        image_.flags_at(pc) |= kReached;
        const ControlFlow flow = elf_.isa->control_flow(image_.word_at(pc), pc, cpu_);
        pc += image_.step();
        if (flow.target) add_root(*flow.target);
        if (flow.ends_block) add_leader(pc);
        if (flow.ends_block && !flow.falls_through && !flow.is_call) break;
      }
    }
  }

  void sweep() {
    for (uint64_t pc = image_.base; pc < image_.end(); pc += image_.step()) {
      const uint8_t flags = image_.flags_at(pc);
      if (!(flags & kCode) || (flags & kReached)) continue;
      // Data is left alone; what comes behind it starts anew.
      if (flags & kData) {
        add_leader(pc + image_.step());
        continue;
      }
      const ControlFlow flow = elf_.isa->control_flow(image_.word_at(pc), pc, cpu_);
      if (flow.target) add_leader(*flow.target);
      if (flow.ends_block) add_leader(pc + image_.step());
    }
  }

  const ElfFile& elf_;
  uint32_t cpu_;
  CodeImage image_;
  std::vector<uint64_t> to_follow_;
};

}  // namespace

CodeImage discover_code(const ElfFile& elf, uint32_t cpu) { return Discovery(elf, cpu).run(); }

}  // namespace gpusim
