// Helpers on bits of words (helpers.def): fields at places that registers give, permutations and
// sums of products of bytes. As the PTX ISA defines bfind, bfe, bfi, bmsk, shf, prmt, lop3, dp4a
// and dp2a.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim::helpers {

GPUSIM_HD inline uint64_t popcount(uint64_t a, const Uop&) {
  uint64_t count = 0;
  for (; a != 0; a &= a - 1) ++count;
  return count;
}

GPUSIM_HD inline uint64_t find_leading(uint64_t a, const Uop& u) {
  const bool is_signed = (u.imm & 1) != 0, is_wide = (u.imm & 2) != 0, from_top = (u.imm & 4) != 0;
  const int top = is_wide ? 63 : 31;
  if (is_signed && (a >> top & 1) != 0) a = ~a;
  int at = top;
  while (at >= 0 && (a >> at & 1) == 0) --at;
  if (at < 0) return 0xffffffff;
  return static_cast<uint64_t>(from_top ? top - at : at);
}

// A mask of the low bits; all from 64 on.
GPUSIM_HD inline uint64_t low_bits(uint64_t count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

GPUSIM_HD inline uint64_t extract_field(uint64_t a, uint64_t position, uint64_t length,
                                        const Uop& u) {
  const bool is_signed = (u.imm & 1) != 0;
  const uint64_t width = (u.imm & 2) != 0 ? 64 : 32;
  position &= 0xff;
  length &= 0xff;
  a &= low_bits(width);
  if (length == 0) return 0;
  const uint64_t last = position + length - 1 < width - 1 ? position + length - 1 : width - 1;
  const uint64_t sign = is_signed ? 0 - (a >> last & 1) : 0;
  const uint64_t there = position < width ? width - position : 0;
  const uint64_t mask = low_bits(length < there ? length : there);
  const uint64_t bits = position < 64 ? a >> position : 0;
  return ((bits & mask) | (sign & ~mask)) & low_bits(width);
}

// c: position in bits 7:0, length in bits 15:8.
GPUSIM_HD inline uint64_t insert_field(uint64_t a, uint64_t b, uint64_t c, const Uop& u) {
  const uint64_t width = (u.imm & 2) != 0 ? 64 : 32, position = c & 0xff;
  if (position >= width) return b & low_bits(width);
  const uint64_t mask = low_bits(c >> 8 & 0xff) << position;
  return ((b & ~mask) | (a << position & mask)) & low_bits(width);
}

GPUSIM_HD inline uint64_t bit_mask(uint64_t position, uint64_t length, const Uop& u) {
  const bool clamps = (u.imm & 1) != 0;
  position &= clamps ? 0xffffffff : 31;
  length &= clamps ? 0xffffffff : 31;
  if (position >= 32) return 0;
  return low_bits(length) << position & 0xffffffff;
}

GPUSIM_HD inline uint64_t funnel_shift(uint64_t low, uint64_t high, uint64_t count, const Uop& u) {
  const bool to_right = (u.imm & 1) != 0, clamps = (u.imm & 2) != 0;
  const uint64_t n = !clamps ? count & 31 : (count & 0xffffffff) < 32 ? count & 31 : 32;
  const uint64_t both = (high & 0xffffffff) << 32 | (low & 0xffffffff);
  return (to_right ? both >> n : both >> (32 - n)) & 0xffffffff;
}

// The bytes b3..b0 of a and b7..b4 of b, chosen by c. imm: 0 by nibbles of c, 1 f4e, 2 b4e, 3 rc8,
// 4 ecl, 5 ecr, 6 rc16.
GPUSIM_HD inline uint64_t permute_bytes(uint64_t a, uint64_t b, uint64_t c, const Uop& u) {
  const uint64_t bytes = (b & 0xffffffff) << 32 | (a & 0xffffffff);
  const uint32_t s = static_cast<uint32_t>(c & 3);
  uint64_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t from = static_cast<uint32_t>(c >> (4 * i) & 15);
    switch (u.imm) {
      case 1:
        from = (s + i) & 7;
        break;
      case 2:
        from = (s - i) & 7;
        break;
      case 3:
        from = s;
        break;
      case 4:
        from = i > s ? i : s;
        break;
      case 5:
        from = i < s ? i : s;
        break;
      case 6:
        from = (s & 1) * 2 + (i & 1);
        break;
      default:
        break;
    }
    uint64_t byte = bytes >> (8 * (from & 7)) & 0xff;
    if ((from & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// Bit 4 * a + 2 * b + c of imm, for each of 32 places.
GPUSIM_HD inline uint64_t any_logic(uint64_t a, uint64_t b, uint64_t c, const Uop& u) {
  uint64_t result = 0;
  for (uint32_t i = 0; i < 8; ++i)
    if ((u.imm >> i & 1) != 0)
      result |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
  return result & 0xffffffff;
}

GPUSIM_HD inline uint64_t element_of(uint64_t word, uint32_t index, uint32_t bits, bool is_signed) {
  const uint64_t x = word >> (index * bits) & low_bits(bits);
  return is_signed && (x >> (bits - 1) & 1) != 0 ? x | ~low_bits(bits) : x;
}
// c + the sum of products of bytes. imm bit 0: those of a are signed, bit 1: those of b.
GPUSIM_HD inline uint64_t dot_bytes(uint64_t a, uint64_t b, uint64_t c, const Uop& u) {
  for (uint32_t i = 0; i < 4; ++i)
    c += element_of(a, i, 8, (u.imm & 1) != 0) * element_of(b, i, 8, (u.imm & 2) != 0);
  return c & 0xffffffff;
}
// The two halves of a by two bytes of b; imm bit 2: its upper two.
GPUSIM_HD inline uint64_t dot_halves(uint64_t a, uint64_t b, uint64_t c, const Uop& u) {
  const uint32_t first = (u.imm & 4) != 0 ? 2 : 0;
  for (uint32_t i = 0; i < 2; ++i)
    c += element_of(a, i, 16, (u.imm & 1) != 0) * element_of(b, first + i, 8, (u.imm & 2) != 0);
  return c & 0xffffffff;
}

}  // namespace gpusim::helpers
