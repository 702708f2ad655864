// Floating-point arithmetic in loops, which backend simd runs as native code: all directions of
// rounding, NaNs of every kind, and flushing give what the scalar backend does.
#include <fmt/format.h>

#include <random>

#include "tests/isa/ptx/launch_text.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

constexpr uint32_t kThreads = 64, kRounds = 400;

// Each thread takes three operands of its own in each round, and mixes the results.
// `result`: the type of what the opcode gives, if it is not that of its operands.
std::string loop(const std::string& opcode, int operands, int bits,
                 const std::string& result = "") {
  const char* const sources[] = {"%a", "%a, %b", "%a, %b, %c"};
  return kHead + fmt::format(R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{{
  .reg .f{1} %a, %b, %c;
  .reg .{9} %r;
  .reg .b32 %t, %n;
  .reg .b64 %from, %to, %sum, %w;
  .reg .pred %p;
  ld.param.u64 %from, [in];
  ld.param.u64 %to, [out];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %from, %t, {2}, %from;
  mad.wide.u32 %to, %t, 8, %to;
  mov.b64 %sum, 0;
  mov.u32 %n, 0;
NEXT:
  ld.global.f{1} %a, [%from];
  ld.global.f{1} %b, [%from+{3}];
  ld.global.f{1} %c, [%from+{4}];
  {0} %r, {5};
  {6}
  mul.lo.u64 %sum, %sum, 6364136223846793005;
  add.u64 %sum, %sum, %w;
  add.u64 %from, %from, {7};
  add.u32 %n, %n, 1;
  setp.lt.u32 %p, %n, {8};
  @%p bra NEXT;
  st.global.u64 [%to], %sum;
  ret;
}}
)",
                             opcode, bits, 3 * bits / 8, bits / 8, 2 * bits / 8,
                             sources[operands - 1],
                             (result.empty() ? bits == 64 : result.ends_with("64"))
                                 ? "mov.b64 %w, %r;"
                                 : "{ .reg .b32 %h; mov.b32 %h, %r; cvt.u64.u32 %w, %h; }",
                             kThreads * 3 * bits / 8, kRounds,
                             result.empty() ? fmt::format("f{}", bits) : result);
}

// Of every kind, and so that differences cancel. `plain`: rounds that have hardly any NaN.
template <class Bits>
std::vector<Bits> operands(std::mt19937_64& random, bool plain) {
  constexpr int kFraction = sizeof(Bits) == 4 ? 23 : 52;
  constexpr Bits kTop = sizeof(Bits) == 4 ? 255 : 2047;
  std::vector<Bits> list(kThreads * kRounds * 3);
  const auto one_of = [&](int n) { return static_cast<Bits>(random() % static_cast<unsigned>(n)); };
  for (Bits& x : list) {
    const Bits sign = one_of(2) << (8 * sizeof(Bits) - 1);
    const Bits fraction = static_cast<Bits>(random()) & ((Bits{1} << kFraction) - 1);
    switch (plain ? 5 + one_of(5) : one_of(10)) {
      case 0:
        x = sign | (one_of(2) != 0 ? kTop << kFraction : 0);
        break;
      case 1:  // quiet and signalling
        x = sign | kTop << kFraction | fraction;
        break;
      case 2:
        x = sign | kTop << kFraction | Bits{1} << (kFraction - 1);
        break;
      case 3:
        x = sign | fraction;  // subnormal
        break;
      case 4:
        x = sign | (one_of(2) != 0 ? 1 + one_of(3) : kTop - 1 - one_of(3)) << kFraction | fraction;
        break;
      case 5:
        x = list[random() % list.size()];
        break;
      default:
        x = sign | (kTop / 2 - 3 + one_of(6)) << kFraction | (one_of(2) != 0 ? fraction : 0);
    }
  }
  return list;
}

