// Helpers on bits (uir/helpers_bits.h), shifts that clamp, and NaNs of all ones, against statements
// bit by bit, as the PTX ISA has them, and values that it gives as examples.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "device_sim/uir/helpers_bits.h"
#include "device_sim/uir/semantics.h"
#include "device_sim/uir/softfloat/arith.h"
#include "device_sim/uir/softfloat/convert.h"

namespace gpusim {
namespace {

using SD = sem::ScalarDomain;

uint64_t bit(uint64_t x, int i) { return x >> i & 1; }
Uop with(uint64_t imm) { return {.imm = imm}; }

TEST_CASE("fields are extracted and inserted bit by bit") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    const uint64_t a = random(), b = random();
    const uint64_t position = random() % (round % 3 ? 70 : 300),
                   length = random() % (round % 5 ? 70 : 300);
    const bool is_signed = random() % 2, is_wide = random() % 2;
    const int msb = is_wide ? 63 : 31, at = int(position & 0xff), count = int(length & 0xff);
    const uint64_t sign = is_signed && count != 0 ? bit(a, std::min(at + count - 1, msb)) : 0;
    uint64_t extracted = 0, inserted = is_wide ? b : b & 0xffffffff;
    for (int i = 0; i <= msb; ++i)
      extracted |= (i < count && at + i <= msb ? bit(a, at + i) : sign) << i;
    for (int i = 0; i < count && at + i <= msb; ++i)
      inserted = (inserted & ~(uint64_t{1} << (at + i))) | (bit(a, i) << (at + i));
    const Uop u = with(uint64_t{is_signed} | uint64_t{is_wide} << 1);
    CAPTURE(a);
    CAPTURE(position);
    CAPTURE(length);
    REQUIRE(helpers::extract_field(a, position, length, u) == extracted);
    REQUIRE(helpers::insert_field(a, b, uint64_t(at) | uint64_t(count) << 8, u) == inserted);
  }
}

TEST_CASE("bits are counted and found") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 5000; ++round) {
    const uint64_t a = random() >> (random() % 64) << (random() % 64);
    uint64_t count = 0;
    for (int i = 0; i < 64; ++i) count += bit(a, i);
    REQUIRE(helpers::popcount(a, {}) == count);
    for (uint64_t flags = 0; flags < 8; ++flags) {
      const int msb = flags & 2 ? 63 : 31;
      const uint64_t like = flags & 1 ? bit(a, msb) : 0;
      uint64_t found = 0xffffffff;
      for (int i = 0; i <= msb; ++i)
        if (bit(a, i) != like) found = uint64_t(i);
      if ((flags & 4) != 0 && found != 0xffffffff) found = uint64_t(msb) - found;
      REQUIRE(helpers::find_leading(a, with(flags)) == found);
    }
  }
}

TEST_CASE("masks, permutations, logic") {
  std::mt19937_64 random(3);
  CHECK(helpers::bit_mask(4, 8, with(1)) == 0xff0);
  CHECK(helpers::bit_mask(30, 8, with(1)) == 0xc0000000);
  CHECK(helpers::bit_mask(0, 40, with(1)) == 0xffffffff);
  CHECK(helpers::bit_mask(32, 8, with(1)) == 0);
  CHECK(helpers::bit_mask(36, 40, with(0)) == 0xff0);
  // The table of the manual, prmt: which bytes of {b, a} come where, from the low byte on.
  constexpr int kModes[6][4][4] = {
      {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}},   // f4e
      {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}},   // b4e
      {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}},   // rc8
      {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}},   // ecl
      {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}},   // ecr
      {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}};  // rc16
  for (int round = 0; round < 500; ++round) {
    const uint64_t a = random() & 0xffffffff, b = random() & 0xffffffff, c = random() & 0xffffffff;
    const auto byte = [&](uint64_t i) {
      return (i < 4 ? a >> (8 * i) : b >> (8 * (i - 4))) & 0xff;
    };
    uint64_t chosen = 0, logic = 0;
    for (int i = 0; i < 4; ++i) {
      const uint64_t nibble = c >> (4 * i) & 15;
      uint64_t x = byte(nibble & 7);
      if (nibble & 8) x = x & 0x80 ? 0xff : 0;
      chosen |= x << (8 * i);
    }
    REQUIRE(helpers::permute_bytes(a, b, c, with(0)) == chosen);
    for (uint64_t mode = 1; mode < 7; ++mode) {
      uint64_t expected = 0;
      for (int i = 0; i < 4; ++i) expected |= byte(uint64_t(kModes[mode - 1][c & 3][i])) << (8 * i);
      CAPTURE(mode);
      REQUIRE(helpers::permute_bytes(a, b, c, with(mode)) == expected);
    }
    const uint64_t table = random() & 0xff;
    for (int i = 0; i < 32; ++i)
      logic |= bit(table, int(4 * bit(a, i) + 2 * bit(b, i) + bit(c, i))) << i;
    REQUIRE(helpers::any_logic(a, b, c, with(table)) == logic);
  }
}

