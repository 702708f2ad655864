// Helpers of vector instructions (uir/helpers.def): elementwise loops over a 64-bit word.
#pragma once
#include <cstdint>

#include "device_sim/uir/helpers_fp.h"
#include "device_sim/uir/uop.h"

namespace gpusim::helpers {

GPUSIM_HD constexpr uint64_t ones(int bits) { return ~uint64_t{0} >> (64 - bits); }
GPUSIM_HD constexpr int64_t as_signed(uint64_t x, int bits) {
  return static_cast<int64_t>(x << (64 - bits)) >> (64 - bits);
}
GPUSIM_HD constexpr int width_of(const Uop& u) { return 8 << (u.aux & 3); }
GPUSIM_HD constexpr int float_width(const Uop& u) { return 16 << (u.aux & 3); }

// f(elements of the sources...) for all elements of `bits` bits.
template <class F, class... A>
GPUSIM_HD uint64_t each(int bits, F f, A... a) {
  uint64_t r = 0;
  for (int i = 0; i < 64; i += bits) r |= (f(((a >> i) & ones(bits))...) & ones(bits)) << i;
  return r;
}

// --- floating point
GPUSIM_HD constexpr uint32_t inner_aux(const Uop& u) { return (u.imm >> 16) & 0xff; }

GPUSIM_HD inline uint64_t each_fround(uint64_t a, const Uop& u, uint64_t& fp) {
  return each(
      float_width(u), [&](uint64_t x) { return fround(x, inner_aux(u), fp); }, a);
}
GPUSIM_HD inline uint64_t each_fround_n(uint64_t a, const Uop& u, uint64_t& fp) {
  const auto rounding = static_cast<FpRounding>(inner_aux(u) >> 2);
  const int int_bits = static_cast<int>((u.imm >> 24) & 0xff);
  return each(
      float_width(u),
      [&](uint64_t x) {
        return with_format(u.aux, [&]<class F>() {
          return softfloat::fp_round_int_n<F>(x, rounding_of(rounding, fp), int_bits, fp);
        });
      },
      a);
}
GPUSIM_HD inline uint64_t each_f2i(uint64_t a, const Uop& u, uint64_t& fp) {
  const int bits = float_width(u), fraction = static_cast<int>((u.imm >> 24) & 0xff);
  return each(
      bits, [&](uint64_t x) { return f2i(x, inner_aux(u), fraction, bits, fp); }, a);
}
GPUSIM_HD inline uint64_t each_i2f(uint64_t a, const Uop& u, uint64_t& fp) {
  const int bits = float_width(u), fraction = static_cast<int>((u.imm >> 24) & 0xff);
  return each(
      bits, [&](uint64_t x) { return i2f(x, inner_aux(u), fraction, bits, fp); }, a);
}
GPUSIM_HD inline uint64_t each_fmisc1(uint64_t a, const Uop& u, uint64_t& fp) {
  return each(
      float_width(u), [&](uint64_t x) { return fmisc1(x, inner_aux(u), fp); }, a);
}
GPUSIM_HD inline uint64_t each_fmisc2(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  return each(
      float_width(u), [&](uint64_t x, uint64_t y) { return fmisc2(x, y, inner_aux(u), fp); }, a, b);
}
GPUSIM_HD inline uint64_t each_fminmax(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  return each(
      float_width(u), [&](uint64_t x, uint64_t y) { return fminmax(x, y, inner_aux(u), fp); }, a,
      b);
}
GPUSIM_HD inline uint64_t each_fmisc3(uint64_t a, uint64_t b, uint64_t c, const Uop& u,
                                      uint64_t& fp) {
  return each(
      float_width(u),
      [&](uint64_t x, uint64_t y, uint64_t z) { return fmisc3(x, y, z, inner_aux(u), fp); }, a, b,
      c);
}

template <class F>
GPUSIM_HD bool test_as(uint64_t x, uint64_t y, FpTest test, uint64_t& fp) {
  if (test == FpTest::kAbsGe || test == FpTest::kAbsGt) {
    x = softfloat::fp_abs<F>(x);
    y = softfloat::fp_abs<F>(y);
  }
  switch (test) {
    case FpTest::kEq:
      return softfloat::fp_compare_eq<F>(x, y, fp);
    case FpTest::kGe:
    case FpTest::kAbsGe:
      return softfloat::fp_compare_ge<F>(x, y, fp);
    default:
      return softfloat::fp_compare_gt<F>(x, y, fp);
  }
}
GPUSIM_HD inline uint64_t each_fcompare(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const auto test = static_cast<FpTest>(inner_aux(u));
  const auto f = static_cast<FpFormat>(u.aux);
  return each(
      float_width(u),
      [&](uint64_t x, uint64_t y) {
        if (f != FpFormat::kF16 && is_plain(fp) && is_ordered(f, x, y)) {
          double p = to_double(f, x), q = to_double(f, y);
          if (test >= FpTest::kAbsGe) {
            p = p < 0 ? -p : p;
            q = q < 0 ? -q : q;
          }
          const bool holds = test == FpTest::kEq                             ? p == q
                             : test == FpTest::kGe || test == FpTest::kAbsGe ? p >= q
                                                                             : p > q;
          return holds ? ~uint64_t{0} : uint64_t{0};
        }
        return with_format(u.aux, [&]<class F>() -> uint64_t {
          return test_as<F>(x, y, test, fp) ? ~uint64_t{0} : 0;
        });
      },
      a, b);
}

GPUSIM_HD inline uint64_t fwiden(uint64_t a, const Uop& u, uint64_t& fp) {
  const int bits = float_width(u);
  const uint32_t aux = (u.aux & 3u) | ((u.aux & 3u) + 1) << 2;
  if (u.imm >> 24 & 1) a >>= 32;
  uint64_t r = 0;
  for (int i = 0; i < 32; i += bits) r |= fconvert((a >> i) & ones(bits), aux, fp) << 2 * i;
  return r;
}
GPUSIM_HD inline uint64_t fnarrow(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int bits = float_width(u);
  const uint32_t aux = ((u.aux & 3u) + 1) | (u.aux & 3u) << 2 | (u.imm >> 24 & 1) << 4;
  uint64_t r = 0;
  for (int i = 0; i < 32; i += bits) {
    r |= fconvert((a >> 2 * i) & ones(2 * bits), aux, fp) << i;
  }
  for (int i = 0; i < 32; i += bits) {
    r |= fconvert((b >> 2 * i) & ones(2 * bits), aux, fp) << (32 + i);
  }
  return r;
}

// --- saturation. Values travel as 128-bit signed integers cut down to what is needed: a sign, and
// whether the magnitude overflowed 64 bits.
GPUSIM_HD constexpr uint64_t signed_max(int bits) { return ones(bits) >> 1; }
GPUSIM_HD constexpr uint64_t signed_min(int bits) { return uint64_t{1} << (bits - 1); }
GPUSIM_HD constexpr uint64_t saturate_to(uint64_t limit, uint64_t& fp) {
  fp |= softfloat::kFpsrQc;
  return limit;
}

GPUSIM_HD constexpr uint64_t add_sat_signed(uint64_t x, uint64_t y, int bits, uint64_t& fp) {
  const uint64_t sum = x + y;
  const bool overflow = (~(x ^ y) & (x ^ sum)) >> (bits - 1) & 1;
  if (!overflow) return sum;
  return saturate_to(x >> (bits - 1) & 1 ? signed_min(bits) : signed_max(bits), fp);
}
GPUSIM_HD constexpr uint64_t sub_sat_signed(uint64_t x, uint64_t y, int bits, uint64_t& fp) {
  const uint64_t difference = x - y;
  const bool overflow = ((x ^ y) & (x ^ difference)) >> (bits - 1) & 1;
  if (!overflow) return difference;
  return saturate_to(x >> (bits - 1) & 1 ? signed_min(bits) : signed_max(bits), fp);
}
GPUSIM_HD inline uint64_t sqadd(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);
  return each(
      w, [&](uint64_t x, uint64_t y) { return add_sat_signed(x, y, w, fp); }, a, b);
}
GPUSIM_HD inline uint64_t sqsub(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);
  return each(
      w, [&](uint64_t x, uint64_t y) { return sub_sat_signed(x, y, w, fp); }, a, b);
}
GPUSIM_HD inline uint64_t uqadd(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);
  return each(
      w,
      [&](uint64_t x, uint64_t y) {
        const uint64_t sum = (x + y) & ones(w);
        return sum < x ? saturate_to(ones(w), fp) : sum;
      },
      a, b);
}
GPUSIM_HD inline uint64_t uqsub(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  return each(
      width_of(u), [&](uint64_t x, uint64_t y) { return x < y ? saturate_to(0, fp) : x - y; }, a,
      b);
}
// SUQADD: signed x plus unsigned y, signed result. Only the upper bound can be passed.
GPUSIM_HD inline uint64_t suqadd(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);
  return each(
      w,
      [&](uint64_t x, uint64_t y) {
        // How far x is from the largest value, as an unsigned number.
        const uint64_t room = (signed_max(w) - x) & ones(w);
        return y > room ? saturate_to(signed_max(w), fp) : x + y;
      },
      a, b);
}
// USQADD: unsigned x plus signed y, unsigned result.
GPUSIM_HD inline uint64_t usqadd(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);
  return each(
      w,
      [&](uint64_t x, uint64_t y) {
        const uint64_t sum = (x + y) & ones(w);
        if (y & signed_min(w)) return sum > x ? saturate_to(0, fp) : sum;
        return sum < x ? saturate_to(ones(w), fp) : sum;
      },
      a, b);
}
GPUSIM_HD inline uint64_t sqneg(uint64_t a, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);
  return each(
      w, [&](uint64_t x) { return x == signed_min(w) ? saturate_to(signed_max(w), fp) : 0 - x; },
      a);
}
GPUSIM_HD inline uint64_t sqabs(uint64_t a, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);
  return each(
      w,
      [&](uint64_t x) {
        if (x == signed_min(w)) return saturate_to(signed_max(w), fp);
        return x & signed_min(w) ? 0 - x : x;
      },
      a);
}