template <class Bits>
void compare(const std::string& text, std::vector<Bits> in) {
  std::vector<std::vector<uint64_t>> outs;
  for (const char* backend : kBackends) {
    std::vector<uint64_t> out(kThreads);
    Engine engine({.backend = backend, .threads = 1});
    LoadedModule& module = engine.load(text, "test.ptx");
    engine.add_memory(in.data(), in.size() * sizeof(Bits), "in");
    engine.add_memory(out.data(), out.size() * 8, "out");
    const LaunchResult r = engine.launch({.kernel = engine.find_kernel(module, "k"),
                                          .grid = {},
                                          .block = {kThreads, 1, 1},
                                          .params = pack(in.data(), out.data())});
    if (r.fault) FAIL(r.fault->text);
    outs.push_back(out);
  }
  CHECK(outs[0] == outs[1]);
}

template <class Bits>
void check(std::mt19937_64& random) {
  constexpr int kBits = 8 * sizeof(Bits);
  for (const char* mode : {"rn", "rz", "rm", "rp"})
    for (const char* flush : {"", ".ftz"}) {
      if (kBits == 64 && flush[0] != 0) continue;
      const std::pair<const char*, int> kinds[] = {{"add", 2},  {"sub", 2}, {"mul", 2}, {"div", 2},
                                                   {"sqrt", 1}, {"rcp", 1}, {"fma", 3}};
      for (const auto& [name, count] : kinds)
        for (const bool plain : {false, true}) {
          const std::string opcode = fmt::format("{}.{}{}.f{}", name, mode, flush, kBits);
          CAPTURE(opcode);
          const std::string text = loop(opcode, count, kBits);
          compare(text, operands<Bits>(random, plain));
        }
    }
}

}  // namespace

TEST_CASE("arithmetic in loops gives what the scalar backend does, in all directions of rounding") {
  const uint64_t seed = std::random_device{}();
  INFO("seed: ", seed);
  std::mt19937_64 random(seed);
  check<uint32_t>(random);
  check<uint64_t>(random);
}

TEST_CASE("arithmetic in loops: conversions give what the scalar backend does") {
  const uint64_t seed = std::random_device{}();
  INFO("seed: ", seed);
  std::mt19937_64 random(seed);
  const auto check = [&]<class Bits>(const std::string& opcode, const std::string& result, Bits) {
    CAPTURE(opcode);
    for (const bool plain : {false, true})
      compare(loop(opcode, 1, 8 * sizeof(Bits), result), operands<Bits>(random, plain));
  };
  for (const char* mode : {"rni", "rzi", "rmi", "rpi"}) {
    for (const char* type : {"s32", "u32", "s64", "u64"}) {
      for (const char* flush : {"", ".ftz"})
        check(fmt::format("cvt.{}{}.{}.f32", mode, flush, type), type, uint32_t{});
      check(fmt::format("cvt.{}.{}.f64", mode, type), type, uint64_t{});
    }
    for (const char* flush : {"", ".ftz"})
      check(fmt::format("cvt.{}{}.f32.f32", mode, flush), "", uint32_t{});
    check(fmt::format("cvt.{}.f64.f64", mode), "", uint64_t{});
  }
  for (const char* flush : {"", ".ftz"}) {
    check(fmt::format("cvt{}.f64.f32", flush), "f64", uint32_t{});
    for (const char* mode : {"rn", "rz", "rm", "rp"})
      check(fmt::format("cvt.{}{}.f32.f64", mode, flush), "f32", uint64_t{});
  }
  for (const char* flush : {"", ".ftz"}) {
    for (const char* mode : {"rn", "rz"})
      check(fmt::format("{{ .reg .b16 %i; cvt.{}{}.f16.f32 %i, %a; cvt.u32.u16 %r, %i; }} //", mode,
                        flush),
            "b32", uint32_t{});
    check(fmt::format("{{ .reg .b16 %i, %j; mov.b32 {{%i, %j}}, %a; cvt{}.f32.f16 %r, %j; }} //",
                      flush),
          "f32", uint32_t{});
  }
  // Halves: both of a word.
  for (const auto& [opcode, count] : {std::pair{"add.f16x2", 2},
                                      {"sub.rn.f16x2", 2},
                                      {"mul.f16x2", 2},
                                      {"fma.rn.f16x2", 3},
                                      {"min.f16x2", 2},
                                      {"max.NaN.f16x2", 2},
                                      {"add.ftz.f16x2", 2}}) {
    const char* const sources[] = {"%j", "%j, %k", "%j, %k, %l"};
    check(fmt::format("{{ .reg .b32 %i, %j, %k, %l; mov.b32 %j, %a; mov.b32 %k, %b; "
                      "mov.b32 %l, %c; {} %i, {}; mov.b32 %r, %i; }} //",
                      opcode, sources[count - 1]),
          "b32", uint32_t{});
  }
  check(
      "{ .reg .b16 %i<4>; .reg .pred %q; mov.b32 {%i0, %i1}, %a; mov.b32 {%i2, %i3}, %b; "
      "setp.ltu.f16 %q, %i1, %i3; selp.b32 %r, 3, 5, %q; } //",
      "b32", uint32_t{});
  for (const char* type : {"u64", "s64"})
    check(fmt::format("{{ .reg .b64 %i, %j, %k; mov.b64 %i, %a; mov.b64 %j, %b; "
                      "mul.hi.{} %r, %i, %j; }} //",
                      type),
          type, uint64_t{});
  // Operands are any bits of their size.
  for (const char* mode : {"rn", "rz", "rm", "rp"})
    for (const char* to : {"f32", "f64"}) {
      for (const char* from : {"s32", "u32"})
        check(fmt::format("{{ .reg .b32 %i; mov.b32 %i, %a; cvt.{}.{}.{} %r, %i; }} //", mode, to,
                          from),
              to, uint32_t{});
      for (const char* from : {"s64", "u64"})
        check(fmt::format(
                  "{{ .reg .b64 %i; mov.b64 %i, %a; shr.{} %i, %i, 9; cvt.{}.{}.{} %r, %i; }} //",
                  from, mode, to, from),
              to, uint64_t{});
    }
  for (const char* name : {"ex2.approx", "lg2.approx", "sin.approx", "cos.approx", "rsqrt.approx"})
    for (const char* flush : {"", ".ftz"})
      check(fmt::format("{}{}.f32", name, flush), "", uint32_t{});
  check("tanh.approx.f32", "", uint32_t{});
}

