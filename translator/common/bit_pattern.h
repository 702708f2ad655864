// Instruction encodings written as bit strings, parsed and checked by the compiler.
//
// One character per bit, most significant first:
//   0 1   fixed bit; a word with the other value is not this instruction
//   + -   should-be-one, should-be-zero ("(1)", "(0)" in the manual): ignored when decoding,
//         honoured when a random word is drawn
//   A-Za-z  field; a run of one letter is one field, and a letter names one field per string
//   j       the one letter with a rule of its own: a field whose value is not zero
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace gpusim {

struct BitField {
  char letter = 0;
  uint8_t lsb = 0;
  uint8_t width = 0;

  template <typename Word>
  constexpr uint32_t of(Word word) const {
    return static_cast<uint32_t>((uint64_t{word} >> lsb) & ((uint64_t{1} << width) - 1));
  }
};

template <typename Word>
struct BitPattern {
  static constexpr size_t kMaxFields = 12;

  Word mask = 0;         // 1: the bit is fixed
  Word value = 0;        // of the fixed bits
  Word should_mask = 0;  // 1: the bit should be as in should_value, yet any value decodes
  Word should_value = 0;
  Word nonzero = 0;  // of these bits at least one is set; 0: no such rule
  uint8_t field_count = 0;
  std::array<BitField, kMaxFields> fields{};  // most significant first

  constexpr bool matches(Word word) const {
    return (word & mask) == value && (nonzero == 0 || (word & nonzero) != 0);
  }

  constexpr int fixed_bits() const { return std::popcount(mask); }

  /// The field of that letter, of width 0 if the string has none.
  constexpr BitField field(char letter) const {
    for (size_t i = 0; i < field_count; ++i) {
      if (fields[i].letter == letter) return fields[i];
    }
    return {};
  }

  /// Some word matches both.
  constexpr bool overlaps(const BitPattern& other) const {
    if (((value ^ other.value) & mask & other.mask) != 0) return false;
    return !contradicts_nonzero(other) && !other.contradicts_nonzero(*this);
  }

  /// Every word that this one matches, the other matches too, and not the reverse.
  constexpr bool strictly_inside(const BitPattern& other) const {
    return overlaps(other) && (other.mask & ~mask) == 0 && mask != other.mask &&
           (other.nonzero == 0 || (value & other.nonzero) != 0 ||
            (nonzero != 0 && (nonzero & ~other.nonzero) == 0));
  }

 private:
  /// The other's fixed bits force our non-zero field to zero.
  constexpr bool contradicts_nonzero(const BitPattern& other) const {
    return nonzero != 0 && (nonzero & ~other.mask) == 0 && (nonzero & other.value) == 0;
  }
};

/// Any mistake is a compile error that points at the row, with the text of the throw.
template <typename Word>
consteval BitPattern<Word> parse_bits(std::string_view bits) {
  constexpr int kBits = std::numeric_limits<Word>::digits;
  if (bits.size() != static_cast<size_t>(kBits)) throw "bit string has a wrong length";
  BitPattern<Word> p;
  char previous = 0;
  for (int i = 0; i < kBits; ++i) {
    const char c = bits[static_cast<size_t>(i)];
    const int lsb = kBits - 1 - i;
    const Word bit = static_cast<Word>(Word{1} << lsb);
    if (c == '0' || c == '1') {
      p.mask = static_cast<Word>(p.mask | bit);
      if (c == '1') p.value = static_cast<Word>(p.value | bit);
    } else if (c == '+' || c == '-') {
      p.should_mask = static_cast<Word>(p.should_mask | bit);
      if (c == '+') p.should_value = static_cast<Word>(p.should_value | bit);
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      if (c != previous) {
        if (p.field(c).width != 0) throw "a letter names two separate fields";
        if (p.field_count == BitPattern<Word>::kMaxFields) throw "too many fields";
        p.fields[p.field_count++] = BitField{c, 0, 0};
      }
      BitField& f = p.fields[p.field_count - 1u];
      f.lsb = static_cast<uint8_t>(lsb);
      ++f.width;
      if (c == 'j') p.nonzero = static_cast<Word>(p.nonzero | bit);
    } else {
      throw "only 0 1 + - and letters may stand in a bit string";
    }
    previous = c;
  }
  return p;
}

/// What a constraint sees under a letter that its row does not have: using it does not compile.
struct NoField {};

template <unsigned kLsb, unsigned kWidth>
struct FieldOrNone {
  static constexpr uint32_t of(uint64_t word) { return BitField{0, kLsb, kWidth}.of(word); }
};
template <unsigned kLsb>
struct FieldOrNone<kLsb, 0> {
  static constexpr NoField of(uint64_t) { return {}; }
};

}  // namespace gpusim
