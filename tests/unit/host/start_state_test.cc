#include "host/start_state.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <map>
#include <tuple>

#include "device_sim/base/error.h"
#include "tests/unit/host/toy_module.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kTop = 0x5500801000;

struct Stack {
  StackImage image;
  uint64_t word(uint64_t address) const {
    uint64_t w;
    std::memcpy(&w, image.bytes.data() + (address - image.stack_pointer), 8);
    return w;
  }
  std::string text(uint64_t address) const {
    return reinterpret_cast<const char*>(image.bytes.data() + (address - image.stack_pointer));
  }
};

TEST_CASE("a process starts with argc, argv, envp and the auxiliary vector") {
  const Module m = toy_module();
  for (size_t extra = 0; extra < 4; ++extra) {
    const std::vector<std::string> args(extra, "a word");
    const Stack s{process_stack(m, {"./prog", args, {"HOME=/"}}, kTop, 1 << 16)};
    const uint64_t sp = s.image.stack_pointer;
    CHECK(sp % 16 == 0);
    CHECK(sp + s.image.bytes.size() == kTop);
    CHECK(s.word(sp) == 1 + extra);
    CHECK(s.text(s.word(sp + 8)) == "./prog");
    if (extra != 0) CHECK(s.text(s.word(sp + 16)) == "a word");
    uint64_t p = sp + 8 * (2 + extra);
    CHECK(s.word(p) == 0);
    CHECK(s.text(s.word(p + 8)) == "HOME=/");
    CHECK(s.word(p + 16) == 0);
    std::map<uint64_t, uint64_t> aux;
    for (p += 24; s.word(p) != 0; p += 16) aux[s.word(p)] = s.word(p + 8);
    CHECK(aux.size() == 18);
    CHECK(aux[3] == m.phdr_address);
    CHECK(aux[4] == 56);
    CHECK(aux[5] == 2);
    CHECK(aux[6] == 4096);
    CHECK(aux[9] == m.entry);
    CHECK(aux[17] == 100);
    CHECK(s.text(aux[31]) == "./prog");
    CHECK(s.text(aux[15]) == "aarch64");
    CHECK(aux[25] % 16 == 0);
  }
}

// `env -i qemu-aarch64 -cpu cortex-a57 ./auxv a bb` printed these (QEMU 7.2), stack top as here:
// string functions take as many instructions as their arguments' alignment asks for.
TEST_CASE("strings lie where qemu-user puts them") {
  const Module m = toy_module();
  const Stack s{process_stack(m, {"./auxv", {"a", "bb"}, {}}, kTop, 1 << 16)};
  CHECK(s.image.stack_pointer == 0x5500800e60);
  CHECK(s.word(s.image.stack_pointer + 8) == 0x5500800fe5);
  CHECK(s.word(s.image.stack_pointer + 16) == 0x5500800fec);
  CHECK(s.word(s.image.stack_pointer + 24) == 0x5500800fee);
}

TEST_CASE("words of a 32-bit process have 32 bits") {
  Module m = toy_module();
  m.isa = "riscv32";
  m.entry = 0x80000000;
  constexpr uint64_t kTop32 = 0x40801000;
  const Stack s{process_stack(m, {"./prog", {"a word"}, {"HOME=/"}}, kTop32, 1 << 16)};
  const auto word = [&](uint64_t address) { return s.word(address) & 0xffffffff; };
  const uint64_t sp = s.image.stack_pointer;
  CHECK(sp % 16 == 0);
  CHECK(sp + s.image.bytes.size() == kTop32);
  CHECK(word(sp) == 2);
  CHECK(s.text(word(sp + 4)) == "./prog");
  CHECK(s.text(word(sp + 8)) == "a word");
  CHECK(word(sp + 12) == 0);
  CHECK(s.text(word(sp + 16)) == "HOME=/");
  CHECK(word(sp + 20) == 0);
  std::map<uint64_t, uint64_t> aux;
  for (uint64_t p = sp + 24; word(p) != 0; p += 8) aux[word(p)] = word(p + 4);
  CHECK(aux.size() == 16);
  CHECK(aux[9] == m.entry);
  CHECK(s.text(aux[31]) == "./prog");
}

