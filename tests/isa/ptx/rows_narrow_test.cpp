// Conversions of and to f16, bf16, tf32, e4m3 and e5m2, and comparisons of halves, against
// statements in doubles and __float128 that look at distances, not at bits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "tests/isa/ptx/one_insn.h"

using namespace gpusim::ptx::test;

namespace {

using U = uint64_t;

const std::vector<Operands>& operands() {
  static const std::vector<Operands> drawn = [] {
    std::vector<Operands> all = draw_operands(21, 4000);
    // Where small formats have their numbers, ties between them, and their limits.
    std::mt19937_64 random(22);
    for (int k = 0; k < 4000; ++k) {
      const auto draw = [&]() -> U {
        const U r = random(), exponent = 127 - 28 + r % 48, fraction = (r >> 8 & 0xff) << 15;
        const U more = (r >> 16) % 4 == 0 ? (r >> 20) % 3 - 1 : 0;
        return (((r >> 40 & 1) << 31 | exponent << 23 | fraction) + more) & 0xffffffff;
      };
      all.push_back({draw(), draw(), draw()});
    }
    return all;
  }();
  return drawn;
}

void check(const std::string& body, const std::string& kinds, std::function<U(U, U, U)> expected) {
  check_case({body, kinds, std::move(expected), /*any_nan_64=*/true}, operands());
}

float f(U bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
U bits(float x) { return std::isnan(x) ? 0x7fffffff : std::bit_cast<uint32_t>(x); }
double half(U bits) {
  return static_cast<double>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
}
double bfloat(U bits) { return f((bits & 0xffff) << 16); }
bool is_negative(double x) { return std::signbit(x); }

// Of formats whose values grow with their bits: the number of the nearest value, or of the one on
// the side that `mode` says; `last` is what is beyond the largest.
template <class Value>
U rounded(__float128 x, bool is_below_zero, char mode, U last, Value value) {
  const __float128 size = x < 0 ? -x : x;
  U low = 0, high = last;
  if (size >= value(last)) return last;
  while (high - low > 1) {
    const U middle = (low + high) / 2;
    (value(middle) <= size ? low : high) = middle;
  }
  const __float128 below = size - value(low), above = value(high) - size;
  if (below == 0) return low;
  switch (mode) {
    case 'z':
      return low;
    case 'm':
      return is_below_zero ? high : low;
    case 'p':
      return is_below_zero ? low : high;
    default:
      return below == above ? low + low % 2 : below < above ? low : high;
  }
}

U to_bfloat(__float128 x, bool is_below_zero, char mode) {
  const auto value = [](U n) { return n == 0x7f80 ? __float128{0x1p128} : __float128{bfloat(n)}; };
  U r = rounded(x, is_below_zero, mode, 0x7f80, value);
  // What is finite stays so where it is rounded towards zero.
  const bool is_finite = (x < 0 ? -x : x) < __float128{HUGE_VAL};
  const bool to_zero =
      mode == 'z' || (mode == 'm' && !is_below_zero) || (mode == 'p' && is_below_zero);
  if (r == 0x7f80 && is_finite && to_zero) r = 0x7f7f;
  return r | (is_below_zero ? 0x8000 : 0);
}
U to_bfloat(double x, char mode) {
  return std::isnan(x) ? 0x7fff : to_bfloat(__float128{x}, is_negative(x), mode);
}

U to_half(double x, char mode) {
  if (std::isnan(x)) return 0x7fff;
  const auto value = [](U n) { return n == 0x7c00 ? __float128{65536} : __float128{half(n)}; };
  U r = rounded(__float128{x}, is_negative(x), mode, 0x7c00, value);
  const bool to_zero = mode == 'z' || (mode == 'm' && x > 0) || (mode == 'p' && x < 0);
  if (r == 0x7c00 && !std::isinf(x) && to_zero) r = 0x7bff;
  return r | (is_negative(x) ? 0x8000 : 0);
}

// e4m3 and e5m2: seven bits of size.
struct Small {
  const char* name;
  int exponent_bits, fraction_bits;
  U most;
};
constexpr Small kSmalls[] = {{"e4m3x2", 4, 3, 0x7e}, {"e5m2x2", 5, 2, 0x7b}};

double small_value(const Small& s, U size) {
  const int bias = (1 << (s.exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(size >> s.fraction_bits);
  const auto fraction = static_cast<double>(size & ((U{1} << s.fraction_bits) - 1));
  const double one = std::ldexp(1.0, s.fraction_bits);
  return exponent == 0 ? std::ldexp(fraction / one, 1 - bias)
                       : std::ldexp(1 + fraction / one, exponent - bias);
}
U to_small(const Small& s, double x, bool is_relu) {
  if (std::isnan(x)) return 0x7f;
  if (is_relu && is_negative(x)) return 0;
  U best = 0;
  for (U n = 1; n <= s.most; ++n) {
    const double now = std::fabs(small_value(s, n) - std::fabs(x)),
                 before = std::fabs(small_value(s, best) - std::fabs(x));
    if (now < before || (now == before && n % 2 == 0)) best = n;
  }
  if (std::fabs(x) >= small_value(s, s.most)) best = s.most;
  return best | (is_negative(x) ? 0x80 : 0);
}

template <class Op>
auto in_pairs(Op op) {
  return [=](U a, U b, U) { return op(b) | op(a) << 16; };
}

}  // namespace

TEST_CASE("comparisons of halves to predicates, alone, in pairs, and combined") {
  struct Form {
    const char* type;
    double (*value)(U);
  };
  for (const Form& form : {Form{"f16", half}, Form{"bf16", bfloat}}) {
    const std::string type = form.type;
    const auto value = form.value;
    const auto holds = [=](const std::string& name, U a, U b) {
      const double x = value(a & 0xffff), y = value(b & 0xffff);
      return name == "lt"    ? x < y
             : name == "geu" ? !(x < y)
             : name == "eq"  ? x == y
                             : x != x || y != y;
    };
    for (const std::string name : {"lt", "geu", "eq", "nan"}) {
      check(fmt::format("setp.{}.{} %D, %A, %B;", name, type), "phh",
            [=](U a, U b, U) { return U{holds(name, a, b)}; });
      // Both of a pair, through a word.
      check(fmt::format(".reg .pred %p, %q;\n.reg .b32 %s;\nsetp.{}.{}x2 %p|%q, %A, %B;\n"
                        "selp.u32 %D, 1, 0, %p;\nselp.u32 %s, 2, 0, %q;\nor.b32 %D, %D, %s;",
                        name, type),
            "rrr", [=](U a, U b, U) {
              return U{holds(name, a, b)} | U{holds(name, a >> 16, b >> 16)} << 1;
            });
      for (const std::string combination : {"and", "or", "xor"}) {
        const auto combined = [=](bool x, U c) {
          return combination == "and"  ? x && c != 0
                 : combination == "or" ? x || c != 0
                                       : x != (c != 0);
        };
        check(fmt::format("setp.{}.{}.{} %D, %A, %B, %C;", name, combination, type), "phhp",
              [=](U a, U b, U c) { return U{combined(holds(name, a, b), c)}; });
        check(fmt::format(".reg .pred %p, %q;\n.reg .b32 %s;\n"
                          "setp.{}.{}.{}x2 %p|%q, %A, %B, !%C;\n"
                          "selp.u32 %D, 1, 0, %p;\nselp.u32 %s, 2, 0, %q;\nor.b32 %D, %D, %s;",
                          name, combination, type),
              "rrrp", [=](U a, U b, U c) {
                return U{combined(holds(name, a, b), c ^ 1)} |
                       U{combined(holds(name, a >> 16, b >> 16), c ^ 1)} << 1;
              });
      }
    }
  }
}

TEST_CASE("comparisons of halves to values, combined with a predicate") {
  struct Form {
    const char *to, *from, *kinds;
    U yes;
    double (*value)(U);
  };
  for (const Form& form :
       {Form{"u16", "f16", "hhh", 0xffff, half}, Form{"s32", "f16", "rhh", 0xffffffff, half},
        Form{"f16", "f16", "hhh", 0x3c00, half}, Form{"bf16", "f16", "hhh", 0x3f80, half},
        Form{"u32", "bf16", "rhh", 0xffffffff, bfloat}, Form{"s16", "bf16", "hhh", 0xffff, bfloat},
        Form{"u32", "f32", "rrr", 0xffffffff, [](U x) { return double{f(x)}; }},
        Form{"f32", "f32", "rrr", 0x3f800000, [](U x) { return double{f(x)}; }}}) {
    const auto less = [=, &form](U a, U b) { return form.value(a) < form.value(b); };
    check(fmt::format("set.lt.{}.{} %D, %A, %B;", form.to, form.from), form.kinds,
          [&](U a, U b, U) { return less(a, b) ? form.yes : 0; });
    check(fmt::format("set.lt.xor.{}.{} %D, %A, %B, %C;", form.to, form.from),
          form.kinds + std::string("p"),
          [&](U a, U b, U c) { return less(a, b) != (c != 0) ? form.yes : 0; });
  }
  for (const char* to : {"u32", "s32"})
    check(fmt::format("set.lt.and.{}.f16x2 %D, %A, %B, !%C;", to), "rrrp", [](U a, U b, U c) {
      const auto one = [&](U x, U y) { return half(x) < half(y) && c == 0 ? U{0xffff} : U{0}; };
      return one(a, b) | one(a >> 16, b >> 16) << 16;
    });
  check("set.lo.or.u32.u32 %D, %A, %B, %C;", "rrrp",
        [](U a, U b, U c) { return a < b || c != 0 ? U{0xffffffff} : U{0}; });
}

TEST_CASE("conversions of bf16") {
  for (const char mode : {'n', 'z', 'm', 'p'}) {
    check(fmt::format("cvt.r{}.bf16.f32 %D, %A;", mode), "hr",
          [=](U a, U, U) { return to_bfloat(f(a), mode); });
    check(fmt::format("cvt.r{}.ftz.bf16.f32 %D, %A;", mode), "hr", [=](U a, U, U) {
      const float x = f(a);
      return to_bfloat(std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x, mode);
    });
    check(fmt::format("cvt.r{}.bf16.f16 %D, %A;", mode), "hh",
          [=](U a, U, U) { return to_bfloat(half(a), mode); });
    check(fmt::format("cvt.r{}.bf16.f64 %D, %A;", mode), "hd",
          [=](U a, U, U) { return to_bfloat(std::bit_cast<double>(a), mode); });
    check(fmt::format("cvt.r{}.f16.bf16 %D, %A;", mode), "hh",
          [=](U a, U, U) { return to_half(bfloat(a), mode); });
    check(fmt::format("cvt.r{}.f32.bf16 %D, %A;", mode), "rh",
          [](U a, U, U) { return bits(f(a << 16)); });
    check(fmt::format("cvt.r{}.f64.bf16 %D, %A;", mode), "dh",
          [](U a, U, U) { return std::bit_cast<U>(bfloat(a)); });
    const auto integral = [=](double x) {
      return mode == 'n'   ? std::nearbyint(x)
             : mode == 'z' ? std::trunc(x)
             : mode == 'm' ? std::floor(x)
                           : std::ceil(x);
    };
    check(fmt::format("cvt.r{}i.bf16.bf16 %D, %A;", mode), "hh", [=](U a, U, U) {
      const double x = bfloat(a);
      return std::isnan(x) ? U{0x7fff} : bits(static_cast<float>(integral(x))) >> 16;
    });
    for (const auto& [type, w, is_signed] :
         {std::tuple{"s16", 16, true}, std::tuple{"u16", 16, false}, std::tuple{"s32", 32, true},
          std::tuple{"u32", 32, false}, std::tuple{"s64", 64, true}, std::tuple{"u64", 64, false}})
      check(fmt::format("cvt.r{}i.{}.bf16 %D, %A;", mode, type),
            {w == 64   ? 'd'
             : w == 32 ? 'r'
                       : 'h',
             'h'},
            [=, w = w, s = is_signed](U a, U, U) {
              const double x = bfloat(a);
              if (std::isnan(x)) return w == 64 ? U{1} << 63 : U{0};
              const double least = s ? -std::ldexp(1.0, w - 1) : 0,
                           beyond = std::ldexp(1.0, s ? w - 1 : w), r = integral(x);
              if (r >= beyond) return s ? (U{1} << (w - 1)) - 1 : ~U{0};
              if (r <= least) return s ? U{1} << (w - 1) : U{0};
              return r < 0 ? static_cast<U>(static_cast<int64_t>(r)) : static_cast<U>(r);
            });
  }
  check("cvt.bf16.f16 %D, %A;", "hh", [](U a, U, U) { return to_bfloat(half(a), 'n'); });
  check("cvt.f16.bf16 %D, %A;", "hh", [](U a, U, U) { return to_half(bfloat(a), 'n'); });
  check("cvt.f64.bf16 %D, %A;", "dh", [](U a, U, U) { return std::bit_cast<U>(bfloat(a)); });
  check("cvt.bf16.bf16 %D, %A;", "hh", [](U a, U, U) { return a; });
  check("cvt.ftz.f32.bf16 %D, %A;", "rh", [](U a, U, U) {
    const float x = f(a << 16);
    return bits(std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x);
  });
  // The source is still there afterwards.
  check(".reg .b16 %E;\ncvt.rn.bf16.u16 %E, %A;\nadd.u16 %D, %E, %A;", "hh",
        [](U a, U, U) { return to_bfloat(static_cast<double>(a & 0xffff), 'n') + a; });
}

TEST_CASE("conversions with limits: f16, bf16 and tf32") {
  for (const bool is_relu : {false, true})
    for (const bool is_finite : {false, true})
      for (const char mode : {'n', 'z'}) {
        const std::string limits =
            fmt::format("{}{}", is_relu ? ".relu" : "", is_finite ? ".satfinite" : "");
        const auto limited = [=](U r, U infinity, U sign, U most) {
          if (is_finite && (r & ~sign) == infinity) r = (r & sign) | most;
          return is_relu && (r & sign) != 0 ? U{0} : r;
        };
        const auto to_f16 = [=](U a) {
          return limited(to_half(f(a), mode), 0x7c00, 0x8000, 0x7bff);
        };
        const auto to_bf16 = [=](U a) {
          return limited(to_bfloat(f(a), mode), 0x7f80, 0x8000, 0x7f7f);
        };
        check(fmt::format("cvt.r{}{}.f16.f32 %D, %A;", mode, limits), "hr",
              [=](U a, U, U) { return to_f16(a); });
        check(fmt::format("cvt.r{}{}.f16x2.f32 %D, %A, %B;", mode, limits), "rrr",
              in_pairs(to_f16));
        check(fmt::format("cvt.r{}{}.bf16.f32 %D, %A;", mode, limits), "hr",
              [=](U a, U, U) { return to_bf16(a); });
        check(fmt::format("cvt.r{}{}.bf16x2.f32 %D, %A, %B;", mode, limits), "rrr",
              in_pairs(to_bf16));
      }
  // tf32 by doubles: how many units of the last of its eleven places.
  const auto to_tf32 = [](U a, char mode, bool is_finite) -> U {
    const double x = f(a);
    if (std::isnan(x)) return 0x7fffe000;
    if (std::isinf(x) || x == 0) return is_finite && x != 0 ? (a & 0x80000000) | 0x7f7fe000 : a;
    const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 10), n = x / unit;
    const double r = (mode == 'n'   ? std::nearbyint(n)
                      : mode == 'z' ? std::trunc(n)
                                    : std::round(n)) *
                     unit;
    if (std::fabs(r) >= 0x1p128) return (a & 0x80000000) | (is_finite ? 0x7f7fe000 : 0x7f800000);
    return bits(std::copysign(static_cast<float>(r), f(a)));
  };
  for (const char mode : {'n', 'z'})
    for (const bool is_relu : {false, true})
      check(fmt::format("cvt.r{}{}.tf32.f32 %D, %A;", mode, is_relu ? ".relu" : ""), "rr",
            [=](U a, U, U) {
              const U r = to_tf32(a, mode, false);
              return is_relu && r >= 0x80000000 ? U{0} : r;
            });
  check("cvt.rna.tf32.f32 %D, %A;", "rr", [=](U a, U, U) { return to_tf32(a, 'a', false); });
  check("cvt.rna.satfinite.tf32.f32 %D, %A;", "rr",
        [=](U a, U, U) { return to_tf32(a, 'a', true); });
}

TEST_CASE("conversions of e4m3 and e5m2") {
  for (const Small& s : kSmalls)
    for (const bool is_relu : {false, true}) {
      const std::string relu = is_relu ? ".relu" : "";
      const auto small = [&](double x) { return to_small(s, x, is_relu); };
      check(fmt::format("cvt.rn.satfinite{}.{}.f32 %D, %A, %B;", relu, s.name), "hrr",
            [=](U a, U b, U) { return small(f(b)) | small(f(a)) << 8; });
      check(fmt::format("cvt.rn.satfinite{}.{}.f16x2 %D, %A;", relu, s.name), "hr",
            [=](U a, U, U) { return small(half(a)) | small(half(a >> 16)) << 8; });
      std::vector<Operands> all;
      for (U x = 0; x < 0x10000; ++x) all.push_back({x, 0, 0});
      check_case({fmt::format("cvt.rn{}.f16x2.{} %D, %A;", relu, s.name), "rh",
                  [=](U a, U, U) {
                    const auto one = [&](U x) -> U {
                      const U size = x & 0x7f;
                      const bool is_nan = s.exponent_bits == 4 ? size == 0x7f : size > 0x7c;
                      if (is_nan) return 0x7fff;
                      if (is_relu && (x & 0x80) != 0) return 0;
                      const double v =
                          s.exponent_bits == 5 && size == 0x7c ? HUGE_VAL : small_value(s, size);
                      return to_half((x & 0x80) != 0 ? -v : v, 'n');
                    };
                    return one(a & 0xff) | one(a >> 8 & 0xff) << 16;
                  }},
                 all);
    }
}
