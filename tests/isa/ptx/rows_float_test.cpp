// Floating point against the host's, in its rounding modes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "tests/isa/ptx/one_insn.h"

using namespace gpusim::ptx::test;

namespace {

using U = uint64_t;

const std::vector<Operands>& operands() {
  static const std::vector<Operands> drawn = draw_operands(2, 4000);
  return drawn;
}

float f(U bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
double d(U bits) { return std::bit_cast<double>(bits); }
// NaN results of floats are canonical.
U bits(float x) { return std::isnan(x) ? 0x7fffffff : std::bit_cast<uint32_t>(x); }
U bits(double x) { return std::bit_cast<U>(x); }

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

struct Mode {
  const char* name;
  int host;
};
constexpr Mode kModes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

template <class F>
auto rounded(int mode, F compute) {
  std::fesetround(mode);
  volatile auto r = compute();  // before the mode changes back
  std::fesetround(FE_TONEAREST);
  return r;
}

void check(const std::string& body, const std::string& kinds, std::function<U(U, U, U)> expected) {
  check_case({body, kinds, std::move(expected), /*any_nan_64=*/true}, operands());
}

// An operation on floats and the same on doubles, with its modifiers.
template <class Op>
void check_both(const std::string& name, int sources, Op op) {
  const std::string args = sources == 1 ? "%A" : sources == 2 ? "%A, %B" : "%A, %B, %C";
  const auto kinds = [&](char k) { return std::string(static_cast<size_t>(sources) + 1, k); };
  for (const Mode& m : kModes) {
    const int mode = m.host;
    check(fmt::format("{}.{}.f32 %D, {};", name, m.name, args), kinds('r'), [=](U a, U b, U c) {
      volatile float x = f(a), y = f(b), z = f(c);
      return bits(rounded(mode, [&] { return op(float{x}, float{y}, float{z}); }));
    });
    check(fmt::format("{}.{}.f64 %D, {};", name, m.name, args), kinds('d'), [=](U a, U b, U c) {
      volatile double x = d(a), y = d(b), z = d(c);
      return bits(rounded(mode, [&] { return op(double{x}, double{y}, double{z}); }));
    });
  }
  // Flushing. Results that only rounding lifts to the smallest normal number are left out: whether
  // they are flushed is not specified.
  check(fmt::format("{}.rn.ftz.f32 %D, {};\nand.b32 %E, %D, 0x7fffffff;\n"
                    "setp.eq.u32 %z, %E, 0x00800000;\n@%z mov.b32 %D, 0;",
                    name, args)
            .insert(0, ".reg .b32 %E;\n.reg .pred %z;\n"),
        kinds('r'), [=](U a, U b, U c) {
          volatile float x = flushed(f(a)), y = flushed(f(b)), z = flushed(f(c));
          const float r = op(float{x}, float{y}, float{z});
          const bool is_edge = std::fabs(r) == std::numeric_limits<float>::min();
          return is_edge ? U{0} : bits(flushed(r));
        });
}

}  // namespace

TEST_CASE("arithmetic in all rounding modes") {
  check_both("add", 2, [](auto x, auto y, auto) { return x + y; });
  check_both("sub", 2, [](auto x, auto y, auto) { return x - y; });
  check_both("mul", 2, [](auto x, auto y, auto) { return x * y; });
  check_both("div", 2, [](auto x, auto y, auto) { return x / y; });
  check_both("fma", 3, [](auto x, auto y, auto z) { return std::fma(x, y, z); });
  check_both("sqrt", 1, [](auto x, auto, auto) { return std::sqrt(x); });
  check_both("rcp", 1, [](auto x, auto, auto) { return decltype(x){1} / x; });
}

TEST_CASE("saturation, minima, maxima, signs") {
  check("add.sat.f32 %D, %A, %B;", "rrr", [](U a, U b, U) {
    const float r = f(a) + f(b);
    return bits(!(r > 0) ? 0.0f : r > 1 ? 1.0f : r);
  });
  check("fma.rn.sat.f32 %D, %A, %B, %C;", "rrrr", [](U a, U b, U c) {
    const float r = std::fma(f(a), f(b), f(c));
    return bits(!(r > 0) ? 0.0f : r > 1 ? 1.0f : r);
  });
  const auto min = [](auto x, auto y) {
    if (std::isnan(x)) return y;
    if (std::isnan(y)) return x;
    return x == y ? (std::signbit(x) ? x : y) : x < y ? x : y;
  };
  const auto max = [](auto x, auto y) {
    if (std::isnan(x)) return y;
    if (std::isnan(y)) return x;
    return x == y ? (std::signbit(x) ? y : x) : x < y ? y : x;
  };
  check("min.f32 %D, %A, %B;", "rrr", [=](U a, U b, U) { return bits(min(f(a), f(b))); });
  check("max.f32 %D, %A, %B;", "rrr", [=](U a, U b, U) { return bits(max(f(a), f(b))); });
  check("min.f64 %D, %A, %B;", "ddd", [=](U a, U b, U) { return bits(min(d(a), d(b))); });
  check("max.f64 %D, %A, %B;", "ddd", [=](U a, U b, U) { return bits(max(d(a), d(b))); });
  check("max.NaN.f32 %D, %A, %B;", "rrr", [=](U a, U b, U) {
    return std::isnan(f(a)) || std::isnan(f(b)) ? 0x7fffffff : bits(max(f(a), f(b)));
  });
  check("neg.f32 %D, %A;", "rr", [](U a, U, U) { return a ^ 0x80000000; });
  check("abs.f32 %D, %A;", "rr", [](U a, U, U) { return a & 0x7fffffff; });
  check("neg.f64 %D, %A;", "dd", [](U a, U, U) { return a ^ U { 1 } << 63; });
  check("abs.f64 %D, %A;", "dd", [](U a, U, U) { return a & ~(U{1} << 63); });
  check("abs.ftz.f32 %D, %A;", "rr", [](U a, U, U) { return bits(std::fabs(flushed(f(a)))); });
  check("copysign.f32 %D, %A, %B;", "rrr",
        [](U a, U b, U) { return (a & 0x80000000) | (b & 0x7fffffff); });
}

TEST_CASE("comparisons, ordered and not") {
  const auto all = [](auto x, auto y) {
    const bool u = std::isnan(x) || std::isnan(y);
    return std::map<std::string, bool>{{"eq", x == y},       {"ne", !u && x != y},
                                       {"lt", x < y},        {"le", x <= y},
                                       {"gt", x > y},        {"ge", x >= y},
                                       {"equ", u || x == y}, {"neu", u || x != y},
                                       {"ltu", u || x < y},  {"leu", u || x <= y},
                                       {"gtu", u || x > y},  {"geu", u || x >= y},
                                       {"num", !u},          {"nan", u}};
  };
  for (const auto& [name, unused] : all(0.0f, 0.0f)) {
    check(fmt::format("setp.{}.f32 %D, %A, %B;", name), "prr",
          [&, n = name](U a, U b, U) { return U{all(f(a), f(b))[n]}; });
    check(fmt::format("setp.{}.f64 %D, %A, %B;", name), "pdd",
          [&, n = name](U a, U b, U) { return U{all(d(a), d(b))[n]}; });
    check(fmt::format("setp.{}.ftz.f32 %D, %A, %B;", name), "prr",
          [&, n = name](U a, U b, U) { return U{all(flushed(f(a)), flushed(f(b)))[n]}; });
  }
  check("set.ltu.u32.f32 %D, %A, %B;", "rrr",
        [](U a, U b, U) { return !(f(a) >= f(b)) ? 0xffffffff : U{0}; });
  check("slct.u32.f32 %D, %A, %B, %C;", "rrrr", [](U a, U b, U c) { return f(c) >= 0 ? a : b; });
  const auto classes = [](auto x) {
    const int c = std::fpclassify(x);
    return std::map<std::string, bool>{
        {"finite", std::isfinite(x)}, {"infinite", std::isinf(x)},
        {"number", !std::isnan(x)},   {"notanumber", std::isnan(x)},
        {"normal", c == FP_NORMAL},   {"subnormal", c == FP_SUBNORMAL}};
  };
  for (const auto& [name, unused] : classes(0.0f)) {
    check(fmt::format("testp.{}.f32 %D, %A;", name), "pr",
          [&, n = name](U a, U, U) { return U{classes(f(a))[n]}; });
    check(fmt::format("testp.{}.f64 %D, %A;", name), "pd",
          [&, n = name](U a, U, U) { return U{classes(d(a))[n]}; });
  }
}

namespace {

// PTX ISA 9.0, cvt: out of range, the nearest; NaN: zero, or 2^(w - 1) where either side has 64
// bits.
template <class F>
U to_integer(F x, int mode, int w, bool is_signed) {
  if (std::isnan(x)) return sizeof(F) == 8 || w == 64 ? U{1} << (w - 1) : 0;
  const F r = rounded(mode, [&] { return std::nearbyint(x); });
  const F most = std::ldexp(F{1}, is_signed ? w - 1 : w);
  if (r >= most) return is_signed ? (U{1} << (w - 1)) - 1 : w == 64 ? ~U{0} : (U{1} << w) - 1;
  if (is_signed && r < -most) return U{1} << (w - 1);
  if (!is_signed && r <= 0) return 0;
  return is_signed ? static_cast<U>(static_cast<int64_t>(r)) : static_cast<U>(r);
}

}  // namespace

TEST_CASE("conversions of floats") {
  const Mode integral[] = {
      {"rni", FE_TONEAREST}, {"rzi", FE_TOWARDZERO}, {"rmi", FE_DOWNWARD}, {"rpi", FE_UPWARD}};
  for (const Mode& m : integral) {
    const int mode = m.host;
    for (const auto& [type, w, is_signed] : {std::tuple{"s32", 32, true},
                                             {"u32", 32, false},
                                             {"s64", 64, true},
                                             {"u64", 64, false},
                                             {"s16", 16, true},
                                             {"u16", 16, false}}) {
      const char k = w == 64 ? 'd' : w == 32 ? 'r' : 'h';
      check(fmt::format("cvt.{}.{}.f32 %D, %A;", m.name, type), {k, 'r'},
            [=, w = w, s = is_signed](U a, U, U) { return to_integer(f(a), mode, w, s); });
      check(fmt::format("cvt.{}.{}.f64 %D, %A;", m.name, type), {k, 'd'},
            [=, w = w, s = is_signed](U a, U, U) { return to_integer(d(a), mode, w, s); });
    }
    check(fmt::format("cvt.{}.f32.f32 %D, %A;", m.name), "rr",
          [=](U a, U, U) { return bits(rounded(mode, [&] { return std::nearbyint(f(a)); })); });
    check(fmt::format("cvt.{}.f64.f64 %D, %A;", m.name), "dd",
          [=](U a, U, U) { return bits(rounded(mode, [&] { return std::nearbyint(d(a)); })); });
  }
  for (const Mode& m : kModes) {
    const int mode = m.host;
    check(fmt::format("cvt.{}.f32.f64 %D, %A;", m.name), "rd", [=](U a, U, U) {
      volatile double x = d(a);
      return bits(rounded(mode, [&] { return static_cast<float>(x); }));
    });
    const auto from = [&]<class I, class F>(const char* to, const char* type, const char* kinds, I,
                                            F) {
      check(fmt::format("cvt.{}.{}.{} %D, %A;", m.name, to, type), kinds, [=](U a, U, U) {
        volatile I x = static_cast<I>(a);
        return bits(rounded(mode, [&] { return static_cast<F>(x); }));
      });
    };
    from("f32", "s32", "rr", int32_t{}, float{});
    from("f32", "u32", "rr", uint32_t{}, float{});
    from("f32", "s64", "rd", int64_t{}, float{});
    from("f32", "u64", "rd", uint64_t{}, float{});
    from("f32", "s8", "rh", int8_t{}, float{});
    from("f32", "u16", "rh", uint16_t{}, float{});
    from("f64", "s32", "dr", int32_t{}, double{});
    from("f64", "u32", "dr", uint32_t{}, double{});
    from("f64", "s64", "dd", int64_t{}, double{});
    from("f64", "u64", "dd", uint64_t{}, double{});
  }
  check("cvt.f64.f32 %D, %A;", "dr", [](U a, U, U) { return bits(static_cast<double>(f(a))); });
  check("cvt.sat.f32.f32 %D, %A;", "rr", [](U a, U, U) {
    return bits(!(f(a) > 0) ? 0.0f : f(a) > 1 ? 1.0f : f(a));
  });
}

TEST_CASE("half precision, alone and in pairs") {
  // The compiler's own type: operations in float, rounded, which is exact for these.
  const auto h = [](U bits) { return std::bit_cast<_Float16>(static_cast<uint16_t>(bits)); };
  const auto word = [](_Float16 x) { return x != x ? U{0x7fff} : U{std::bit_cast<uint16_t>(x)}; };
  const auto sum = [=](U a, U b) { return word(h(a) + h(b)); };
  const auto product = [=](U a, U b) { return word(h(a) * h(b)); };
  const auto fused = [=](U a, U b, U c) {
    return word(static_cast<_Float16>(
        std::fma(static_cast<double>(h(a)), static_cast<double>(h(b)), static_cast<double>(h(c)))));
  };
  check("add.f16 %D, %A, %B;", "hhh", [=](U a, U b, U) { return sum(a, b); });
  check("mul.rn.f16 %D, %A, %B;", "hhh", [=](U a, U b, U) { return product(a, b); });
  check("fma.rn.f16 %D, %A, %B, %C;", "hhhh", fused);
  check("neg.f16 %D, %A;", "hh", [](U a, U, U) { return a ^ 0x8000; });
  check("setp.ltu.f16 %D, %A, %B;", "phh", [=](U a, U b, U) { return U{!(h(a) >= h(b))}; });
  check("add.f16x2 %D, %A, %B;", "rrr",
        [=](U a, U b, U) { return sum(a, b) | sum(a >> 16, b >> 16) << 16; });
  check("fma.rn.f16x2 %D, %A, %B, %C;", "rrrr",
        [=](U a, U b, U c) { return fused(a, b, c) | fused(a >> 16, b >> 16, c >> 16) << 16; });
  check("cvt.rn.f16.f32 %D, %A;", "hr",
        [=](U a, U, U) { return word(static_cast<_Float16>(f(a))); });
  check("cvt.f32.f16 %D, %A;", "rh", [=](U a, U, U) { return bits(static_cast<float>(h(a))); });
  check("cvt.rn.f16x2.f32 %D, %A, %B;", "rrr", [=](U a, U b, U) {
    return word(static_cast<_Float16>(f(b))) | word(static_cast<_Float16>(f(a))) << 16;
  });
}

// Statements in __float128, whose 113 bits hold a product exactly. What a sum lost there is known
// exactly, too (Knuth's two-sum), and breaks ties.
TEST_CASE("bf16, alone and in pairs") {
  const auto wide = [](U x) { return static_cast<double>(f((x & 0xffff) << 16)); };
  // The nearest of the neighbours, by their distances: no bits are looked at.
  const auto nearest = [&](__float128 x, __float128 lost = 0) -> U {
    if (x != x) return 0x7fff;
    const U sign = std::signbit(static_cast<double>(x)) ? 0x8000 : 0;
    const __float128 size = x < 0 ? -x : x;
    U low = 0, high = 0x7f80;  // bisection: bf16 values go up with their bits
    const auto value = [&](U bits) -> __float128 {
      return bits == 0x7f80 ? __float128{0x1p128} : __float128{wide(bits)};
    };
    while (high - low > 1) {
      const U middle = (low + high) / 2;
      (value(middle) <= size ? low : high) = middle;
    }
    if (size >= value(high)) return sign | high;
    const __float128 below = size - value(low), above = value(high) - size;
    if (below == above && lost != 0) return sign | ((lost < 0) == (x < 0) ? high : low);
    if (below == above) return sign | (low % 2 == 0 ? low : high);
    return sign | (below < above ? low : high);
  };
  const auto is_nan = [](U x) { return (x & 0x7fff) > 0x7f80; };
  // a + b; `s`: the sum in doubles, for NaNs and signs of zeros.
  const auto added = [&](double s, __float128 a, __float128 b) -> U {
    if (s != s) return 0x7fff;
    if (std::isinf(s) || a + b == 0) return nearest(s);
    const __float128 x = a + b, back = x - a;
    return nearest(x, (a - (x - back)) + (b - back));
  };
  const auto sum = [=](U a, U b) { return added(wide(a) + wide(b), wide(a), wide(b)); };
  const auto fused = [=](U a, U b, U c) {
    return added(std::fma(wide(a), wide(b), wide(c)), __float128{wide(a)} * wide(b), wide(c));
  };
  const auto product = [=](U a, U b) {
    const double s = wide(a) * wide(b);
    return s != s ? U{0x7fff} : nearest(s);
  };
  const auto pair = [](auto op) {
    return [=](U a, U b, U c) { return op(a, b, c) | op(a >> 16, b >> 16, c >> 16) << 16; };
  };
  const auto sum3 = [=](U a, U b, U) { return sum(a, b); };
  const auto less3 = [=](U a, U b, U) { return sum(a, (b & 0xffff) ^ 0x8000); };
  const auto product3 = [=](U a, U b, U) { return product(a, b); };
  check("add.bf16 %D, %A, %B;", "hhh", sum3);
  check("sub.rn.bf16 %D, %A, %B;", "hhh", less3);
  check("mul.bf16 %D, %A, %B;", "hhh", product3);
  check("fma.rn.bf16 %D, %A, %B, %C;", "hhhh", fused);
  check("add.bf16x2 %D, %A, %B;", "rrr", pair(sum3));
  check("mul.rn.bf16x2 %D, %A, %B;", "rrr", pair(product3));
  check("fma.rn.bf16x2 %D, %A, %B, %C;", "rrrr", pair(fused));
  check("fma.rn.relu.bf16 %D, %A, %B, %C;", "hhhh", [=](U a, U b, U c) {
    const U r = fused(a, b, c);
    return r >= 0x8000 ? U{0} : r;
  });
  // The neighbour of the nearest that lies on the other side, where that is the wrong one.
  const auto directed = [=](char mode) {
    return [=](U a, U b, U c) -> U {
      const double s = std::fma(wide(a), wide(b), wide(c));
      if (s != s || std::isinf(s)) return nearest(s);
      const __float128 first = __float128{wide(a)} * wide(b), x = first + wide(c);
      const __float128 back = x - first;
      const __float128 lost = (first - (x - back)) + (wide(c) - back);
      if (x == 0) {  // of opposite signs: of the mode
        const bool is_minus = std::signbit(wide(a)) != std::signbit(wide(b));
        const bool same = is_minus == std::signbit(wide(c));
        return (same ? is_minus : mode == 'm') ? 0x8000 : 0;
      }
      const U sign = x < 0 ? 0x8000 : 0;
      const bool away = mode != 'z' && (mode == 'm') == (x < 0);
      const __float128 size = x < 0 ? -x : x, less = x < 0 ? -lost : lost;
      U r = nearest(x, lost) & 0x7fff;
      const auto value = [&](U bits) -> __float128 {
        return bits == 0x7f80 ? __float128{0x1p128} : __float128{wide(bits)};
      };
      const bool is_above = r == 0x7f80 || value(r) > size || (value(r) == size && less < 0);
      const bool is_below = value(r) < size || (value(r) == size && less > 0);
      if (is_above && !away) --r;
      if (is_below && away && r < 0x7f80) ++r;
      return sign | r;
    };
  };
  check("fma.rz.bf16 %D, %A, %B, %C;", "hhhh", directed('z'));
  check("fma.rm.bf16 %D, %A, %B, %C;", "hhhh", directed('m'));
  check("fma.rp.bf16 %D, %A, %B, %C;", "hhhh", directed('p'));
  check("fma.rp.bf16x2 %D, %A, %B, %C;", "rrrr", pair(directed('p')));
  check("fma.rz.relu.bf16 %D, %A, %B, %C;", "hhhh", [=](U a, U b, U c) {
    const U r = directed('z')(a, b, c);
    return r >= 0x8000 ? U{0} : r;
  });
  // Ties that only the third operand breaks.
  check_case({"fma.rn.bf16 %D, %A, %B, %C;", "hhhh", fused}, {{0x3f81, 0x3fc0, 0x0001},
                                                              {0x3f81, 0x3fc0, 0x8001},
                                                              {0x3f81, 0x3fc0, 0},
                                                              {0x3f81, 0x3f80, 0x3b80},
                                                              {0x3f81, 0x3f80, 0x3b7f},
                                                              {0x3f80, 0x3b80, 0x3f80},
                                                              {0x3f80, 0x3b80, 0x0001},
                                                              {0x0001, 0x3f00, 0x0001},
                                                              {0x0001, 0x3f00, 0x8000},
                                                              {0x7f7f, 0x3f80, 0x7b80},
                                                              {0x7f7f, 0x3f80, 0x7b00}});
  const auto least = [=](U a, U b, U) {
    a &= 0xffff;
    b &= 0xffff;
    if (is_nan(a) && is_nan(b)) return U{0x7fff};
    if (is_nan(a) || is_nan(b)) return is_nan(a) ? b : a;
    if (wide(a) == wide(b)) return a >= 0x8000 ? a : b;
    return wide(a) < wide(b) ? a : b;
  };
  check("min.bf16 %D, %A, %B;", "hhh", least);
  check("min.bf16x2 %D, %A, %B;", "rrr", pair(least));
  check("max.NaN.bf16 %D, %A, %B;", "hhh", [=](U a, U b, U) {
    if (is_nan(a) || is_nan(b)) return U{0x7fff};
    if (wide(a) == wide(b)) return a >= 0x8000 ? b : a;
    return wide(a) > wide(b) ? a : b;
  });
  check("neg.bf16x2 %D, %A;", "rr", [](U a, U, U) { return a ^ 0x80008000; });
  check("abs.bf16 %D, %A;", "hh", [](U a, U, U) { return a & 0x7fff; });
  check("setp.ltu.bf16 %D, %A, %B;", "phh", [=](U a, U b, U) { return U{!(wide(a) >= wide(b))}; });
  check("set.gt.bf16x2.bf16x2 %D, %A, %B;", "rrr",
        pair([=](U a, U b, U) { return wide(a) > wide(b) ? U{0x3f80} : U{0}; }));
  check("cvt.rn.bf16.f32 %D, %A;", "hr",
        [=](U a, U, U) { return std::isnan(f(a)) ? U{0x7fff} : nearest(__float128{f(a)}); });
  check("cvt.rz.bf16.f32 %D, %A;", "hr",
        [](U a, U, U) { return std::isnan(f(a)) ? U{0x7fff} : a >> 16; });
  check("cvt.rn.bf16x2.f32 %D, %A, %B;", "rrr", [=](U a, U b, U) {
    const auto one = [&](U x) { return std::isnan(f(x)) ? U{0x7fff} : nearest(__float128{f(x)}); };
    return one(b) | one(a) << 16;
  });
  check("cvt.f32.bf16 %D, %A;", "rh", [](U a, U, U) { return bits(f(a << 16)); });
  check("cvt.rn.bf16.s32 %D, %A;", "hr",
        [=](U a, U, U) { return nearest(__float128(static_cast<int32_t>(a))); });
  check("cvt.rn.bf16.u64 %D, %A;", "hd", [=](U a, U, U) { return nearest(__float128(a)); });
  check("cvt.rp.bf16.s64 %D, %A;", "hd", [=](U a, U, U) {
    const auto x = static_cast<int64_t>(a);
    const U r = nearest(__float128(x));
    return wide(r) >= static_cast<double>(x) && __float128{wide(r)} >= __float128(x)
               ? r
               : (r & 0x8000 ? r - 1 : r + 1);
  });
}

TEST_CASE("comparisons of halves to values") {
  const auto h = [](U bits) { return std::bit_cast<_Float16>(static_cast<uint16_t>(bits)); };
  check("set.eq.f16x2.f16x2 %D, %A, %B;", "rrr", [=](U a, U b, U) {
    const auto one = [&](U x, U y) { return h(x) == h(y) ? U{0x3c00} : U{0}; };
    return one(a, b) | one(a >> 16, b >> 16) << 16;
  });
  check("set.neu.f16.f16 %D, %A, %B;", "hhh",
        [=](U a, U b, U) { return h(a) == h(b) ? U{0} : U{0x3c00}; });
}

TEST_CASE("approximations of doubles that flush know their upper words alone") {
  constexpr uint64_t kUpper = 0xffffffff00000000;
  for (const bool is_root : {false, true}) {
    const char* const body =
        is_root ? "rsqrt.approx.ftz.f64 %D, %A;" : "rcp.approx.ftz.f64 %D, %A;";
    CAPTURE(body);
    std::vector<Operands> some = draw_operands(3, 4000);
    const std::vector<uint64_t> scalar = run_body("scalar", body, "dd", some);
    CHECK(run_body("simd", body, "dd", some) == scalar);
    int wrong = 0;
    for (size_t k = 0; k < some.size() && wrong < 3; ++k) {
      double x = std::bit_cast<double>(some[k].a & kUpper);
      if (std::fabs(x) < 0x1p-1022) x = std::copysign(0.0, x);
      const double exact = is_root ? 1 / std::sqrt(x) : 1 / x;
      const double want = std::fabs(exact) < 0x1p-1022 ? std::copysign(0.0, exact) : exact;
      const double got = std::bit_cast<double>(scalar[k]);
      const bool fits = std::isnan(want) ? scalar[k] == 0x7fffffff00000000
                        : std::isinf(want) || want == 0
                            ? scalar[k] == std::bit_cast<uint64_t>(want)
                            : std::fabs(got - want) <= 0x1p-21 * std::fabs(want);
      if (fits && (scalar[k] & ~kUpper) == 0) continue;
      ++wrong;
      const std::string what = fmt::format("of {:a} is {:a}, not {:a}", x, got, want);
      CHECK_MESSAGE(false, what);
    }
  }
}

namespace {

// What the PTX ISA promises of a function of floats: an absolute or a relative error.
struct Approximation {
  const char* body;
  double relative, absolute, greatest;  // of arguments whose results are bounded
  double (*exact)(double);
};

void check_approximation(const Approximation& a) {
  std::vector<Operands> some = draw_operands(3, 4000);
  for (size_t k = 0; k < 1000; ++k)
    some[k].a = static_cast<uint32_t>(bits(static_cast<float>(k) * 0.013f - 6.3f));
  const std::vector<uint64_t> scalar = run_body("scalar", a.body, "rr", some);
  CHECK(run_body("simd", a.body, "rr", some) == scalar);
  int wrong = 0;
  for (size_t k = 0; k < some.size() && wrong < 3; ++k) {
    const double x = f(some[k].a), want = a.exact(x), got = f(scalar[k]);
    if (std::fabs(x) > a.greatest && !std::isnan(want)) continue;
    const bool fits =
        std::isnan(want) ? scalar[k] == 0x7fffffff
        : std::isinf(want) || std::fabs(want) > 3.4e38
            ? std::isinf(got)
            : std::fabs(got - want) <= a.relative * std::fabs(want) + a.absolute + 1.5e-45;
    if (fits) continue;
    ++wrong;
    const std::string what = fmt::format("{} of {} is {}, not {}", a.body, x, got, want);
    CHECK_MESSAGE(false, what);
  }
}

}  // namespace

TEST_CASE("approximations lie within their published bounds") {
  const double inf = HUGE_VAL, half_ulp = std::exp2(-24) * 1.001;
  const Approximation all[] = {
      {"rcp.approx.f32 %D, %A;", half_ulp, 0, inf, [](double x) { return 1 / x; }},
      {"sqrt.approx.f32 %D, %A;", half_ulp, 0, inf, [](double x) { return std::sqrt(x); }},
      {"rsqrt.approx.f32 %D, %A;", half_ulp, 0, inf, [](double x) { return 1 / std::sqrt(x); }},
      {"ex2.approx.f32 %D, %A;", half_ulp, 0, inf, [](double x) { return std::exp2(x); }},
      {"lg2.approx.f32 %D, %A;", half_ulp, 0, inf, [](double x) { return std::log2(x); }},
      {"tanh.approx.f32 %D, %A;", std::exp2(-11), 0, inf, [](double x) { return std::tanh(x); }},
      {"sin.approx.f32 %D, %A;", half_ulp, std::exp2(-40), 0x1p50,
       [](double x) { return std::sin(x); }},
      {"cos.approx.f32 %D, %A;", half_ulp, std::exp2(-40), 0x1p50,
       [](double x) { return std::cos(x); }}};
  for (const Approximation& a : all) check_approximation(a);
}

TEST_CASE("ex2 and tanh of all numbers of 16 bits, alone and in pairs") {
  std::vector<Operands> all;
  for (U x = 0; x < 0x10000; ++x) all.push_back({x | (x ^ 0x5555) << 16, 0, 0});
  struct Form {
    const char *alone, *pair;
    bool is_bfloat, is_ex2;
  };
  for (const Form& form :
       {Form{"ex2.approx.f16 %D, %A;", "ex2.approx.f16x2 %D, %A;", false, true},
        Form{"ex2.approx.ftz.bf16 %D, %A;", "ex2.approx.ftz.bf16x2 %D, %A;", true, true},
        Form{"tanh.approx.f16 %D, %A;", "tanh.approx.f16x2 %D, %A;", false, false},
        Form{"tanh.approx.bf16 %D, %A;", "tanh.approx.bf16x2 %D, %A;", true, false}}) {
    CAPTURE(form.alone);
    const auto value = [&](U bits) {
      return form.is_bfloat
                 ? f(bits << 16)
                 : static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
    };
    const std::vector<U> alone = run_body("scalar", form.alone, "hh", all),
                         pairs = run_body("simd", form.pair, "rr", all);
    int wrong = 0;
    for (U x = 0; x < 0x10000; ++x) {
      const U got = alone[x];
      wrong += (pairs[x] & 0xffff) != got || pairs[x] >> 16 != alone[x ^ 0x5555];
      const float a = value(x), y = value(got);
      if (std::isnan(a)) {
        wrong += got != 0x7fff;
        continue;
      }
      const auto exact =
          static_cast<float>(form.is_ex2 ? std::exp2(double{a}) : std::tanh(double{a}));
      // As an H100: what ex2 gives is cut off. tanh is rounded: half a unit of the last place.
      const float size = std::fabs(exact), next = value((got & 0x7fff) + 1);
      if (form.is_ex2 && (exact >= 65536 || form.is_bfloat) && std::isinf(exact))
        wrong += !std::isinf(y);
      else if (form.is_ex2 && !form.is_bfloat && exact >= 65536)
        wrong += got != 0x7c00;
      else if (form.is_ex2)
        wrong += !(y <= flushed(exact) && (flushed(exact) < next || exact < 1e-37f));
      else
        wrong += !(std::fabs(std::fabs(y) - size) <= (next - std::fabs(y)) / 2 * 1.0001f);
    }
    CHECK(wrong == 0);
  }
}