// x shifted left by the signed low byte of `by` (right if negative) without loss, then cut: the
// machinery of SSHL, USHL and their rounding and saturating kin.
GPUSIM_HD constexpr uint64_t shift_right_rounding(uint64_t x, int n, bool is_signed, bool rounding,
                                                  int bits) {
  // n >= 1. A rounding shift by more than the width gives 0: the sign bits round up to it.
  if (is_signed) {
    const int64_t s = as_signed(x, bits);
    if (n > 63) {
      if (rounding) return 0;
      return s < 0 ? ~uint64_t{0} : 0;
    }
    const uint64_t carry = rounding ? static_cast<uint64_t>(s >> (n - 1)) & 1 : 0;
    return static_cast<uint64_t>(s >> n) + carry;
  }
  if (n > 64) return 0;
  const uint64_t carry = rounding ? x >> (n - 1) & 1 : 0;
  return (n == 64 ? 0 : x >> n) + carry;
}

GPUSIM_HD inline uint64_t vshift(uint64_t a, uint64_t b, const Uop& u) {
  const int w = width_of(u);
  const bool is_signed = u.imm & 1, rounding = u.imm & 2;
  return each(
      w,
      [&](uint64_t x, uint64_t y) -> uint64_t {
        const int n = static_cast<int8_t>(y);
        if (n >= 0) return n >= w ? 0 : x << n;
        return shift_right_rounding(x, -n, is_signed, rounding, w);
      },
      a, b);
}
GPUSIM_HD inline uint64_t sqshl(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);
  const bool rounding = u.imm >> 16 & 1;
  return each(
      w,
      [&](uint64_t x, uint64_t y) -> uint64_t {
        const int n = static_cast<int8_t>(y);
        if (n < 0) return shift_right_rounding(x, -n, true, rounding, w);
        if (x == 0) return 0;
        const int64_t s = as_signed(x, w);
        const uint64_t shifted = n >= w ? 0 : x << n;
        if (n < w && as_signed(shifted, w) >> n == s) return shifted;
        return saturate_to(s < 0 ? signed_min(w) : signed_max(w), fp);
      },
      a, b);
}
GPUSIM_HD inline uint64_t uqshl(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);
  const bool rounding = u.imm >> 16 & 1;
  return each(
      w,
      [&](uint64_t x, uint64_t y) -> uint64_t {
        const int n = static_cast<int8_t>(y);
        if (n < 0) return shift_right_rounding(x, -n, false, rounding, w);
        if (x == 0) return 0;
        const uint64_t shifted = n >= w ? 0 : (x << n) & ones(w);
        if (n < w && shifted >> n == x) return shifted;
        return saturate_to(ones(w), fp);
      },
      a, b);
}
GPUSIM_HD inline uint64_t sqshlu(uint64_t a, const Uop& u, uint64_t& fp) {
  const int w = width_of(u), n = static_cast<int>(u.imm >> 16 & 0xff);
  return each(
      w,
      [&](uint64_t x) -> uint64_t {
        if (x & signed_min(w)) return saturate_to(0, fp);
        const uint64_t shifted = (x << n) & ones(w);
        return shifted >> n == x ? shifted : saturate_to(ones(w), fp);
      },
      a);
}
GPUSIM_HD inline uint64_t sqdmulh(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);  // 16 or 32
  const int64_t round = u.imm >> 16 & 1 ? int64_t{1} << (w - 2) : 0;
  return each(
      w,
      [&](uint64_t x, uint64_t y) -> uint64_t {
        if (x == signed_min(w) && y == signed_min(w)) return saturate_to(signed_max(w), fp);
        return static_cast<uint64_t>((as_signed(x, w) * as_signed(y, w) + round) >> (w - 1));
      },
      a, b);
}
// In units of half the element: twice the product and c's place need one bit more than 64.
GPUSIM_HD inline uint64_t sqrdmlah(uint64_t a, uint64_t b, uint64_t c, const Uop& u, uint64_t& fp) {
  const int w = width_of(u);  // 16 or 32
  const bool subtract = u.imm >> 16 & 1;
  return each(
      w,
      [&](uint64_t x, uint64_t y, uint64_t z) -> uint64_t {
        const int64_t product = as_signed(x, w) * as_signed(y, w);
        const int64_t start = as_signed(z, w) * (int64_t{1} << (w - 1)) + (int64_t{1} << (w - 2));
        const int64_t sum = (subtract ? start - product : start + product) >> (w - 1);
        if (sum > static_cast<int64_t>(signed_max(w))) return saturate_to(signed_max(w), fp);
        if (sum < -static_cast<int64_t>(signed_min(w))) return saturate_to(signed_min(w), fp);
        return static_cast<uint64_t>(sum);
      },
      a, b, c);
}
GPUSIM_HD inline uint64_t sqdmull(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u), from = u.imm >> 16 & 1 ? 32 : 0;
  uint64_t r = 0;
  for (int i = 0; i < 32; i += w) {
    const uint64_t x = a >> (from + i) & ones(w), y = b >> (from + i) & ones(w);
    const bool overflow = x == signed_min(w) && y == signed_min(w);
    const uint64_t product = overflow
                                 ? saturate_to(signed_max(2 * w), fp)
                                 : static_cast<uint64_t>(as_signed(x, w) * as_signed(y, w)) << 1;
    r |= (product & ones(2 * w)) << 2 * i;
  }
  return r;
}
GPUSIM_HD inline uint64_t qshrn(uint64_t a, uint64_t b, const Uop& u, uint64_t& fp) {
  const int w = width_of(u), n = static_cast<int>(u.imm >> 16 & 0xff);
  const bool rounding = u.imm >> 24 & 1, from_signed = u.imm >> 25 & 1, to_signed = u.imm >> 26 & 1;
  const auto narrow = [&](uint64_t x) -> uint64_t {
    const uint64_t v = n == 0 ? (from_signed ? static_cast<uint64_t>(as_signed(x, 2 * w)) : x)
                              : shift_right_rounding(x, n, from_signed, rounding, 2 * w);
    const bool negative = from_signed && static_cast<int64_t>(v) < 0;
    if (to_signed) {
      if (negative) return 0 - v > signed_min(w) ? saturate_to(signed_min(w), fp) : v;
      return v > signed_max(w) ? saturate_to(signed_max(w), fp) : v;
    }
    if (negative) return saturate_to(0, fp);
    return v > ones(w) ? saturate_to(ones(w), fp) : v;
  };
  uint64_t r = 0;
  for (int i = 0; i < 32; i += w) {
    r |= (narrow((a >> 2 * i) & ones(2 * w)) & ones(w)) << i;
  }
  for (int i = 0; i < 32; i += w) {
    r |= (narrow((b >> 2 * i) & ones(2 * w)) & ones(w)) << (32 + i);
  }
  return r;
}

