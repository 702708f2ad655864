// Integer instructions against statements in plain C++.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <map>

#include "tests/isa/ptx/one_insn.h"

using namespace gpusim::ptx::test;

namespace {

using U = uint64_t;
using S = int64_t;

// Of w bits, as a signed number.
S sext(U v, int w) {
  return w == 64 ? static_cast<S>(v) : static_cast<S>(v << (64 - w)) >> (64 - w);
}
U low(U v, int w) { return w == 64 ? v : v & ((U{1} << w) - 1); }
__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideU;
U clamped(Wide v, int w, bool is_signed) {
  const Wide most = is_signed ? (Wide{1} << (w - 1)) - 1 : (Wide{1} << w) - 1;
  const Wide least = is_signed ? -(Wide{1} << (w - 1)) : 0;
  return static_cast<U>(v > most ? most : v < least ? least : v);
}

char kind(int w) { return w == 16 ? 'h' : w == 32 ? 'r' : 'd'; }
std::string kinds(int d, int a, int b = 0, int c = 0) {
  std::string s{kind(d), kind(a)};
  if (b != 0) s += kind(b);
  if (c != 0) s += kind(c);
  return s;
}

struct IntType {
  const char* name;
  int w;
  bool is_signed;
  Wide value(U v) const { return is_signed ? Wide{sext(v, w)} : Wide{low(v, w)}; }
};
constexpr IntType kTypes[] = {{"u16", 16, false}, {"s16", 16, true},  {"u32", 32, false},
                              {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

const std::vector<Operands>& operands() {
  static const std::vector<Operands> drawn = draw_operands(1, 2000);
  return drawn;
}
void check(const std::string& body, const std::string& k, std::function<U(U, U, U)> expected) {
  check_case({body, k, std::move(expected)}, operands());
}

}  // namespace

TEST_CASE("integer arithmetic of all types") {
  for (const IntType& t : kTypes) {
    CAPTURE(t.name);
    const int w = t.w;
    const auto insn = [&](const char* op) { return fmt::format("{}.{} %D, %A, %B;", op, t.name); };
    const std::string two = kinds(w, w, w), three = kinds(w, w, w, w);
    check(insn("add"), two, [](U a, U b, U) { return a + b; });
    check(insn("sub"), two, [](U a, U b, U) { return a - b; });
    check(insn("mul.lo"), two, [](U a, U b, U) { return a * b; });
    check(insn("mul.hi"), two, [&](U a, U b, U) {
      // Of 64 bits unsigned the product needs an unsigned type.
      const auto x = static_cast<WideU>(t.value(a)), y = static_cast<WideU>(t.value(b));
      return static_cast<U>(x * y >> w);
    });
    check(fmt::format("mad.lo.{} %D, %A, %B, %C;", t.name), three,
          [](U a, U b, U c) { return a * b + c; });
    check(fmt::format("mad.hi.{} %D, %A, %B, %C;", t.name), three, [&](U a, U b, U c) {
      const auto x = static_cast<WideU>(t.value(a)), y = static_cast<WideU>(t.value(b));
      return static_cast<U>(x * y >> w) + c;
    });
    check(insn("div"), two, [&](U a, U b, U) {
      return t.value(b) == 0 ? ~U{0} : static_cast<U>(t.value(a) / t.value(b));
    });
    check(insn("rem"), two, [&](U a, U b, U) {
      return t.value(b) == 0 ? a : static_cast<U>(t.value(a) % t.value(b));
    });
    check(insn("min"), two, [&](U a, U b, U) { return t.value(a) < t.value(b) ? a : b; });
    check(insn("max"), two, [&](U a, U b, U) { return t.value(a) < t.value(b) ? b : a; });
    check(fmt::format("sad.{} %D, %A, %B, %C;", t.name), three, [&](U a, U b, U c) {
      const Wide d = t.value(a) - t.value(b);
      return static_cast<U>(d < 0 ? -d : d) + c;
    });
    if (w < 64) {
      check(insn("mul.wide"), kinds(2 * w, w, w),
            [&](U a, U b, U) { return static_cast<U>(t.value(a) * t.value(b)); });
      check(fmt::format("mul.wide.{} %D, %A, 12;\nmul.wide.{} %D, %A, 8;", t.name, t.name),
            kinds(2 * w, w), [&](U a, U, U) { return static_cast<U>(t.value(a) * 8); });
      check(fmt::format("mad.wide.{} %D, %A, %B, %C;", t.name), kinds(2 * w, w, w, 2 * w),
            [&](U a, U b, U c) { return static_cast<U>(t.value(a) * t.value(b)) + c; });
    }
    if (t.is_signed) {
      check(fmt::format("abs.{} %D, %A;", t.name), kinds(w, w),
            [&](U a, U, U) { return static_cast<U>(t.value(a) < 0 ? -t.value(a) : t.value(a)); });
      check(fmt::format("neg.{} %D, %A;", t.name), kinds(w, w), [](U a, U, U) { return 0 - a; });
    }
  }
  check("add.sat.s32 %D, %A, %B;", "rrr",
        [](U a, U b, U) { return clamped(Wide{sext(a, 32)} + sext(b, 32), 32, true); });
  check("sub.sat.s32 %D, %A, %B;", "rrr",
        [](U a, U b, U) { return clamped(Wide{sext(a, 32)} - sext(b, 32), 32, true); });
  check("add.s32 %D, 5, %A;\nadd.s32 %D, %D, -3;", "rr", [](U a, U, U) { return a + 2; });
  check("sub.s64 %D, %A, 70000;", "dd", [](U a, U, U) { return a - 70000; });
  check("mul24.lo.s32 %D, %A, %B;", "rrr",
        [](U a, U b, U) { return static_cast<U>(sext(a, 24) * sext(b, 24)); });
  check("mul24.hi.u32 %D, %A, %B;", "rrr",
        [](U a, U b, U) { return low(a, 24) * low(b, 24) >> 16; });
  check("mad24.lo.u32 %D, %A, %B, %C;", "rrrr",
        [](U a, U b, U c) { return low(a, 24) * low(b, 24) + c; });
  check("mad24.hi.sat.s32 %D, %A, %B, %C;", "rrrr", [](U a, U b, U c) {
    const int64_t product = sext(a, 24) * sext(b, 24) >> 16;
    return clamped(Wide{sext(static_cast<U>(product), 32)} + sext(c, 32), 32, true);
  });
  check("pmevent 3;\npmevent.mask 9;\nmov.b32 %D, %A;", "rr", [](U a, U, U) { return a; });
}

TEST_CASE("numbers of two words") {
  using N = WideU;
  // a and b of 128 bits from two words each: {A, B} and {C, A + 1}.
  const auto two = [](U a, U b, U c) { return std::pair{N{b} << 64 | a, N{a + 1} << 64 | c}; };
  const std::string next = ".reg .b64 %n, %l;\nadd.u64 %n, %A, 1;\n";
  const auto high = [](N x) { return static_cast<U>(x >> 64); };
  check(next + "add.cc.u64 %l, %A, %C;\naddc.u64 %D, %B, %n;", "dddd", [=](U a, U b, U c) {
    const auto [x, y] = two(a, b, c);
    return high(x + y);
  });
  check(next + "sub.cc.u64 %l, %A, %C;\nsubc.u64 %D, %B, %n;", "dddd", [=](U a, U b, U c) {
    const auto [x, y] = two(a, b, c);
    return high(x - y);
  });
  check(next + "mad.lo.cc.u64 %l, %A, %B, %C;\nmadc.hi.u64 %D, %A, %B, %n;", "dddd",
        [=](U a, U b, U c) { return high(N{a} * b + (N{a + 1} << 64 | c)); });
  // Of 16 bits, which take a carry and give none.
  const std::string carry =
      ".reg .b32 %x, %y;\ncvt.u32.u16 %x, %C;\nshl.b32 %x, %x, 31;\n"
      "add.cc.u32 %y, %x, %x;\n";
  check(carry + "addc.u16 %D, %A, %B;", "hhhh", [](U a, U b, U c) { return a + b + (c & 1); });
  check(
      ".reg .b32 %x, %y;\ncvt.u32.u16 %x, %C;\nand.b32 %x, %x, 1;\nsub.cc.u32 %y, 0, %x;\n"
      "subc.s16 %D, %A, %B;",
      "hhhh", [](U a, U b, U c) { return a - b - (c & 1); });
  check(carry + "madc.lo.u16 %D, %A, %B, %C;", "hhhh",
        [](U a, U b, U c) { return a * b + c + (c & 1); });
  check(carry + "madc.hi.s16 %D, %A, %B, %C;", "hhhh", [](U a, U b, U c) {
    return (static_cast<U>(sext(a, 16) * sext(b, 16)) >> 16) + c + (c & 1);
  });
  // Three words of 32 bits.
  const std::string words =
      ".reg .b32 %x, %y, %z;\n{op}.cc.u32 %x, %A, %B;\n{op}c.cc.u32 %y, %B, %C;\n"
      "{op}c.u32 %z, %C, %A;\nmov.b64 %D, {%y, %z};";
  const auto with = [&](const char* op) {
    std::string s = words;
    for (size_t at; (at = s.find("{op}")) != std::string::npos;) s.replace(at, 4, op);
    return s;
  };
  const auto three = [](U x, U y, U z) { return N{z} << 64 | y << 32 | x; };
  check(with("add"), "drrr",
        [=](U a, U b, U c) { return static_cast<U>((three(a, b, c) + three(b, c, a)) >> 32); });
  check(with("sub"), "drrr",
        [=](U a, U b, U c) { return static_cast<U>((three(a, b, c) - three(b, c, a)) >> 32); });
}

TEST_CASE("logic, shifts and bit fields") {
  for (const int w : {16, 32, 64}) {
    CAPTURE(w);
    const auto two = kinds(w, w, w);
    const auto insn = [&](const char* op) { return fmt::format("{}.b{} %D, %A, %B;", op, w); };
    check(insn("and"), two, [](U a, U b, U) { return a & b; });
    check(insn("or"), two, [](U a, U b, U) { return a | b; });
    check(insn("xor"), two, [](U a, U b, U) { return a ^ b; });
    check(fmt::format("and.b{} %D, %A, 240;", w), kinds(w, w), [](U a, U, U) { return a & 240; });
    check(fmt::format("not.b{} %D, %A;", w), kinds(w, w), [](U a, U, U) { return ~a; });
    check(fmt::format("cnot.b{} %D, %A;", w), kinds(w, w), [](U a, U, U) { return U{a == 0}; });
    const auto shift = kinds(w, w, 32);
    const auto uw = static_cast<U>(w);
    check(fmt::format("shl.b{} %D, %A, %B;", w), shift,
          [=](U a, U n, U) { return n >= uw ? 0 : a << n; });
    check(fmt::format("shr.u{} %D, %A, %B;", w), shift,
          [=](U a, U n, U) { return n >= uw ? 0 : a >> n; });
    check(fmt::format("shr.b{} %D, %A, %B;", w), shift,
          [=](U a, U n, U) { return n >= uw ? 0 : a >> n; });
    check(fmt::format("shr.s{} %D, %A, %B;", w), shift,
          [=](U a, U n, U) { return static_cast<U>(sext(a, w) >> (n >= uw ? uw - 1 : n)); });
    for (const U n : {U{0}, U{1}, uw - 1, uw, U{100}}) {
      check(fmt::format("shl.b{} %D, %A, {};", w, n), kinds(w, w),
            [=](U a, U, U) { return n >= uw ? 0 : a << n; });
      check(fmt::format("shr.s{} %D, %A, {};", w, n), kinds(w, w),
            [=](U a, U, U) { return static_cast<U>(sext(a, w) >> (n >= uw ? uw - 1 : n)); });
      check(fmt::format("shr.u{} %D, %A, {};", w, n), kinds(w, w),
            [=](U a, U, U) { return n >= uw ? 0 : a >> n; });
    }
  }
  check("shf.l.wrap.b32 %D, %A, %B, %C;", "rrrr",
        [](U a, U b, U c) { return ((b << 32 | a) << (c & 31)) >> 32; });
  check("shf.l.clamp.b32 %D, %A, %B, %C;", "rrrr",
        [](U a, U b, U c) { return c >= 32 ? a : ((b << 32 | a) << c) >> 32; });
  check("shf.r.wrap.b32 %D, %A, %B, %C;", "rrrr",
        [](U a, U b, U c) { return (b << 32 | a) >> (c & 31); });
  check("shf.r.clamp.b32 %D, %A, %B, %C;", "rrrr",
        [](U a, U b, U c) { return c >= 32 ? b : (b << 32 | a) >> c; });
  check("lop3.b32 %D, %A, %B, %C, 0x96;", "rrrr", [](U a, U b, U c) { return a ^ b ^ c; });
  check("lop3.b32 %D, %A, %B, %C, 0x1096;", "rrrr", [](U a, U b, U c) { return a ^ b ^ c; });
  check("lop3.b32 %D, %A, %B, %C, 0xe8;", "rrrr",
        [](U a, U b, U c) { return (a & b) | (a & c) | (b & c); });
  check("lop3.b32 %D, %A, %B, %C, 0xca;", "rrrr", [](U a, U b, U c) { return (a & b) | (~a & c); });
  for (const int w : {32, 64}) {
    const auto one = std::string{'r', kind(w)};
    check(fmt::format("popc.b{} %D, %A;", w), one, [](U a, U, U) { return U(std::popcount(a)); });
    check(fmt::format("clz.b{} %D, %A;", w), one,
          [=](U a, U, U) { return U(std::countl_zero(a) - (64 - w)); });
    check(fmt::format("brev.b{} %D, %A;", w), kinds(w, w), [=](U a, U, U) {
      U r = 0;
      for (int i = 0; i < w; ++i) r |= (a >> i & 1) << (w - 1 - i);
      return r;
    });
    for (const bool is_signed : {false, true}) {
      const char s = is_signed ? 's' : 'u';
      const auto leading = [=](U a) {
        int i = w - 1;
        const U sign = is_signed ? a >> (w - 1) & 1 : 0;
        while (i >= 0 && (a >> i & 1) == sign) --i;
        return i;
      };
      check(fmt::format("bfind.{}{} %D, %A;", s, w), one,
            [=](U a, U, U) { return static_cast<U>(leading(a)); });
      check(fmt::format("bfind.shiftamt.{}{} %D, %A;", s, w), one, [=](U a, U, U) {
        const int i = leading(a);
        return i < 0 ? ~U{0} : static_cast<U>(w - 1 - i);
      });
      // As the PTX ISA writes it down.
      check(fmt::format("bfe.{}{} %D, %A, %B, %C;", s, w), kinds(w, w, 32, 32), [=](U a, U b, U c) {
        const int msb = w - 1, pos = static_cast<int>(b & 0xff), len = static_cast<int>(c & 0xff);
        const U sign = !is_signed || len == 0 ? 0 : a >> std::min(pos + len - 1, msb) & 1;
        U d = 0;
        for (int i = 0; i <= msb; ++i)
          d |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sign) << i;
        return d;
      });
    }
    for (const auto& [pos, len] : {std::pair{0, 8}, {5, 13}, {w - 4, 10}, {3, 0}, {0, w}, {70, 4}})
      check(fmt::format("bfi.b{} %D, %A, %B, {}, {};", w, pos, len), kinds(w, w, w),
            [=, p = pos, n = len](U a, U b, U) {
              U f = b;
              for (int i = 0; i < n && p + i < w; ++i)
                f = (f & ~(U{1} << (p + i))) | (a >> i & 1) << (p + i);
              return f;
            });
  }
  // As the PTX ISA writes it down; bases up to 63, offsets from -16 to 15.
  check("{ .reg .b32 %t, %u; bfe.u32 %t, %B, 0, 6; bfe.s32 %u, %C, 0, 5; fns.b32 %D, %A, %t, %u; }",
        "rrrr", [](U a, U b, U c) -> U {
          const int base = static_cast<int>(b & 63);
          const int offset = static_cast<int>(c & 31) - ((c & 16) != 0 ? 32 : 0);
          const auto is_set = [&](int pos) { return pos < 32 && (a >> pos & 1) != 0; };
          if (offset == 0) return is_set(base) ? static_cast<U>(base) : ~U{0};
          int count = std::abs(offset) - 1;
          for (int pos = base; pos >= 0 && pos<32; pos += offset> 0 ? 1 : -1)
            if (is_set(pos) && count-- == 0) return static_cast<U>(pos);
          return ~U{0};
        });
  check("fns.b32 %D, %A, 0, %B;", "rrr", [](U a, U b, U) -> U {
    const S offset = sext(b, 32);
    if (offset <= 0) return (a & 1) != 0 && offset >= -1 ? 0 : low(~U{0}, 32);
    S count = offset;
    for (U pos = 0; pos < 32; ++pos)
      if ((a >> pos & 1) != 0 && --count == 0) return pos;
    return low(~U{0}, 32);
  });
  check("bfi.b32 %D, %A, 0, %B, %C;", "rrrr", [](U a, U b, U c) {
    const int pos = static_cast<int>(b & 0xff), len = static_cast<int>(c & 0xff);
    U f = 0;
    for (int i = 0; i < len && pos + i < 32; ++i) f |= (a >> i & 1) << (pos + i);
    return f;
  });
  const auto byte = [](U a, U b, U from) {
    return (from < 4 ? a >> 8 * from : b >> 8 * (from - 4)) & 255;
  };
  const auto permuted = [=](U a, U b, U c) {
    U r = 0;
    for (int i = 0; i < 4; ++i) {
      U x = byte(a, b, c >> 4 * i & 7);
      if ((c >> 4 * i & 8) != 0) x = x >= 128 ? 255 : 0;
      r |= x << 8 * i;
    }
    return r;
  };
  check("prmt.b32 %D, %A, %B, %C;", "rrrr", permuted);
  check("prmt.b32 %D, %A, %B, 0x5410;", "rrr", [=](U a, U b, U) { return permuted(a, b, 0x5410); });
  check("prmt.b32 %D, %A, %B, 0xbf80;", "rrr", [=](U a, U b, U) { return permuted(a, b, 0xbf80); });
  check("dp4a.s32.u32 %D, %A, %B, %C;", "rrrr", [](U a, U b, U c) {
    for (int i = 0; i < 4; ++i)
      c += static_cast<U>(sext(a >> 8 * i & 255, 8) * static_cast<S>(b >> 8 * i & 255));
    return c;
  });
  // Differences of bytes, each or their sum.
  const auto apart = [](U a, U b, int i) {
    const S d = static_cast<S>(a >> 8 * i & 255) - static_cast<S>(b >> 8 * i & 255);
    return static_cast<U>(d < 0 ? -d : d);
  };
  check("vabsdiff4.u32.u32.u32.add %D, %A, %B, %C;", "rrrr", [=](U a, U b, U c) {
    for (int i = 0; i < 4; ++i) c += apart(a, b, i);
    return c;
  });
  check("vabsdiff4.u32.u32.u32 %D, %A, %B, %C;", "rrrr", [=](U a, U b, U) {
    U d = 0;
    for (int i = 0; i < 4; ++i) d |= apart(a, b, i) << 8 * i;
    return d;
  });
  check("vabsdiff4.u32.s32.s32.add %D, %A, %B, %C;", "rrrr", [](U a, U b, U c) {
    for (int i = 0; i < 4; ++i) {
      const Wide d = Wide{static_cast<S>(sext(a >> 8 * i & 255, 8))} -
                     static_cast<S>(sext(b >> 8 * i & 255, 8));
      c += static_cast<U>(d < 0 ? -d : d);
    }
    return c;
  });
}

TEST_CASE("video instructions of two and four elements") {
  const std::vector<Operands> few = draw_operands(1, 200);
  struct Form {
    std::string name;
    std::function<Wide(Wide, Wide)> of;
  };
  const std::vector<Form> forms = {
      {"vadd", [](Wide a, Wide b) { return a + b; }},
      {"vsub", [](Wide a, Wide b) { return a - b; }},
      {"vavrg", [](Wide a, Wide b) { return (a + b + (a + b >= 0 ? 1 : 0)) >> 1; }},
      {"vabsdiff", [](Wide a, Wide b) { return a < b ? b - a : a - b; }},
      {"vmin", [](Wide a, Wide b) { return a < b ? a : b; }},
      {"vmax", [](Wide a, Wide b) { return a < b ? b : a; }}};
  const std::vector<Form> relations = {{"eq", [](Wide a, Wide b) { return Wide{a == b}; }},
                                       {"ne", [](Wide a, Wide b) { return Wide{a != b}; }},
                                       {"lt", [](Wide a, Wide b) { return Wide{a < b}; }},
                                       {"le", [](Wide a, Wide b) { return Wide{a <= b}; }},
                                       {"gt", [](Wide a, Wide b) { return Wide{a > b}; }},
                                       {"ge", [](Wide a, Wide b) { return Wide{a >= b}; }}};
  const auto element = [](U word, int at, int bits, bool is_signed) {
    const U low = word >> at & ((U{1} << bits) - 1);
    return is_signed && (low >> (bits - 1)) != 0 ? Wide(low) - (Wide{1} << bits) : Wide(low);
  };
  const auto type = [](bool is_signed) { return is_signed ? ".s32" : ".u32"; };
  for (const int count : {2, 4}) {
    const int bits = 32 / count;
    for (int k = 0; k < 16; ++k) {
      const bool of_d = (k & 1) != 0, of_a = (k & 2) != 0, of_b = (k & 4) != 0, sat = (k & 8) != 0;
      const Wide most = (Wide{1} << (bits - of_d)) - 1, least = of_d ? -most - 1 : 0;
      for (const Form& f : forms) {
        const std::string text = fmt::format("{}{}{}{}{}{} %D, %A, %B, %C;", f.name, count,
                                             type(of_d), type(of_a), type(of_b), sat ? ".sat" : "");
        CAPTURE(text);
        check_case({text, "rrrr",
                    [=](U a, U b, U) {
                      U d = 0;
                      for (int at = 0; at < 32; at += bits) {
                        Wide x = f.of(element(a, at, bits, of_a), element(b, at, bits, of_b));
                        if (sat) x = x < least ? least : x > most ? most : x;
                        d |= (static_cast<U>(x) & ((U{1} << bits) - 1)) << at;
                      }
                      return d;
                    }},
                   few);
      }
    }
    for (int k = 0; k < 8; ++k) {
      const bool of_a = (k & 1) != 0, of_b = (k & 2) != 0, add = (k & 4) != 0;
      for (const Form& f : relations) {
        const std::string text = fmt::format("vset{}{}{}.{}{} %D, %A, %B, %C;", count, type(of_a),
                                             type(of_b), f.name, add ? ".add" : "");
        CAPTURE(text);
        check_case({text, "rrrr",
                    [=](U a, U b, U c) {
                      U d = add ? c : 0;
                      for (int at = 0; at < 32; at += bits) {
                        const auto x = static_cast<U>(
                            f.of(element(a, at, bits, of_a), element(b, at, bits, of_b)));
                        d += add ? x : x << at;
                      }
                      return d;
                    }},
                   few);
      }
    }
  }
  for (const bool is_signed : {false, true})
    check(fmt::format("vabsdiff2.u32{0}{0}.add %D, %A, %B, %C;", type(is_signed)), "rrrr",
          [=](U a, U b, U c) {
            for (int at = 0; at < 32; at += 16) {
              const Wide d = element(a, at, 16, is_signed) - element(b, at, 16, is_signed);
              c += static_cast<U>(d < 0 ? -d : d);
            }
            return c;
          });
}

TEST_CASE("integer comparisons and selections") {
  for (const IntType& t : kTypes) {
    using Holds = bool (*)(Wide, Wide);
    const std::map<std::string, Holds> all = {
        {"eq", [](Wide a, Wide b) { return a == b; }},
        {"ne", [](Wide a, Wide b) { return a != b; }},
        {"lt", [](Wide a, Wide b) { return a < b; }},
        {"le", [](Wide a, Wide b) { return a <= b; }},
        {"gt", [](Wide a, Wide b) { return a > b; }},
        {"ge", [](Wide a, Wide b) { return a >= b; }},
    };
    for (const auto& [name, holds] : all) {
      const auto two = std::string{'p', kind(t.w), kind(t.w)};
      check(fmt::format("setp.{}.{} %D, %A, %B;", name, t.name), two,
            [&, h = holds](U a, U b, U) { return U{h(t.value(a), t.value(b))}; });
      check(fmt::format("setp.{}.{} %D, %A, 7;", name, t.name), two.substr(0, 2),
            [&, h = holds](U a, U, U) { return U{h(t.value(a), 7)}; });
      // Through a branch and a selection, which compare again.
      const auto three = std::string{'d', kind(t.w), kind(t.w)};
      check(fmt::format(".reg .pred %p;\nsetp.{}.{} %p, %A, %B;\n@%p bra YES;\nmov.u64 %D, 1;\n"
                        "bra.uni DONE;\nYES:\nmov.u64 %D, 2;\nDONE:\n",
                        name, t.name),
            three, [&, h = holds](U a, U b, U) { return h(t.value(a), t.value(b)) ? U{2} : U{1}; });
      check(fmt::format(".reg .pred %p;\nsetp.{}.{} %p, %A, %B;\nselp.u64 %D, 3, 4, !%p;\n", name,
                        t.name),
            three, [&, h = holds](U a, U b, U) { return h(t.value(a), t.value(b)) ? U{4} : U{3}; });
      check(fmt::format(".reg .pred %p;\nsetp.{}.{} %p, %A, %B;\n@!%p mov.u64 %D, 9;\n", name,
                        t.name),
            three, [&, h = holds](U a, U b, U) { return h(t.value(a), t.value(b)) ? U{0} : U{9}; });
    }
  }
  check(
      ".reg .pred %p;\nsetp.lt.and.s32 %D|%p, %A, %B, %C;\n@%p bra L;\nbra M;\nL: xor.pred %D, %D, "
      "%p;\nM:\n",
      "prrp", [](U a, U b, U c) {
        const bool t = sext(a, 32) < sext(b, 32), p = t && c, q = !t && c;
        return U{q ? p != q : p};
      });
  check("setp.gt.xor.u32 %D, %A, %B, !%C;", "prrp", [](U a, U b, U c) { return U{(a > b) != !c}; });
  check("set.le.u32.s64 %D, %A, %B;", "rdd",
        [](U a, U b, U) { return static_cast<S>(a) <= static_cast<S>(b) ? 0xffffffff : U{0}; });
  check("set.hi.f32.u32 %D, %A, %B;", "rrr", [](U a, U b, U) { return a > b ? 0x3f800000 : U{0}; });
  check("slct.b64.s32 %D, %A, %B, %C;", "dddr",
        [](U a, U b, U c) { return sext(c, 32) >= 0 ? a : b; });
  check("xor.pred %D, %A, -1;\nand.pred %D, %D, 1;\nor.pred %D, 0, %D;", "pp",
        [](U a, U, U) { return a ^ 1; });
  check("and.pred %D, %A, !%B;\nor.pred %D, %D, %C;\nnot.pred %D, %D;", "pppp",
        [](U a, U b, U c) { return U{!((a && !b) || c)}; });
}

TEST_CASE("conversions between integers") {
  struct Small {
    const char* name;
    int w;
    bool is_signed;
  };
  const Small all[] = {{"u8", 8, false},   {"s8", 8, true},    {"u16", 16, false},
                       {"s16", 16, true},  {"u32", 32, false}, {"s32", 32, true},
                       {"u64", 64, false}, {"s64", 64, true}};
  for (const Small& to : all)
    for (const Small& from : all) {
      const auto value = [&](U a) {
        return from.is_signed ? Wide{sext(a, from.w)} : Wide{low(a, from.w)};
      };
      // Registers may be wider than the types.
      for (const int reg : {16, 32, 64}) {
        if (reg < to.w) continue;
        const int source = std::max(from.w, 16);
        const auto extended = [&](U v) {
          return to.is_signed ? static_cast<U>(sext(low(v, to.w), to.w)) : low(v, to.w);
        };
        check(fmt::format("cvt.{}.{} %D, %A;", to.name, from.name), kinds(reg, source),
              [&](U a, U, U) { return extended(static_cast<U>(value(a))); });
        // Where every value fits, ptxas refuses .sat.
        const int to_bits = to.w - to.is_signed, from_bits = from.w - from.is_signed;
        if ((to.is_signed || !from.is_signed) && to_bits >= from_bits) continue;
        check(fmt::format("cvt.sat.{}.{} %D, %A;", to.name, from.name), kinds(reg, source),
              [&](U a, U, U) { return extended(clamped(value(a), to.w, to.is_signed)); });
      }
    }
}

TEST_CASE("words taken apart and put together") {
  check(".reg .b32 %x, %y;\nmov.b64 {%x, %y}, %A;\nmov.b64 %D, {%y, %x};", "dd",
        [](U a, U, U) { return a << 32 | a >> 32; });
  check(".reg .b16 %x, %y;\nmov.b32 {%x, %y}, %A;\nmov.b32 %D, {%y, %x};", "rr",
        [](U a, U, U) { return a << 16 | a >> 16; });
  check(".reg .b16 %w, %x, %y, %z;\nmov.b64 {%w, %x, %y, %z}, %A;\nmov.b64 %D, {%z, %y, %x, %w};",
        "dd", [](U a, U, U) {
          return a << 48 | (a & 0xffff0000) << 16 | (a >> 16 & 0xffff0000) | a >> 48;
        });
  check(".reg .b32 %x;\nmov.b64 {_, %x}, %A;\ncvt.s64.s32 %D, %x;", "dd",
        [](U a, U, U) { return static_cast<U>(static_cast<S>(a) >> 32); });
}
