// Helpers of the cryptographic instructions (helpers.def; Arm ARM, shared/functions/crypto).
// Vectors come as two words, element 0 in the low bits of the first.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim::helpers {

// --- substitution boxes, computed from their definitions

struct ByteTable {
  uint8_t at[256];
};
namespace gf256 {
// The field of 256 elements modulo the polynomial (its bits, x^8 included).
constexpr uint32_t multiply(uint32_t a, uint32_t b, uint32_t polynomial) {
  uint32_t r = 0;
  for (; b != 0; b >>= 1) {
    if (b & 1) r ^= a;
    a <<= 1;
    if (a & 0x100) a ^= polynomial;
  }
  return r;
}
// a^254, which is 0 for 0.
constexpr uint32_t inverse(uint32_t a, uint32_t polynomial) {
  uint32_t r = 1;
  for (int i = 0; i < 7; ++i) {
    a = multiply(a, a, polynomial);
    r = multiply(r, a, polynomial);
  }
  return r;
}
// Bit i is the parity of a and the row, rotated left i times.
constexpr uint32_t circulant(uint32_t a, uint32_t row) {
  uint32_t r = 0;
  for (int i = 0; i < 8; ++i) {
    const uint32_t rotated = (row << i | row >> (8 - i)) & 0xff;
    r |= static_cast<uint32_t>(__builtin_popcount(a & rotated) & 1) << i;
  }
  return r;
}
}  // namespace gf256

// FIPS 197, section 5.1.1.
constexpr ByteTable aes_box(bool inverse) {
  ByteTable t{};
  for (uint32_t x = 0; x < 256; ++x) {
    const uint32_t y = gf256::circulant(gf256::inverse(x, 0x11b), 0xf1) ^ 0x63;
    t.at[inverse ? y : x] = static_cast<uint8_t>(inverse ? x : y);
  }
  return t;
}
// GB/T 32907-2016: an affine map, the inverse modulo x^8 + x^7 + x^6 + x^5 + x^4 + x^2 + 1, and the
// same map again.
constexpr ByteTable sm4_box() {
  ByteTable t{};
  for (uint32_t x = 0; x < 256; ++x) {
    const uint32_t inner = gf256::circulant(x, 0xa7) ^ 0xd3;
    t.at[x] = static_cast<uint8_t>(gf256::circulant(gf256::inverse(inner, 0x1f5), 0xa7) ^ 0xd3);
  }
  return t;
}
static_assert(aes_box(false).at[0x53] == 0xed && aes_box(true).at[0x00] == 0x52);
static_assert(sm4_box().at[0x00] == 0xd6 && sm4_box().at[0xef] == 0x84);

// --- AES. Byte i of the state is row i % 4, column i / 4.

GPUSIM_HD inline uint64_t aes_round(uint64_t a, uint64_t b, const Uop& u) {
  static constexpr ByteTable kBox = aes_box(false), kInverseBox = aes_box(true);
  const bool inverse = (u.imm & 2) != 0;
  uint64_t r = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t row = i & 3, column = (i >> 2) + (u.imm & 1 ? 2 : 0);
    const uint32_t from = (inverse ? column - row : column + row) & 3;
    const uint64_t byte = (from < 2 ? a : b) >> (8 * row + 32 * (from & 1)) & 0xff;
    r |= static_cast<uint64_t>(inverse ? kInverseBox.at[byte] : kBox.at[byte]) << 8 * i;
  }
  return r;
}

// Of two columns: rows in their bytes.
GPUSIM_HD constexpr uint64_t rotate_rows(uint64_t a, int n) {
  constexpr uint64_t kOnes = 0x0000000100000001;
  const uint64_t low = kOnes * (0xffffffffu >> 8 * n);
  return (a >> 8 * n & low) | (a << (32 - 8 * n) & ~low);
}
GPUSIM_HD constexpr uint64_t times_x(uint64_t a) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  return (a & 0x7f * kOnes) << 1 ^ (a >> 7 & kOnes) * 0x1b;
}
GPUSIM_HD inline uint64_t aes_mix(uint64_t a, const Uop& u) {
  // The inverse matrix is this one times 5 + 4 x^2.
  if (u.imm & 1) a ^= times_x(times_x(a ^ rotate_rows(a, 2)));
  const uint64_t next = rotate_rows(a, 1);
  return times_x(a ^ next) ^ next ^ rotate_rows(a, 2) ^ rotate_rows(a, 3);
}

// --- hashes: two rounds a helper, so that state and message fit three words