TEST_CASE("arithmetic in loops: a register has one constant after the other") {
  const uint64_t seed = std::random_device{}();
  INFO("seed: ", seed);
  std::mt19937_64 random(seed);
  const auto check = [&]<class Bits>(const std::string& body, const std::string& result, Bits) {
    CAPTURE(body);
    for (const bool plain : {false, true})
      compare(loop("{ " + body + " } //", 1, 8 * sizeof(Bits), result),
              operands<Bits>(random, plain));
  };
  check(
      ".reg .f64 %k; mov.f64 %k, 0d3FF8000000000000; fma.rn.f64 %r, %a, %b, %k; "
      "mov.f64 %k, 0dBFD0000000000000; fma.rn.f64 %r, %r, %b, %k; st.global.f64 [%to], %k; "
      "mov.f64 %k, 0d0000000000000000; max.f64 %r, %r, %k; mov.f64 %k, 0d7FF8000000000001; "
      "min.f64 %r, %r, %k; mov.f64 %k, 0d4008000000000000; div.rn.f64 %r, %k, %r; "
      "add.f64 %r, %r, %k;",
      "", uint64_t{});
  for (const char* flush : {"", ".ftz"})
    check(
        fmt::format(".reg .f32 %k; mov.f32 %k, 0f3FC00000; fma.rn{0}.f32 %r, %a, %b, %k; "
                    "mov.f32 %k, 0f00000001; fma.rn{0}.f32 %r, %k, %b, %r; mov.f32 %k, 0f80000000; "
                    "max{0}.f32 %r, %r, %k; .reg .pred %q; setp.lt{0}.f32 %q, %a, %k; "
                    "mov.f32 %k, 0f40400000; selp.f32 %k, %k, %b, %q; add{0}.f32 %r, %r, %k;",
                    flush),
        "", uint32_t{});
  // Integers, where lanes part, and where one of two places wrote the register.
  check(
      ".reg .b64 %i, %k, %m; .reg .pred %q, %s; mov.b64 %i, %a; mov.b64 %k, -1; "
      "xor.b64 %m, %i, %k; mov.b64 %k, 0x123456789abcdef; setp.gt.s64 %q, %m, %k; "
      "@%q mov.b64 %k, 7; add.s64 %m, %m, %k; mov.b64 %k, 0xffffffff; and.b64 %m, %m, %k; "
      "setp.eq.u64 %s, %k, %m; selp.b64 %m, %k, %m, %s; add.s64 %r, %m, %i;",
      "b64", uint64_t{});
  check(
      ".reg .b32 %i, %k, %m; .reg .pred %q; mov.b32 %i, %a; mov.b32 %k, -1; xor.b32 %m, %i, %k; "
      "mov.b32 %k, 0x80000000; setp.lt.u32 %q, %m, %k; selp.b32 %m, %m, %k, %q; mov.b32 %k, 5; "
      "@%q bra OVER; mul.lo.s32 %m, %m, %k; mov.b32 %k, 9; OVER: add.s32 %m, %m, %k; "
      "mov.b32 %k, 31; shr.s32 %k, %m, %k; add.s32 %r, %m, %k;",
      "b32", uint32_t{});
}

