// Reads an ELF program: what is loaded where, what is code, and what things are called.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device_sim/uir/module.h"
#include "translator/common/isa_list.h"

namespace gpusim {

inline constexpr uint64_t kPieBase = 0x400000;

struct AddressRange {
  uint64_t begin = 0, end = 0;
  bool contains(uint64_t a) const { return a >= begin && a < end; }
};

/// A part of an ELF file's code that is all instructions, or all data.
struct CodePiece {
  uint64_t pc = 0, size_bytes = 0;  // multiples of an instruction's alignment
  std::span<const uint8_t> bytes;   // from pc to the end of the code that it is in
  bool is_data = false;             // as mapping symbols say
};

struct ElfFile {
  const GuestIsa* isa = nullptr;
  uint64_t entry = 0;
  std::vector<Segment> segments;           // by address, not overlapping
  std::vector<Symbol> symbols;             // by address
  std::vector<AddressRange> code;          // by address; inside executable segments' file bytes
  std::vector<AddressRange> data_in_code;  // by address; marked as data by mapping symbols
  uint64_t phdr_address = 0;
  uint16_t phdr_count = 0, phdr_entry_size = 0;
  std::string interpreter;  // the path that a dynamic program names (PT_INTERP); empty: static
  uint64_t program_entry = 0, interpreter_base = 0;  // Module

  /// All of `code`, by address.
  std::vector<CodePiece> pieces() const;
};

enum class Dynamic : uint8_t { kRefused, kAllowed };

/// Error for everything that can't be run: no ELF file, damaged, foreign or, unless they are
/// allowed, dynamic ones. A position-independent program is placed at `base`.
ElfFile read_elf(std::span<const uint8_t> bytes, const std::string& name,
                 Dynamic dynamic = Dynamic::kRefused, uint64_t base = kPieBase);

/// Puts the interpreter of a dynamic program behind it: the two are one image that begins at the
/// interpreter's entry. `name`: of the interpreter's file.
void add_interpreter(ElfFile& program, std::span<const uint8_t> bytes, const std::string& name);

}  // namespace gpusim