// --- plain integers
GPUSIM_HD inline uint64_t vclz(uint64_t a, const Uop& u) {
  const int w = width_of(u);
  return each(
      w,
      [&](uint64_t x) {
        return static_cast<uint64_t>(softfloat::count_leading_zeros(x) - (64 - w));
      },
      a);
}
GPUSIM_HD inline uint64_t vcls(uint64_t a, const Uop& u) {
  const int w = width_of(u);
  return each(
      w,
      [&](uint64_t x) {
        const uint64_t changes = (x ^ (x >> 1)) & (ones(w) >> 1);
        return static_cast<uint64_t>(softfloat::count_leading_zeros(changes) - (64 - w) - 1);
      },
      a);
}
GPUSIM_HD constexpr uint64_t swap_runs(uint64_t a, uint64_t low_runs, int n) {
  return (a >> n & low_runs) | (a & low_runs) << n;
}
GPUSIM_HD inline uint64_t vrbit(uint64_t a, const Uop&) {
  a = swap_runs(a, 0x5555555555555555, 1);
  a = swap_runs(a, 0x3333333333333333, 2);
  return swap_runs(a, 0x0f0f0f0f0f0f0f0f, 4);
}
GPUSIM_HD inline uint64_t vrev(uint64_t a, const Uop& u) {
  for (int n = width_of(u); n < 64 && n < static_cast<int>(u.imm); n *= 2) {
    a = swap_runs(a, ~uint64_t{0} / ((uint64_t{1} << n) + 1), n);
  }
  return a;
}
GPUSIM_HD inline uint64_t vsrshr(uint64_t a, const Uop& u) {
  const int w = width_of(u), n = static_cast<int>(u.imm);
  return each(
      w, [&](uint64_t x) { return shift_right_rounding(x, n, true, true, w); }, a);
}
GPUSIM_HD inline uint64_t vurshr(uint64_t a, const Uop& u) {
  const int w = width_of(u), n = static_cast<int>(u.imm);
  return each(
      w, [&](uint64_t x) { return shift_right_rounding(x, n, false, true, w); }, a);
}
GPUSIM_HD inline uint64_t vurecpe(uint64_t a, const Uop&) {
  return each(
      32, [](uint64_t x) { return softfloat::unsigned_recip_estimate(x); }, a);
}
GPUSIM_HD inline uint64_t vursqrte(uint64_t a, const Uop&) {
  return each(
      32, [](uint64_t x) { return softfloat::unsigned_rsqrt_estimate(x); }, a);
}
GPUSIM_HD inline uint64_t vhadd(uint64_t a, uint64_t b, const Uop& u) {
  const int w = width_of(u);  // at most 32: sums fit 64 bits
  const bool is_signed = u.imm & 1, subtract = u.imm & 2;
  const int64_t round = u.imm & 4 ? 1 : 0;
  return each(
      w,
      [&](uint64_t x, uint64_t y) {
        const int64_t p = is_signed ? as_signed(x, w) : static_cast<int64_t>(x);
        const int64_t q = is_signed ? as_signed(y, w) : static_cast<int64_t>(y);
        return static_cast<uint64_t>(((subtract ? p - q : p + q) + round) >> 1);
      },
      a, b);
}

