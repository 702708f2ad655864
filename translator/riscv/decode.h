// RISC-V decoder: one row per 32-bit instruction of the unprivileged manual, in rows/*.def, for
// both register widths; 16-bit instructions are expanded first (rows/compressed.def). How to write
// a visitor: README.md in this folder.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string_view>

#include "translator/common/bit_pattern.h"

namespace gpusim::riscv {

/// One enumerator per row, in table order, spelt as in the rows.
enum class Op : uint16_t {
#define RV_ROW(name, extension, bits) name,
#define RV_ROW_IF(name, extension, bits, ...) name,
#include "translator/riscv/rows/all.def"
};

#define RV_ROW(name, extension, bits) +1
#define RV_ROW_IF(name, extension, bits, ...) +1
inline constexpr unsigned kOpCount = 0
#include "translator/riscv/rows/all.def"
    ;

/// What brought the row. Those of kF may also need D or Zfh, by their format.
enum class Extension : uint8_t {
  kI,
  kM,
  kA,
  kF,
  kD,
  kZicsr,
  kZifencei,
  kZacas,
  kZawrs,
  kZicond,
  kZba,
  kZbb,
  kZbc,
  kZbs,
  kZfh,
  kZfa,
  kV,
};

struct Row {
  std::string_view name;  // as the enumerator: "FMV_TO_X"
  std::string_view bits;
  BitPattern<uint32_t> pattern;
  Op op;
  Extension extension;
  bool (*allowed)(uint32_t word);  // null: every field value is allocated

  /// Value of the field written with that letter; the row must have it.
  constexpr uint32_t field(char letter, uint32_t word) const {
    return pattern.field(letter).of(word);
  }
};

/// The same rows for both; conditions tell which belong to which. `xlen`: 32 or 64.
std::span<const Row> rows(int xlen);
const Row& row(Op op);

/// Some word of the row is allocated at that register width.
bool belongs(Op op, int xlen);

/// The row that owns a 32-bit word, or null when the word is unallocated.
const Row* decode(uint32_t word, int xlen);

/// Bytes of the instruction that starts with these 16 bits: 2 or 4. Longer ones are not defined
/// yet.
constexpr unsigned instruction_bytes(uint32_t low16) { return (low16 & 3) == 3 ? 4 : 2; }

struct Insn {
  const Row* row = nullptr;  // null: unallocated
  uint32_t word = 0;         // of 32 bits; of a 16-bit instruction, what it is short for
  unsigned bytes = 4;
  int xlen = 64;

  explicit operator bool() const { return row != nullptr; }
  Op op() const { return row->op; }
  uint32_t field(char letter) const { return row->field(letter, word); }
};

/// `word`: the bytes at the instruction, of which a 16-bit one takes the low half.
Insn decode_any(uint32_t word, int xlen);

/// An allocated word of the row, which belongs to that register width, its fields drawn uniformly.
/// Rng: any uniform random bit generator with 32 or more bits.
template <typename Rng>
uint32_t random_word(const Row& row, int xlen, Rng& rng) {
  std::uniform_int_distribution<uint32_t> any;
  for (;;) {
    const uint32_t word = row.pattern.value | (any(rng) & ~row.pattern.mask);
    if (const Row* owner = decode(word, xlen); owner && owner->op == row.op) return word;
  }
}

}  // namespace gpusim::riscv