TEST_CASE("the auxiliary vector shows the module's CPU") {
  const std::tuple<const char*, uint64_t, uint64_t> kHwcaps[] = {
      {"", 0x8fb, 0}, {"neoverse-n1", 0x119ffb, 0}, {"max", 0x3dbffffb, 0x9e181}};
  for (const auto& [cpu, hwcap, hwcap2] : kHwcaps) {
    Module m = toy_module();
    m.cpu = cpu;
    const Stack s{process_stack(m, {"p", {}, {}}, kTop, 1 << 16)};
    std::map<uint64_t, uint64_t> aux;
    for (uint64_t p = s.image.stack_pointer + 32; s.word(p) != 0; p += 16)
      aux[s.word(p)] = s.word(p + 8);
    CHECK(aux[16] == hwcap);
    CHECK(aux[26] == hwcap2);
  }
}

TEST_CASE("a moved stack is the one that would have been built there") {
  Module m = toy_module();
  uint64_t top = kTop;
  SUBCASE("of 64-bit words") {}
  SUBCASE("of 32-bit words") {
    m.isa = "riscv32";
    top = 0x40801000;
  }
  constexpr uint64_t kDistance = 0x30000;
  const ProcessStart start{"./prog", {"a", "bb"}, {"HOME=/", "LANG=C"}};
  const std::vector<AuxEntry> extra{{77, 0}, {78, 5}};
  const StackImage image = process_stack(m, start, top, 1 << 16, extra);
  const StackImage there = process_stack(m, start, top + 3 * kDistance, 1 << 16, extra);
  const std::vector<CoreWord> words = image.words(kDistance), want = there.words(kDistance);
  REQUIRE(8 * words.size() == image.bytes.size());
  for (size_t i = 0; i < words.size(); ++i) CHECK(words[i].of(3) == want[i].value);
  CHECK(image.bytes[image.extra_offset] == 77);
  CHECK(image.stack_pointer + 3 * kDistance == there.stack_pointer);
}

TEST_CASE("arguments that do not fit are an error") {
  const Module m = toy_module();
  CHECK_THROWS_AS(process_stack(m, {"p", {std::string(5000, 'x')}, {}}, kTop, 4096), Error);
}

TEST_CASE("values of --arg") {
  using Kind = CallValue::Kind;
  const Module m = toy_module();
  CHECK(parse_call_value(m, "12").bits == 12);
  CHECK(parse_call_value(m, "-3").bits == ~uint64_t{2});
  CHECK(parse_call_value(m, "0xffffffffffffffff").bits == ~uint64_t{0});
  CHECK(parse_call_value(m, "0x1e5").bits == 0x1e5);
  CHECK(parse_call_value(m, "1.5").kind == Kind::kFloat);
  CHECK(parse_call_value(m, "-1.5e3").bits == std::bit_cast<uint64_t>(-1500.0));
  CHECK(parse_call_value(m, "&main").bits == kToyText + 0x100);
  CHECK(parse_call_value(m, "@core").kind == Kind::kCore);
  CHECK(parse_call_value(m, "@cores").kind == Kind::kCores);
  for (const char* bad :
       {"", "x", "1x", "0x", "--1", "1.5.2", "&nothing", "@c", "-", ".", "18446744073709551616"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_call_value(m, bad), Error);
  }
  Module narrow = toy_module();
  narrow.isa = "riscv32";
  CHECK(parse_call_value(narrow, "0xffffffff").bits == 0xffffffff);
  CHECK(parse_call_value(narrow, "-2147483648").bits == 0 - (uint64_t{1} << 31));
  for (const char* bad : {"0x100000000", "-2147483649", "18446744073709551615"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(parse_call_value(narrow, bad), doctest::Contains("registers of 32 bits"),
                         Error);
  }
}

}  // namespace
}  // namespace gpusim::host
