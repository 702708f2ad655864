#include "tests/isa/ptx/one_insn.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>

namespace gpusim::ptx::test {
namespace {

// From and to the 64-bit words in memory.
std::string load(char kind, const std::string& reg, int offset) {
  if (kind == 'd') return fmt::format("ld.global.b64 {}, [%addr+{}];\n", reg, offset);
  if (kind == 'r') return fmt::format("ld.global.b32 {}, [%addr+{}];\n", reg, offset);
  if (kind == 'h') return fmt::format("ld.global.b16 {}, [%addr+{}];\n", reg, offset);
  return fmt::format("ld.global.b32 %t, [%addr+{}];\nand.b32 %t, %t, 1;\nsetp.ne.b32 {}, %t, 0;\n",
                     offset, reg);
}
std::string store(char kind) {
  if (kind == 'd') return "mov.b64 %wide, %D;\n";
  if (kind == 'r') return "cvt.u64.u32 %wide, %D;\n";
  if (kind == 'h') return "cvt.u64.u16 %wide, %D;\n";
  return "selp.u64 %wide, 1, 0, %D;\n";
}
std::string type_of(char kind) {
  return kind == 'd' ? ".b64" : kind == 'r' ? ".b32" : kind == 'h' ? ".b16" : ".pred";
}

}  // namespace

std::vector<uint64_t> run_body(const std::string& backend, const std::string& body,
                               const std::string& kinds, const std::vector<Operands>& operands) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n"
      ".reg .b64 %addr, %wide, %base, %o;\n.reg .b32 %t, %i, %n, %c, %d;\n.reg .pred %q;\n";
  const char* names[] = {"%D", "%A", "%B", "%C"};
  for (size_t k = 0; k < kinds.size(); ++k)
    text += fmt::format(".reg {} {};\n", type_of(kinds[k]), names[k]);
  text +=
      "mov.u32 %i, %tid.x;\nmov.u32 %c, %ctaid.x;\nmov.u32 %d, %ntid.x;\n"
      "mad.lo.s32 %i, %c, %d, %i;\nld.param.u32 %n, [n];\nsetp.ge.u32 %q, %i, %n;\n@%q bra END;\n"
      "ld.param.u64 %base, [in];\nmad.wide.u32 %addr, %i, 24, %base;\n";
  for (size_t k = 1; k < kinds.size(); ++k)
    text += load(kinds[k], names[k], static_cast<int>(8 * (k - 1)));
  // What the instruction does not write stays zero.
  if (kinds[0] != 'p')
    text += fmt::format("mov{} %D, 0;\n", type_of(kinds[0]));
  else
    text += "setp.ne.u32 %D, 0, 0;\n";
  text += body + "\n" + store(kinds[0]);
  text +=
      "ld.param.u64 %o, [out];\nmad.wide.u32 %o, %i, 8, %o;\nst.global.b64 [%o], %wide;\n"
      "END:\nret;\n}\n";

  Engine engine({.backend = backend, .threads = 1});
  LoadedModule& module = engine.load(text, "one_insn");
  const Kernel* kernel = engine.find_kernel(module, "k");
  REQUIRE(kernel != nullptr);
  std::vector<uint64_t> results(operands.size(), 0xdddddddddddddddd);
  engine.add_memory(operands.data(), operands.size() * sizeof(Operands));
  engine.add_memory(results.data(), results.size() * 8);
  struct {
    const void* in;
    void* out;
    uint32_t n;
  } params{operands.data(), results.data(), static_cast<uint32_t>(operands.size())};
  const auto blocks = static_cast<uint32_t>((operands.size() + 127) / 128);
  const LaunchResult result = engine.launch(
      {.kernel = kernel,
       .grid = {blocks, 1, 1},
       .block = {128, 1, 1},
       .params = std::as_bytes(std::span(&params, 1)).first(info(*kernel).param_bytes)});
  if (result.fault) FAIL(result.fault->text);
  return results;
}

