#include "translator/a64/decode.h"

#include <array>
#include <cctype>

#include "translator/common/decode_table.h"

namespace gpusim::a64 {
namespace {

/// LD1 to LD4, ST1 to ST4 of whole registers: opcode o, size y, Q.
constexpr bool is_multiple_structure(uint32_t o, uint32_t y, uint32_t q) {
  switch (o) {
    case 0b0000:  // four, three, two registers interleaved: one doubleword has nothing to
                  // interleave
    case 0b0100:
    case 0b1000:
      return y != 3 || q;
    case 0b0010:  // LD1 and ST1 of four, three, one, two registers
    case 0b0110:
    case 0b0111:
    case 0b1010:
      return true;
    default:
      return false;
  }
}

/// Single structures: opcode o, S k, size y. Opcode 11x, load to all lanes, has rows of its own.
constexpr bool is_single_structure(uint32_t o, uint32_t k, uint32_t y) {
  switch (o >> 1) {
    case 0:
      return true;
    case 1:
      return (y & 1) == 0;
    case 2:
      return y == 0 || (y == 1 && k == 0);
    default:
      return false;
  }
}

// clang-format off
#define GPUSIM_FIELD(letter)                                                                  \
  [[maybe_unused]] const auto letter =                                                        \
      FieldOrNone<kPattern.field(#letter[0]).lsb, kPattern.field(#letter[0]).width>::of(word)

#define A64_ROW(name, feature, bits)                                                          \
  Row{#name, bits, parse_bits<uint32_t>(bits), Op::name, Group::A64_GROUP, Feature::feature,  \
      nullptr},

// In a constraint each field of the row is a variable named by its letter.
#define A64_ROW_IF(name, feature, bits, ...)                                                  \
  Row{#name, bits, parse_bits<uint32_t>(bits), Op::name, Group::A64_GROUP, Feature::feature,  \
      [](uint32_t word) -> bool {                                                             \
        constexpr BitPattern<uint32_t> kPattern = parse_bits<uint32_t>(bits);                 \
        GPUSIM_FIELD(a); GPUSIM_FIELD(b); GPUSIM_FIELD(c); GPUSIM_FIELD(d); GPUSIM_FIELD(e);  \
        GPUSIM_FIELD(f); GPUSIM_FIELD(g); GPUSIM_FIELD(h); GPUSIM_FIELD(i); GPUSIM_FIELD(j);  \
        GPUSIM_FIELD(k); GPUSIM_FIELD(l); GPUSIM_FIELD(m); GPUSIM_FIELD(n); GPUSIM_FIELD(o);  \
        GPUSIM_FIELD(p); GPUSIM_FIELD(q); GPUSIM_FIELD(r); GPUSIM_FIELD(s); GPUSIM_FIELD(t);  \
        GPUSIM_FIELD(u); GPUSIM_FIELD(v); GPUSIM_FIELD(w); GPUSIM_FIELD(y); GPUSIM_FIELD(z);  \
        GPUSIM_FIELD(H); GPUSIM_FIELD(L); GPUSIM_FIELD(M); GPUSIM_FIELD(N);                   \
        return (__VA_ARGS__);                                                                 \
      }},
// clang-format on

constexpr std::array<Row, kOpCount> kRows = {
#include "translator/a64/rows/all.def"
};
#undef GPUSIM_FIELD

static_assert(rows_are_unambiguous(kRows),
              "two rows match the same words, and neither lies strictly inside the other; the "
              "decode tests name them");

// Bits 31:30 are fields (sf, size, Q) of most rows and would only repeat the buckets.
constexpr std::array<IndexSlice, 2> kIndex = {{{21, 9}, {10, 6}}};

const DecodeTable<Row, uint32_t, kIndex.size()>& table() {
  static const DecodeTable<Row, uint32_t, kIndex.size()> kTable(kRows, kIndex);
  return kTable;
}

}  // namespace

std::span<const Row> rows() { return kRows; }

const Row& row(Op op) { return kRows[static_cast<size_t>(op)]; }

std::string base_mnemonic(const Row& row) {
  std::string name(row.name.substr(0, row.name.find('_')));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

const Row* decode(uint32_t word) { return table().find(word); }

}  // namespace gpusim::a64