TEST_CASE("arithmetic in loops: integers") {
  const uint64_t seed = std::random_device{}();
  INFO("seed: ", seed);
  std::mt19937_64 random(seed);
  const auto check = [&]<class Bits>(const std::string& body, std::vector<Bits> in) {
    CAPTURE(body);
    compare(loop("{ " + body + " } //", 1, 8 * sizeof(Bits), "b64"), std::move(in));
  };
  // Numbers of every length, near powers of two, products and their neighbours.
  const auto numbers = [&] {
    std::vector<uint64_t> list(kThreads * kRounds * 3);
    for (size_t i = 0; i < list.size(); ++i) {
      const uint64_t x = random(), kind = random() % 8, least = random() % 5 - 2;
      list[i] = kind < 4                        ? x >> random() % 64
                : kind < 6                      ? (uint64_t{1} << random() % 64) + least
                : kind == 6 || i < 2 * kThreads ? 0 - (x >> random() % 64)
                                                : list[i - 1] * (x >> random() % 64) + least;
    }
    return list;
  };
  for (const char* op : {"div", "rem"})
    for (const char* type : {"u64", "s64"})
      check(fmt::format(".reg .b64 %i, %j; mov.b64 %i, %a; mov.b64 %j, %b; {}.{} %r, %i, %j;", op,
                        type),
            numbers());
  check(".reg .b64 %i; mov.b64 %i, %a; div.s64 %r, %i, -7;", numbers());
  check(".reg .b64 %i; mov.b64 %i, %a; div.u64 %r, 0x123456789abcdef, %i;", numbers());
  for (const char* body :
       {"clz.b64 %o, %i;", "mov.b64 {%l, %h}, %i; clz.b32 %o, %l;", "bfind.u64 %o, %i;",
        "bfind.shiftamt.s64 %o, %i;", "mov.b64 {%l, %h}, %i; bfind.s32 %o, %h;",
        "mov.b64 {%l, %h}, %i; mov.b64 {%k, %h}, %j; prmt.b32 %o, %l, %h, %k;",
        "mov.b64 {%l, %h}, %i; and.b32 %l, %l, 63; bmsk.clamp.b32 %o, %l, %h;",
        "mov.b64 {%l, %h}, %i; and.b32 %h, %h, 63; bmsk.clamp.b32 %o, %l, %h;",
        "mov.b64 {%l, %h}, %i; and.b32 %l, %l, 63; and.b32 %h, %h, 63; bmsk.clamp.b32 %o, %l, %h;",
        "mov.b64 {%l, %h}, %i; bmsk.wrap.b32 %o, %l, %h;"})
    check(fmt::format(".reg .b64 %i, %j; .reg .b32 %o, %l, %h, %k; mov.b64 %i, %a; "
                      "mov.b64 %j, %b; {} cvt.u64.u32 %r, %o;",
                      body),
          numbers());
}