std::vector<Operands> draw_operands(uint64_t seed, size_t count) {
  static constexpr uint64_t kSpecial[] = {0,
                                          1,
                                          2,
                                          3,
                                          7,
                                          8,
                                          15,
                                          16,
                                          17,
                                          31,
                                          32,
                                          33,
                                          63,
                                          64,
                                          65,
                                          127,
                                          128,
                                          255,
                                          256,
                                          0x7fff,
                                          0x8000,
                                          0xffff,
                                          0x10000,
                                          0x7fffffff,
                                          0x80000000,
                                          0x80000001,
                                          0xffffffff,
                                          0x100000000,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          0xffffffffffffffff,
                                          0x3f800000,
                                          0xbf800000,
                                          0x7f800000,
                                          0xff800000,
                                          0x7fc00000,
                                          0x7fa00000,
                                          0xffc12345,
                                          0x00000001,
                                          0x007fffff,
                                          0x00800000,
                                          0x00800001,
                                          0x7f7fffff,
                                          0xff7fffff,
                                          0x4f000000,
                                          0xcf000000,
                                          0x4f800000,
                                          0x5f000000,
                                          0x5f800000,
                                          0x3f000000,
                                          0x3fc00000,
                                          0x40200000,
                                          0x3ff0000000000000,
                                          0xbff0000000000000,
                                          0x7ff0000000000000,
                                          0xfff0000000000000,
                                          0x7ff8000000000000,
                                          0x7ff4000000000000,
                                          0x0010000000000000,
                                          0x000fffffffffffff,
                                          0x7fefffffffffffff,
                                          0x41e0000000000000,
                                          0x43e0000000000000,
                                          0x3fe0000000000000,
                                          0x36a0000000000000,
                                          0x47efffffe0000000,
                                          0x3810000000000000};
  std::mt19937_64 random(seed);
  const auto draw = [&]() -> uint64_t {
    const uint64_t r = random();
    switch (random() % 8) {
      case 0:
      case 1:
        return kSpecial[r % std::size(kSpecial)];
      case 2:
        return r % 100;
      case 3:
        return 0 - r % 100;
      // Floats and doubles of like magnitudes, so that sums do not only lose one side.
      case 4:
        return (r & 0x807fffff) | (uint64_t{120 + r % 16} << 23);
      case 5:
        return (r & 0x800fffffffffffff) | (uint64_t{1015 + r % 16} << 52);
      default:
        return r;
    }
  };
  std::vector<Operands> out(count);
  for (Operands& o : out) o = {draw(), draw(), draw()};
  return out;
}

void check_case(const InsnCase& c, const std::vector<Operands>& operands) {
  const auto mask = [](char kind, uint64_t v) {
    return kind == 'h' ? v & 0xffff : kind == 'r' ? v & 0xffffffff : kind == 'p' ? v & 1 : v;
  };
  const auto is_nan = [](uint64_t v) { return (v & ~(uint64_t{1} << 63)) > 0x7ff0000000000000; };
  for (const char* backend : {"scalar", "simd"}) {
    const std::vector<uint64_t> results = run_body(backend, c.body, c.kinds, operands);
    int wrong = 0;
    for (size_t k = 0; k < operands.size() && wrong < 3; ++k) {
      const auto value = [&](size_t n, uint64_t v) {
        return c.kinds.size() > n ? mask(c.kinds[n], v) : 0;
      };
      const uint64_t a = value(1, operands[k].a), b = value(2, operands[k].b),
                     x = value(3, operands[k].c);
      const uint64_t expected = mask(c.kinds[0], c.expected(a, b, x));
      if (results[k] == expected) continue;
      if (c.any_nan_64 && is_nan(results[k]) && is_nan(expected)) continue;
      ++wrong;
      const std::string what = fmt::format("{}: {} of {:#x}, {:#x}, {:#x} is {:#x}, not {:#x}",
                                           backend, c.body, a, b, x, results[k], expected);
      CHECK_MESSAGE(false, what);
    }
    CHECK(wrong == 0);
  }
}

}  // namespace gpusim::ptx::test