TEST_CASE("funnel shifts and sums of products") {
  std::mt19937_64 random(4);
  for (int round = 0; round < 3000; ++round) {
    const uint64_t a = random(), b = random(), c = random() % 3 ? random() % 40 : random();
    const auto low = static_cast<uint32_t>(a), high = static_cast<uint32_t>(b),
               count = static_cast<uint32_t>(c);
    for (const bool clamps : {false, true}) {
      const uint32_t n = clamps ? std::min(count, 32u) : count & 31;
      const uint32_t left = n == 0 ? high : n == 32 ? low : high << n | low >> (32 - n);
      const uint32_t right = n == 0 ? low : n == 32 ? high : high << (32 - n) | low >> n;
      REQUIRE(helpers::funnel_shift(a, b, c, with(clamps ? 2 : 0)) == left);
      REQUIRE(helpers::funnel_shift(a, b, c, with(clamps ? 3 : 1)) == right);
    }
    for (uint64_t flags = 0; flags < 8; ++flags) {
      int64_t bytes = static_cast<int32_t>(c), halves = bytes;
      const auto element = [](uint64_t x, bool is_signed, int size) -> int64_t {
        if (size == 8) return is_signed ? int64_t{int8_t(x)} : int64_t{uint8_t(x)};
        return is_signed ? int64_t{int16_t(x)} : int64_t{uint16_t(x)};
      };
      for (int i = 0; i < 4; ++i)
        bytes += element(a >> (8 * i), flags & 1, 8) * element(b >> (8 * i), flags & 2, 8);
      for (int i = 0; i < 2; ++i)
        halves += element(a >> (16 * i), flags & 1, 16) *
                  element(b >> (8 * i + (flags & 4 ? 16 : 0)), flags & 2, 8);
      if (flags < 4) REQUIRE(helpers::dot_bytes(a, b, c, with(flags)) == uint32_t(bytes));
      REQUIRE(helpers::dot_halves(a, b, c, with(flags)) == uint32_t(halves));
    }
  }
}

TEST_CASE("shifts with a register's count clamp it at the width") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 3000; ++round) {
    const uint64_t a = random(), b = random() % 3 ? random() % 70 | random() << 32 : random();
    const uint64_t n = b & 0xffffffff;
    const auto s = static_cast<int64_t>(a);
    const auto w = static_cast<int32_t>(a);
    REQUIRE(sem::lslc64<SD>(a, b) == (n > 63 ? 0 : a << n));
    REQUIRE(sem::lsrc64<SD>(a, b) == (n > 63 ? 0 : a >> n));
    REQUIRE(sem::asrc64<SD>(a, b) == uint64_t(n > 63 ? s >> 63 : s >> n));
    REQUIRE(sem::lslc32<SD>(a, b) == (n > 31 ? 0 : uint32_t(a) << n));
    REQUIRE(sem::lsrc32<SD>(a, b) == (n > 31 ? 0 : uint32_t(a) >> n));
    REQUIRE(sem::asrc32<SD>(a, b) == uint32_t(n > 31 ? w >> 31 : w >> n));
  }
}

TEST_CASE("NaNs of all ones") {
  using namespace softfloat;
  uint64_t state = kFpFullNan;
  CHECK(is_default_mode(state));
  CHECK(fp_add<F32>(0x7fc01234, 0x3f800000, state) == 0x7fffffff);
  CHECK(fp_sub<F32>(0xff800000, 0xff800000, state) == 0x7fffffff);
  CHECK(fp_add<F16>(0xfe01, 0, state) == 0x7fff);
  CHECK(fp_add<F64>(0xfff0000000000001, 0, state) == 0xfff8000000000001);
  CHECK(fp_sub<F64>(0x7ff0000000000000, 0x7ff0000000000000, state) == 0xfff8000000000000);
  CHECK(fp_convert<F32, F64>(0xfff8000000000001, state) == 0x7fffffff);
  CHECK(fp_convert<F16, F32>(0xffc00001, state) == 0x7fff);
  uint64_t arm = 0;
  CHECK(fp_sub<F32>(0xff800000, 0xff800000, arm) == 0x7fc00000);
}

}  // namespace
}  // namespace gpusim
