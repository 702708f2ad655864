// A program's code by address, and what discovery found out about each place.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "translator/common/isa_list.h"
#include "translator/elf/elf_file.h"

namespace gpusim {

enum CodeFlags : uint8_t {
  kCode = 1,     // an instruction can be here
  kData = 2,     // marked as data inside code
  kReached = 4,  // direct control flow leads here from the entry or a function
  kLeader = 8,   // a block has to start here
};

/// The units in which instructions are aligned, between the first and the last of a program.
struct CodeImage {
  uint64_t base = 0;
  uint32_t pc_shift = 2;
  uint32_t longest_insn = 4;
  std::vector<uint8_t> flags;  // CodeFlags, per unit
  std::vector<uint8_t> bytes;

  bool is_code(uint64_t pc) const {
    const uint64_t i = (pc - base) >> pc_shift;
    return pc >= base && i < flags.size() && (pc & (step() - 1)) == 0 && (flags[i] & kCode);
  }
  /// The code from pc on, as far as one instruction can reach; empty where there is none.
  std::span<const uint8_t> code_at(uint64_t pc) const {
    size_t size = 0;
    while (size < longest_insn && is_code(pc + size)) size += step();
    return size == 0 ? std::span<const uint8_t>() : std::span(bytes).subspan(pc - base, size);
  }
  uint8_t& flags_at(uint64_t pc) { return flags[(pc - base) >> pc_shift]; }
  uint8_t flags_at(uint64_t pc) const { return flags[(pc - base) >> pc_shift]; }
  uint64_t step() const { return uint64_t{1} << pc_shift; }
  uint64_t end() const { return base + (uint64_t{flags.size()} << pc_shift); }
};

/// Finds where blocks have to start: at the entry, at functions, at targets of direct branches and
/// behind every end of a block. First it follows direct flow (kReached), then it sweeps the rest of
/// the code in order, so that targets of indirect branches are there before the program runs.
/// `cpu`: its number in the ISA's cpus.
CodeImage discover_code(const ElfFile& elf, uint32_t cpu = 0);

/// Appends where the branches in the code lead, by each instruction's word alone.
void find_targets(const GuestIsa& isa, uint64_t pc, std::span<const uint8_t> code,
                  std::vector<uint64_t>& targets);

/// Marks where the branches in a module's late code lead.
void add_leaders(const GuestIsa& isa, const CodeMap& code, const Segment& late,
                 std::vector<bool>& leaders);

/// Which units of the code map, laid out for this file, blocks have to start at, but for those
/// behind ends of blocks, from one look at each instruction.
std::vector<bool> find_leaders(const ElfFile& elf, const CodeMap& code);

}  // namespace gpusim
