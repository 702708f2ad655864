#include "translator/riscv/decode.h"

#include <array>

#include "translator/common/decode_table.h"
#include "translator/riscv/compressed.h"

namespace gpusim::riscv {
namespace {

// Rounding modes 5 and 6 are reserved, 7 is the dynamic one.
constexpr bool is_rounding(uint32_t r) { return r <= 4 || r == 7; }

// clang-format off
#define RV_FIELD(letter)                                                                      \
  [[maybe_unused]] const auto letter =                                                        \
      FieldOrNone<kPattern.field(#letter[0]).lsb, kPattern.field(#letter[0]).width>::of(word)

#define RV_ROW(name, extension, bits)                                                         \
  Row{#name, bits, parse_bits<uint32_t>(bits), Op::name, Extension::extension, nullptr},

// In a condition each field of the row is a variable named by its letter, and xlen is 32 or 64.
// kPattern is static: Clang 14 refuses it in a lambda of a template otherwise.
#define RV_ROW_IF(name, extension, bits, ...)                                                 \
  Row{#name, bits, parse_bits<uint32_t>(bits), Op::name, Extension::extension,                \
      [](uint32_t word) -> bool {                                                             \
        static constexpr BitPattern<uint32_t> kPattern = parse_bits<uint32_t>(bits);          \
        RV_FIELD(d); RV_FIELD(f); RV_FIELD(g); RV_FIELD(i); RV_FIELD(m); RV_FIELD(o);         \
        RV_FIELD(r); RV_FIELD(w); RV_FIELD(y);                                                \
        [[maybe_unused]] static constexpr uint32_t xlen = kXlen;                              \
        return (__VA_ARGS__);                                                                 \
      }},
// clang-format on

template <int kXlen>
constexpr std::array<Row, kOpCount> make_rows() {
  return {
#include "translator/riscv/rows/all.def"
  };
}
#undef RV_FIELD

constexpr std::array<Row, kOpCount> kRows32 = make_rows<32>();
constexpr std::array<Row, kOpCount> kRows64 = make_rows<64>();

static_assert(rows_are_unambiguous(kRows32) && rows_are_unambiguous(kRows64),
              "two rows match the same words, and neither lies strictly inside the other; the "
              "decode tests name them");

// funct7, funct3 and the major opcode's varying bits.
constexpr std::array<IndexSlice, 3> kIndex = {{{25, 7}, {12, 3}, {2, 5}}};
using Table = DecodeTable<Row, uint32_t, kIndex.size()>;

const Table& table(int xlen) {
  static const Table kTable32(kRows32, kIndex), kTable64(kRows64, kIndex);
  return xlen == 32 ? kTable32 : kTable64;
}

}  // namespace

std::span<const Row> rows(int xlen) { return xlen == 32 ? kRows32 : kRows64; }

const Row& row(Op op) { return kRows64[static_cast<size_t>(op)]; }

bool belongs(Op op, int xlen) {
  if (row(op).extension == Extension::kV) return xlen == 64;
  switch (op) {
    case Op::LD:
    case Op::LWU:
    case Op::SD:
    case Op::ADD_UW:
    case Op::SLLI_UW:
    case Op::AMOCAS_Q:
      return xlen == 64;
    case Op::FMVH_X_D:
    case Op::FMVP_D_X:
      return xlen == 32;
    default:
      return true;
  }
}

const Row* decode(uint32_t word, int xlen) {
  return instruction_bytes(word) == 4 ? table(xlen).find(word) : nullptr;
}

Insn decode_any(uint32_t word, int xlen) {
  if (instruction_bytes(word) == 4) return {decode(word, xlen), word, 4, xlen};
  const uint32_t expanded = expand(static_cast<uint16_t>(word), xlen);
  return {expanded != 0 ? decode(expanded, xlen) : nullptr, expanded, 2, xlen};
}

}  // namespace gpusim::riscv
