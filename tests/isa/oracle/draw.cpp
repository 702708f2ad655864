#include "tests/isa/oracle/draw.h"

#include <bit>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "tests/isa/oracle/window.h"

namespace gpusim::oracle {

uint64_t random_value(Rng& rng) {
  static constexpr uint64_t kSpecial[] = {0,
                                          1,
                                          2,
                                          3,
                                          7,
                                          8,
                                          15,
                                          31,
                                          32,
                                          33,
                                          63,
                                          64,
                                          65,
                                          0x7f,
                                          0x80,
                                          0xff,
                                          0x100,
                                          0x7fff,
                                          0x8000,
                                          0xffff,
                                          0x10000,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x100000000,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          0x5555555555555555,
                                          0xaaaaaaaaaaaaaaaa};
  const uint64_t r = rng();
  switch (rng() % 8) {
    case 0:
      return kSpecial[r % std::size(kSpecial)];
    case 1:
      return ~kSpecial[r % std::size(kSpecial)];
    case 2:
      return -kSpecial[r % std::size(kSpecial)] & (one_in(rng, 2) ? ~0ull : 0xffffffff);
    case 3:
      return r & 0xffffffff;
    case 4:
      return static_cast<uint64_t>(static_cast<int64_t>(r) >> (rng() % 64));
    case 5:
      return r >> (rng() % 64);
    default:
      return r;
  }
}

uint64_t random_fp_word(Rng& rng) {
  const auto one = [&](unsigned bits, unsigned fraction_bits) -> uint64_t {
    const uint64_t mask = ~uint64_t{0} >> (64 - bits);
    const uint64_t sign = rng() & uint64_t{1} << (bits - 1);
    const uint64_t exponent_max = (uint64_t{1} << (bits - 1 - fraction_bits)) - 1;
    const uint64_t fraction_mask = (uint64_t{1} << fraction_bits) - 1;
    const uint64_t bias = exponent_max / 2;
    uint64_t fraction = rng() & fraction_mask;
    if (one_in(rng, 3)) fraction &= fraction_mask << (rng() % fraction_bits);
    if (one_in(rng, 8)) fraction = fraction_mask;
    uint64_t exponent = 0;
    switch (rng() % 8) {
      case 0:
        return sign;  // zero
      case 1:
        exponent = exponent_max;
        break;  // infinity or NaN
      case 2:
        exponent = 0;
        break;  // subnormal
      case 3:
        return rng() & mask;
      case 4:
        exponent = exponent_max - rng() % 3;
        break;  // large
      case 5:
        exponent = 1 + rng() % 3;
        break;  // small
      default:
        exponent = (bias - 20 + rng() % 90) % exponent_max;  // usual
    }
    if (exponent == exponent_max && one_in(rng, 2)) fraction = 0;
    return sign | exponent << fraction_bits | fraction;
  };
  uint64_t word = 0;
  switch (rng() % 4) {
    case 0:
      for (unsigned i = 0; i < 4; ++i) word |= one(16, 10) << (16 * i);
      return word;
    case 1:
      return one(32, 23) | one(32, 23) << 32;
    case 2:
      return random_value(rng);
    default:
      return one(64, 52);
  }
}

uint64_t random_address(Rng& rng, unsigned room) {
  if (one_in(rng, 12)) {
    // Around the window's ends and its first page that can only be read.
    const uint64_t edges[] = {ORACLE_WINDOW, ORACLE_READ_ONLY, ORACLE_WINDOW + ORACLE_WINDOW_BYTES};
    const uint64_t edge = edges[rng() % std::size(edges)];
    return one_in(rng, 2) ? edge - rng() % (2 * room + 8) : edge + rng() % 32;
  }
  uint64_t offset = rng() % (ORACLE_WINDOW_BYTES - 1024) + 512;
  if (!one_in(rng, 4)) offset &= ~uint64_t{std::bit_ceil(room) - 1};
  return ORACLE_WINDOW + offset;
}

uint64_t test_seed() {
  if (const char* text = std::getenv("GPUSIM_SEED")) return std::strtoull(text, nullptr, 0);
  return std::random_device{}();
}

std::vector<std::string> backends_under_test() {
  if (const char* only = std::getenv("GPUSIM_BACKEND")) return {only};
  return {"scalar", "simd"};
}

unsigned case_count(unsigned usual, unsigned in_long_runs) {
  if (const char* text = std::getenv("GPUSIM_ORACLE_CASES"))
    return static_cast<unsigned>(std::strtoul(text, nullptr, 0));
  const char* is_long = std::getenv("GPUSIM_LONG");
  return is_long != nullptr && std::string_view(is_long) != "0" ? in_long_runs : usual;
}

}  // namespace gpusim::oracle