// The carry-less product of bytes.
GPUSIM_HD constexpr uint64_t carryless_bytes(uint64_t a, uint64_t b) {
  uint64_t r = 0;
  for (int i = 0; i < 8; ++i) r ^= b >> i & 1 ? a << i : 0;
  return r;
}
GPUSIM_HD inline uint64_t vpmul(uint64_t a, uint64_t b, const Uop&) {
  return each(
      8, [](uint64_t x, uint64_t y) { return carryless_bytes(x, y); }, a, b);
}
GPUSIM_HD inline uint64_t vpmull(uint64_t a, uint64_t b, const Uop& u) {
  const int from = u.imm ? 32 : 0;
  uint64_t r = 0;
  for (int i = 0; i < 32; i += 8) {
    r |= carryless_bytes(a >> (from + i) & 0xff, b >> (from + i) & 0xff) << 2 * i;
  }
  return r;
}
// The low word of the carry-less product of words, by integer products of every fourth bit: at most
// 16 ones meet in a place, and the only places where it may be 16 carry out of the word.
GPUSIM_HD constexpr uint64_t carryless(uint64_t a, uint64_t b) {
  constexpr uint64_t kFourth = 0x1111111111111111;
  uint64_t r = 0;
  for (int k = 0; k < 4; ++k) {
    uint64_t sum = 0;
    for (int i = 0; i < 4; ++i) sum ^= (a & kFourth << i) * (b & kFourth << ((k - i) & 3));
    r |= sum & kFourth << k;
  }
  return r;
}
GPUSIM_HD constexpr uint64_t reverse_bits(uint64_t a) {
  for (int n = 1; n < 64; n *= 2) a = swap_runs(a, ~uint64_t{0} / ((uint64_t{1} << n) + 1), n);
  return a;
}
GPUSIM_HD inline uint64_t pmull_low(uint64_t a, uint64_t b, const Uop&) { return carryless(a, b); }
GPUSIM_HD inline uint64_t pmull_high(uint64_t a, uint64_t b, const Uop&) {
  // A product of 64 by 64 bits has 127 of them: reversed, its upper half is the lower one.
  return reverse_bits(carryless(reverse_bits(a), reverse_bits(b))) >> 1;
}
GPUSIM_HD inline uint64_t vtable(uint64_t a, uint64_t b, uint64_t c, const Uop& u) {
  return each(
      8,
      [&](uint64_t index) -> uint64_t {
        const uint64_t i = index - u.imm;
        if (i >= 16) return 0;
        return (i < 8 ? a : b) >> 8 * (i & 7);
      },
      c);
}

}  // namespace gpusim::helpers
