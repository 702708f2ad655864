#include "translator/riscv/compressed.h"

#include <algorithm>
#include <array>

#include "translator/common/decode_table.h"
#include "translator/riscv/decode.h"

namespace gpusim::riscv {
namespace {

constexpr uint32_t kX0 = 0, kRa = 1, kSp = 2;
constexpr uint32_t kW = 1u << 3;  // the bit that tells ADDIW from ADDI

// --- 32-bit words, by the format that the manual names

uint32_t word_of(Op op) { return row(op).pattern.value; }
uint32_t r_type(Op op, uint32_t rd, uint32_t rs1, uint32_t rs2) {
  return word_of(op) | rd << 7 | rs1 << 15 | rs2 << 20;
}
uint32_t i_type(Op op, uint32_t rd, uint32_t rs1, uint32_t imm) {
  return word_of(op) | rd << 7 | rs1 << 15 | imm << 20;
}
uint32_t s_type(Op op, uint32_t rs2, uint32_t rs1, uint32_t imm) {
  return word_of(op) | (imm & 31) << 7 | rs1 << 15 | rs2 << 20 | imm >> 5 << 25;
}
uint32_t u_type(Op op, uint32_t rd, uint32_t imm) {
  return word_of(op) | rd << 7 | (imm & 0xfffff000);
}
uint32_t b_type(Op op, uint32_t rs1, uint32_t rs2, uint32_t imm) {
  return word_of(op) | rs1 << 15 | rs2 << 20 | (imm >> 1 & 15) << 8 | (imm >> 5 & 63) << 25 |
         (imm >> 11 & 1) << 7 | (imm >> 12 & 1) << 31;
}
uint32_t j_type(Op op, uint32_t rd, uint32_t imm) {
  return word_of(op) | rd << 7 | (imm >> 1 & 0x3ff) << 21 | (imm >> 11 & 1) << 20 |
         (imm >> 12 & 0xff) << 12 | (imm >> 20 & 1) << 31;
}

constexpr uint32_t short_reg(uint32_t r) { return 8 + r; }
constexpr uint32_t sign_extend(uint32_t value, int bits) {
  const uint32_t sign = 1u << (bits - 1);
  return (value ^ sign) - sign;
}

// The bits from `top` downwards are the immediate's bits that the layout lists: "5:3|7:6".
constexpr uint32_t gather(uint32_t word, int top, std::string_view layout) {
  uint32_t imm = 0;
  const auto number = [&] {
    int n = 0;
    while (!layout.empty() && layout.front() >= '0' && layout.front() <= '9') {
      n = 10 * n + (layout.front() - '0');
      layout.remove_prefix(1);
    }
    return n;
  };
  while (!layout.empty()) {
    const int high = number();
    int low = high;
    if (!layout.empty() && layout.front() == ':') {
      layout.remove_prefix(1);
      low = number();
    }
    for (int bit = high; bit >= low; --bit, --top) imm |= (word >> top & 1) << bit;
    if (!layout.empty()) layout.remove_prefix(1);
  }
  return imm;
}

struct CompressedRow {
  std::string_view name;
  int xlen;  // 0: both
  BitPattern<uint16_t> pattern;
  bool (*allowed)(uint16_t word);
  uint32_t (*expand)(uint32_t word);
};

// kPattern is static: Clang 14 refuses it in a lambda of a template otherwise.
// clang-format off
#define RVC_FIELD(letter)                                                                     \
  [[maybe_unused]] const auto letter =                                                        \
      FieldOrNone<kPattern.field(#letter[0]).lsb, kPattern.field(#letter[0]).width>::of(word)
#define RVC_FIELDS(string)                                                                    \
  static constexpr BitPattern<uint16_t> kPattern = parse_bits<uint16_t>(string);              \
  RVC_FIELD(d); RVC_FIELD(i); RVC_FIELD(j); RVC_FIELD(k); RVC_FIELD(m); RVC_FIELD(n);         \
  [[maybe_unused]] static constexpr uint32_t xlen = kXlen

// Immediates that several rows share are functions named by what they are.
#define RVC_EXPANSION(string, ...)                                                            \
  [](uint32_t word) -> uint32_t {                                                             \
    RVC_FIELDS(string);                                                                       \
    const auto bits = [word](int top, std::string_view layout) {                              \
      return gather(word, top, layout);                                                       \
    };                                                                                        \
    [[maybe_unused]] const auto word_offset = [&] { return bits(12, "5:3") | bits(6, "2|6"); }; \
    [[maybe_unused]] const auto doubleword = [&] { return bits(12, "5:3") | bits(6, "7:6"); }; \
    [[maybe_unused]] const auto small = [&] { return bits(12, "5") | bits(6, "4:0"); };       \
    [[maybe_unused]] const auto small_signed = [&] { return sign_extend(small(), 6); };       \
    [[maybe_unused]] const auto jump = [&] {                                                  \
      return sign_extend(bits(12, "11|4|9:8|10|6|7|3:1|5"), 12);                              \
    };                                                                                        \
    [[maybe_unused]] const auto branch = [&] {                                                \
      return sign_extend(bits(12, "8|4:3") | bits(6, "7:6|2:1|5"), 9);                        \
    };                                                                                        \
    return (__VA_ARGS__);                                                                     \
  }

#define RVC_ROW(name, string, ...)                                                            \
  CompressedRow{#name, 0, parse_bits<uint16_t>(string), nullptr,                              \
                RVC_EXPANSION(string, __VA_ARGS__)},
#define RVC_ROW_32(name, string, ...)                                                         \
  CompressedRow{#name, 32, parse_bits<uint16_t>(string), nullptr,                             \
                RVC_EXPANSION(string, __VA_ARGS__)},
#define RVC_ROW_64(name, string, ...)                                                         \
  CompressedRow{#name, 64, parse_bits<uint16_t>(string), nullptr,                             \
                RVC_EXPANSION(string, __VA_ARGS__)},
#define RVC_ROW_IF(name, string, condition, ...)                                              \
  CompressedRow{#name, 0, parse_bits<uint16_t>(string),                                       \
                [](uint16_t word) -> bool {                                                   \
                  RVC_FIELDS(string);                                                         \
                  return (condition);                                                         \
                },                                                                            \
                RVC_EXPANSION(string, __VA_ARGS__)},
// clang-format on

template <uint32_t kXlen>
constexpr auto make_rows() {
  constexpr std::array kAll{
#include "translator/riscv/rows/compressed.def"
  };
  const auto belongs = [](const CompressedRow& row) { return row.xlen == 0 || row.xlen == kXlen; };
  std::array<CompressedRow, std::count_if(kAll.begin(), kAll.end(), belongs)> rows{};
  std::copy_if(kAll.begin(), kAll.end(), rows.begin(), belongs);
  return rows;
}
#undef RVC_FIELD
#undef RVC_FIELDS
#undef RVC_EXPANSION

constexpr auto kRows32 = make_rows<32>();
constexpr auto kRows64 = make_rows<64>();
static_assert(rows_are_unambiguous(kRows32) && rows_are_unambiguous(kRows64),
              "two rows match the same halfwords, and neither lies strictly inside the other");

// Quadrant and funct3, and what tells the arithmetic of quadrant 1 apart.
constexpr std::array<IndexSlice, 3> kIndex = {{{13, 3}, {10, 3}, {0, 2}}};
using Table = DecodeTable<CompressedRow, uint16_t, kIndex.size()>;

const CompressedRow* find(uint16_t half, int xlen) {
  static const Table kTable32(kRows32, kIndex), kTable64(kRows64, kIndex);
  return (xlen == 32 ? kTable32 : kTable64).find(half);
}

}  // namespace

uint32_t expand(uint16_t half, int xlen) {
  const CompressedRow* row = find(half, xlen);
  return row ? row->expand(half) : 0;
}

std::string_view compressed_row(uint16_t half, int xlen) {
  const CompressedRow* row = find(half, xlen);
  return row ? row->name : std::string_view();
}

}  // namespace gpusim::riscv