GPUSIM_HD constexpr uint32_t low_word(uint64_t a) { return static_cast<uint32_t>(a); }
GPUSIM_HD constexpr uint32_t high_word(uint64_t a) { return static_cast<uint32_t>(a >> 32); }
GPUSIM_HD constexpr uint64_t two_words(uint32_t low, uint32_t high) {
  return low | uint64_t{high} << 32;
}
GPUSIM_HD constexpr uint32_t rotate_left(uint32_t a, int n) { return a << n | a >> (32 - n); }
GPUSIM_HD constexpr uint32_t choose(uint32_t x, uint32_t y, uint32_t z) {
  return z ^ (x & (y ^ z));
}
GPUSIM_HD constexpr uint32_t majority(uint32_t x, uint32_t y, uint32_t z) {
  return (x & y) | ((x | y) & z);
}

// State a b, c d; message words, the first with e added. Result: the new a after each round.
// imm: 0 choose, 1 parity, 2 majority.
GPUSIM_HD inline uint64_t sha1_rounds(uint64_t ab, uint64_t cd, uint64_t w, const Uop& u) {
  uint32_t a = low_word(ab), b = high_word(ab), c = low_word(cd), d = high_word(cd), e = 0;
  for (int i = 0; i < 2; ++i) {
    const uint32_t f = u.imm == 0 ? choose(b, c, d) : u.imm == 1 ? b ^ c ^ d : majority(b, c, d);
    const uint32_t next = rotate_left(a, 5) + f + e + low_word(w >> 32 * i);
    e = d;
    d = c;
    c = rotate_left(b, 30);
    b = a;
    a = next;
  }
  return two_words(b, a);
}

// State e f, g h; message words with d and c added. Result: the new e after each round.
GPUSIM_HD inline uint64_t sha256_e(uint64_t ef, uint64_t gh, uint64_t w, const Uop&) {
  uint32_t e = low_word(ef), f = high_word(ef), g = low_word(gh), h = high_word(gh);
  for (int i = 0; i < 2; ++i) {
    const uint32_t sigma = rotate_left(e, 26) ^ rotate_left(e, 21) ^ rotate_left(e, 7);
    const uint32_t next = h + sigma + choose(e, f, g) + low_word(w >> 32 * i);
    h = g;
    g = f;
    f = e;
    e = next;
  }
  return two_words(f, e);
}
// State a b, c d and sha256_e's result, which has d and c in it. Result: the new a after each
// round.
GPUSIM_HD inline uint64_t sha256_a(uint64_t ab, uint64_t cd, uint64_t new_e, const Uop&) {
  uint32_t a = low_word(ab), b = high_word(ab), c = low_word(cd), d = high_word(cd);
  for (int i = 0; i < 2; ++i) {
    const uint32_t sigma = rotate_left(a, 30) ^ rotate_left(a, 19) ^ rotate_left(a, 10);
    const uint32_t next = low_word(new_e >> 32 * i) - d + sigma + majority(a, b, c);
    d = c;
    c = b;
    b = a;
    a = next;
  }
  return two_words(b, a);
}

// The upper half of SM3TT1A .. SM3TT2B: element 3 and the new word above it. x: the message word
// and element 3 of Vn. imm bit 0: a B form, bit 1: TT2.
GPUSIM_HD inline uint64_t sm3_tt(uint64_t low, uint64_t high, uint64_t x, const Uop& u) {
  const bool second = (u.imm & 2) != 0;
  const uint32_t e0 = low_word(low), e1 = high_word(low), e2 = low_word(high), e3 = high_word(high);
  const uint32_t f = !(u.imm & 1) ? e1 ^ e2 ^ e3
                     : second     ? choose(e3, e2, e1)
                                  : majority(e1, e2, e3);
  uint32_t t = f + e0 + low_word(x) + (second ? high_word(x) : high_word(x) ^ rotate_left(e3, 12));
  if (second) t ^= rotate_left(t, 9) ^ rotate_left(t, 17);
  return two_words(e3, t);
}

// Two rounds on a state of four words. imm: 0 of SM4E, 1 of SM4EKEY.
GPUSIM_HD inline uint64_t sm4_rounds(uint64_t low, uint64_t high, uint64_t keys, const Uop& u) {
  static constexpr ByteTable kBox = sm4_box();
  uint32_t s[6] = {low_word(low), high_word(low), low_word(high), high_word(high), 0, 0};
  for (int i = 0; i < 2; ++i) {
    const uint32_t x = s[i + 1] ^ s[i + 2] ^ s[i + 3] ^ low_word(keys >> 32 * i);
    uint32_t y = 0;
    for (int k = 0; k < 32; k += 8) y |= static_cast<uint32_t>(kBox.at[x >> k & 0xff]) << k;
    y ^= u.imm == 0
             ? rotate_left(y, 2) ^ rotate_left(y, 10) ^ rotate_left(y, 18) ^ rotate_left(y, 24)
             : rotate_left(y, 13) ^ rotate_left(y, 23);
    s[i + 4] = s[i] ^ y;
  }
  return two_words(s[4], s[5]);
}

}  // namespace gpusim::helpers
