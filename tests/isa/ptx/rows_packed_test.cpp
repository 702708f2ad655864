// Pairs of integers, packing, lop3 with predicates, extension of few bits, minima of sizes, and
// hints to caches.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/isa/ptx/one_insn.h"

using namespace gpusim::ptx::test;

namespace {

using U = uint64_t;

const std::vector<Operands>& operands() {
  static const std::vector<Operands> drawn = draw_operands(31, 4000);
  return drawn;
}
void check(const std::string& body, const std::string& kinds, std::function<U(U, U, U)> expected) {
  check_case({body, kinds, std::move(expected)}, operands());
}

int64_t as_signed(U x, int bits) {
  const U sign = U{1} << (bits - 1);
  return static_cast<int64_t>(((x & ((sign << 1) - 1)) ^ sign) - sign);
}

}  // namespace

TEST_CASE("pairs of integers of 16 bits, and what is not negative") {
  const auto pairs = [](auto op) {
    return [=](U a, U b, U) {
      const auto one = [&](int shift) {
        return static_cast<U>(op(a >> shift & 0xffff, b >> shift & 0xffff)) & 0xffff;
      };
      return one(0) | one(16) << 16;
    };
  };
  const auto number = [](U x) { return as_signed(x, 16); };
  for (const char* type : {"u16x2", "s16x2"})
    check(fmt::format("add.{} %D, %A, %B;", type), "rrr", pairs([](U a, U b) { return a + b; }));
  check("min.u16x2 %D, %A, %B;", "rrr", pairs([](U a, U b) { return std::min(a, b); }));
  check("max.u16x2 %D, %A, %B;", "rrr", pairs([](U a, U b) { return std::max(a, b); }));
  for (const bool is_relu : {false, true}) {
    const char* relu = is_relu ? ".relu" : "";
    const auto limited = [=](int64_t x) { return is_relu ? std::max<int64_t>(x, 0) : x; };
    check(fmt::format("min{}.s16x2 %D, %A, %B;", relu), "rrr",
          pairs([=](U a, U b) { return limited(std::min(number(a), number(b))); }));
    check(fmt::format("max{}.s16x2 %D, %A, %B;", relu), "rrr",
          pairs([=](U a, U b) { return limited(std::max(number(a), number(b))); }));
  }
  check("min.relu.s32 %D, %A, %B;", "rrr", [](U a, U b, U) {
    return static_cast<U>(std::max<int64_t>(std::min(as_signed(a, 32), as_signed(b, 32)), 0));
  });
  check("max.relu.s32 %D, %A, %B;", "rrr", [](U a, U b, U) {
    return static_cast<U>(std::max<int64_t>(std::max(as_signed(a, 32), as_signed(b, 32)), 0));
  });
}

TEST_CASE("packing, extending, and lop3 with a predicate") {
  struct Part {
    const char* name;
    int bits;
    int64_t least, most;
  };
  for (const Part& p : {Part{"u16", 16, 0, 65535}, Part{"s16", 16, -32768, 32767}})
    check(fmt::format("cvt.pack.sat.{}.s32 %D, %A, %B;", p.name), "rrr", [=](U a, U b, U) {
      const auto one = [&](U x) {
        return static_cast<U>(std::clamp(as_signed(x, 32), p.least, p.most)) & 0xffff;
      };
      return one(b) | one(a) << 16;
    });
  for (const Part& p : {Part{"u8", 8, 0, 255}, Part{"s8", 8, -128, 127}})
    check(fmt::format("cvt.pack.sat.{}.s32.b32 %D, %A, %B, %C;", p.name), "rrrr",
          [=](U a, U b, U c) {
            const auto one = [&](U x) {
              return static_cast<U>(std::clamp(as_signed(x, 32), p.least, p.most)) & 0xff;
            };
            return one(b) | one(a) << 8 | c << 16;
          });
  for (const bool clamps : {false, true})
    for (const bool is_signed : {false, true})
      check(fmt::format("szext.{}.{}32 %D, %A, %B;", clamps ? "clamp" : "wrap",
                        is_signed ? "s" : "u"),
            "rrr", [=](U a, U b, U) {
              if (clamps && b >= 32) return a;
              const auto count = static_cast<int>(b % 32);
              if (count == 0) return U{0};
              return is_signed ? static_cast<U>(as_signed(a, count)) : a & ((U{1} << count) - 1);
            });
  const auto xor3 = [](U a, U b) { return a ^ b ^ 0xf0; };  // 0x96
  for (const bool is_and : {false, true}) {
    const char* with = is_and ? "and" : "or";
    check(fmt::format(".reg .pred %p;\nlop3.{}.b32 %D|%p, %A, %B, 240, 0x96, %C;\n"
                      "selp.u32 %t, 1, 0, %p;\nxor.b32 %D, %D, %t;",
                      with),
          "rrrp", [=](U a, U b, U c) {
            const U value = xor3(a, b);
            const bool truth = is_and ? value != 0 && c != 0 : value != 0 || c != 0;
            return value ^ U { truth };
          });
    check(fmt::format(".reg .pred %p;\nlop3.{}.b32 _|%p, %A, %B, %A, 0x18, !%C;\n"
                      "selp.u32 %D, 1, 0, %p;",
                      with),
          "rrrp", [=](U a, U b, U c) {
            const U value = (~a & b & a) | (a & ~b & ~a);  // minterms 3 and 4: nothing
            const bool truth = is_and ? value != 0 && c == 0 : value != 0 || c == 0;
            return U{truth};
          });
  }
}

