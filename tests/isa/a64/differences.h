// The differences between our decoder and a disassembler that have a reason.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "translator/a64/decode.h"

namespace gpusim::a64 {

enum class Tool : uint8_t { kObjdump, kCapstone };

enum class Verdict : uint8_t {
  kOnlyTool,   // the tool prints an instruction where we say unallocated
  kOnlyOurs,   // we have a row where the tool prints none
  kName,       // both know an instruction, under different mnemonics
  kRegisters,  // same mnemonic, other registers
};

struct Difference {
  Tool tool;
  Verdict verdict;
  std::string_view bits;                        // 32 characters: 0, 1, or '.' for any
  std::string_view mnemonic;                    // what the tool prints begins with this; "" for all
  bool (*when)(const Row* row, uint32_t word);  // null: always
  std::string_view reason;

  bool covers(const Row* row, uint32_t word, std::string_view printed) const;
};

std::span<const Difference> differences();

}  // namespace gpusim::a64
