// Reads a static ELF program: what is loaded where, what is code, and what things are called.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device_sim/uir/module.h"
#include "translator/common/isa_list.h"

namespace gpusim {

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

  /// All of `code`, by address.
  std::vector<CodePiece> pieces() const;
};

/// Error for everything that can't be run: no ELF file, damaged, foreign or dynamic ones.
/// A static position-independent program is placed at kPieBase.
ElfFile read_elf(std::span<const uint8_t> bytes, const std::string& name);

inline constexpr uint64_t kPieBase = 0x400000;

}  // namespace gpusim
