// AArch64 decoder: one row per instruction page of the Arm ARM (DDI 0487), in rows/*.def.
// How to write a visitor for them: README.md in this folder.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "translator/common/bit_pattern.h"

namespace gpusim::a64 {

/// One enumerator per row, in table order, spelt as in the rows.
enum class Op : uint16_t {
#define A64_ROW(name, feature, bits) name,
#define A64_ROW_IF(name, feature, bits, ...) name,
#include "translator/a64/rows/all.def"
};

#define A64_ROW(name, feature, bits) +1
#define A64_ROW_IF(name, feature, bits, ...) +1
inline constexpr unsigned kOpCount = 0
#include "translator/a64/rows/all.def"
    ;

/// The row file, which is the manual's section (C4.1).
enum class Group : uint8_t {
  kDataProcessingImmediate,
  kDataProcessingRegister,
  kLoadsStores,
  kBranchesSystem,
  kFloat,
  kSimd,
};

/// The architecture extension that brought the row. A row that folds several operand sizes can
/// hold encodings of a later one: an `ftype` field equal to 3 (half precision) needs kFp16.
enum class Feature : uint8_t {
  kBase,     // v8.0 general-purpose
  kFp,       // v8.0 scalar floating point
  kSimd,     // v8.0 Advanced SIMD
  kCrc,      // FEAT_CRC32
  kAes,      // FEAT_AES, FEAT_PMULL
  kSha,      // FEAT_SHA1, FEAT_SHA256
  kSha3,     // FEAT_SHA3, FEAT_SHA512
  kSm,       // FEAT_SM3, FEAT_SM4
  kLse,      // FEAT_LSE
  kLor,      // FEAT_LOR
  kRdm,      // FEAT_RDM
  kFp16,     // FEAT_FP16
  kPauth,    // FEAT_PAuth
  kRcpc,     // FEAT_LRCPC
  kRcpc2,    // FEAT_LRCPC2
  kJscvt,    // FEAT_JSCVT
  kFcma,     // FEAT_FCMA
  kDotProd,  // FEAT_DotProd
  kFhm,      // FEAT_FHM
  kFlagM,    // FEAT_FlagM
  kFlagM2,   // FEAT_FlagM2
  kFrintts,  // FEAT_FRINTTS
  kSb,       // FEAT_SB
  kBf16,     // FEAT_BF16
  kI8mm,     // FEAT_I8MM
};

struct Row {
  std::string_view name;  // as the enumerator: "ADD_imm"
  std::string_view bits;
  BitPattern<uint32_t> pattern;
  Op op;
  Group group;
  Feature feature;
  bool (*allowed)(uint32_t word);  // null: every field value is allocated

  /// Value of the field written with that letter; the row must have it.
  constexpr uint32_t field(char letter, uint32_t word) const {
    return pattern.field(letter).of(word);
  }
};

std::span<const Row> rows();
const Row& row(Op op);

/// The row's name up to its first underscore, in lower case: the base instruction, "add".
std::string base_mnemonic(const Row& row);

/// The row that owns the word, or null when the word is unallocated in everything that the table
/// covers (README.md lists what it leaves out).
const Row* decode(uint32_t word);

struct Insn {
  const Row* row = nullptr;  // null: unallocated
  uint32_t word = 0;
  uint64_t pc = 0;

  explicit operator bool() const { return row != nullptr; }
  Op op() const { return row->op; }
  uint32_t field(char letter) const { return row->field(letter, word); }
};

inline Insn decode_at(uint64_t pc, uint32_t word) { return {decode(word), word, pc}; }

/// An allocated word of the row, its fields drawn uniformly, should-be bits as they should be.
/// Rng: any uniform random bit generator with 32 or more bits.
template <typename Rng>
uint32_t random_word(const Row& row, Rng& rng) {
  const BitPattern<uint32_t>& p = row.pattern;
  std::uniform_int_distribution<uint32_t> any;
  for (;;) {
    const uint32_t free = any(rng) & ~p.mask & ~p.should_mask;
    const uint32_t word = p.value | p.should_value | free;
    if (decode(word) == &row) return word;  // tests/isa/a64: each row has such words in plenty
  }
}

/// The manual's DecodeBitMasks accepts N, imms as a bit mask immediate (immr does not matter).
constexpr bool is_bit_mask(uint32_t is_64, uint32_t n, uint32_t imms) {
  if (!is_64 && n) return false;
  const uint32_t combined = (n << 6) | (~imms & 0x3f);
  const int length = static_cast<int>(std::bit_width(combined)) - 1;
  if (length < 1) return false;
  const uint32_t levels = (1u << length) - 1;
  return (imms & levels) != levels;
}

}  // namespace gpusim::a64