TEST_CASE("minima of sizes whose sign is that of a product, and fma that is not negative") {
  const auto h = [](U x) { return std::bit_cast<_Float16>(static_cast<uint16_t>(x)); };
  // Of sizes, as bits: they grow with their values.
  const auto of_sizes = [](bool is_min, bool gives_nan, U infinity, U nan, U sign) {
    return [=](U a, U b) {
      const U x = a & (sign - 1), y = b & (sign - 1), signs = (a ^ b) & sign;
      const bool x_is_nan = x > infinity, y_is_nan = y > infinity;
      if ((x_is_nan && y_is_nan) || (gives_nan && (x_is_nan || y_is_nan))) return nan;
      if (x_is_nan || y_is_nan) return (x_is_nan ? y : x) | signs;
      return (is_min ? std::min(x, y) : std::max(x, y)) | signs;
    };
  };
  for (const bool is_min : {false, true})
    for (const bool gives_nan : {false, true}) {
      const std::string op =
          fmt::format("{}{}.xorsign.abs", is_min ? "min" : "max", gives_nan ? ".NaN" : "");
      const auto single = of_sizes(is_min, gives_nan, 0x7f800000, 0x7fffffff, 0x80000000),
                 half = of_sizes(is_min, gives_nan, 0x7c00, 0x7fff, 0x8000),
                 bfloat = of_sizes(is_min, gives_nan, 0x7f80, 0x7fff, 0x8000);
      check(op + ".f32 %D, %A, %B;", "rrr", [=](U a, U b, U) { return single(a, b); });
      check(op + ".f16 %D, %A, %B;", "hhh", [=](U a, U b, U) { return half(a, b); });
      check(op + ".bf16 %D, %A, %B;", "hhh", [=](U a, U b, U) { return bfloat(a, b); });
      check(op + ".f16x2 %D, %A, %B;", "rrr", [=](U a, U b, U) {
        return half(a & 0xffff, b & 0xffff) | half(a >> 16, b >> 16) << 16;
      });
    }
  check("min.ftz.xorsign.abs.f32 %D, %A, %B;", "rrr", [=](U a, U b, U) {
    const auto flushed = [](U x) { return (x & 0x7f800000) == 0 ? x & 0x80000000 : x; };
    return of_sizes(true, false, 0x7f800000, 0x7fffffff, 0x80000000)(flushed(a), flushed(b));
  });
  check("fma.rn.relu.f16 %D, %A, %B, %C;", "hhhh", [=](U a, U b, U c) {
    const double r =
        std::fma(static_cast<double>(h(a)), static_cast<double>(h(b)), static_cast<double>(h(c)));
    if (std::isnan(r)) return U{0x7fff};
    return std::signbit(r) ? U{0} : U{std::bit_cast<uint16_t>(static_cast<_Float16>(r))};
  });
}

TEST_CASE("hints to caches change nothing") {
  for (const char* load :
       {"ld.global.L1::no_allocate.L2::128B.b64 %D, [%addr];",
        "ld.global.nc.L1::evict_last.L2::cache_hint.L2::256B.b64 %D, [%addr], %policy;",
        "ld.relaxed.gpu.global.L1::evict_first.L2::cache_hint.b64 %D, [%addr], %policy;",
        "ld.global.cg.L2::cache_hint.b64 %D, [%addr], %policy;",
        "ld.weak.L2::64B.b64 %D, [%addr];"})
    check(std::string(".reg .b64 %policy;\n"
                      "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %policy, "
                      "0.5;\nprefetch.global.L2::evict_last [%addr];\n"
                      "applypriority.global.L2::evict_normal [%addr], 128;\n") +
              load,
          "dd", [](U a, U, U) { return a; });
  // Each thread has its own word.
  check(
      ".reg .b64 %p;\ncreatepolicy.range.global.L2::evict_last.b64 %p, [%addr], 64, 128;\n"
      "st.global.L1::no_allocate.L2::cache_hint.b64 [%addr], %B, %p;\n"
      "red.global.add.L2::cache_hint.u64 [%addr], %A, %p;\n"
      "atom.global.xor.L2::cache_hint.b64 %D, [%addr], %A, %p;\n"
      "st.global.b64 [%addr], %A;",
      "ddd", [](U a, U b, U) { return a + b; });
}
