// The text of `gpusim disasm` and of fault messages.
#include "translator/common/listing.h"

#include <doctest/doctest.h>

#include <sstream>

#include "tests/unit/translator/test_elf.h"
#include "translator/common/translator.h"

namespace gpusim {
namespace {

Module sample() {
  Module module = translate_elf(TestElf({
                                            0x11000421,  // add w1, w1, #1
                                            0x6b00003f,  // cmp w1, w0
                                            0x54ffffc1,  // b.ne -8
                                            0xf8f50275,  // ldaddal x21, x21, [x19]
                                            0xd65f03c0,  // ret
                                            0x04e0e3e0,  // SVE
                                        })
                                    .bytes(),
                                "test");
  module.symbols = {{kTestText, 20, "loop", true}, {0x600000, 16, "data", false}};
  return module;
}

TEST_CASE("a listing shows instructions beside their micro-ops") {
  std::ostringstream out;
  print_listing(out, sample(), {.symbol = "loop"});
  const std::string text = out.str();
  INFO(text);
  CHECK(text.find("<loop>:") != std::string::npos);
  CHECK(text.find("add w1, w1, #1") != std::string::npos);
  CHECK(text.find("| addi32 x1, x1, 1\n") != std::string::npos);
  CHECK(text.find("| br_ne32 x1, x0 -> 4000b0\n") != std::string::npos);
  // What only the way out of the loop computes stands below the block.
  CHECK(text.find(": fl_sub32 nzcv, x1, x0\n") != std::string::npos);
  // Capstone 4 does not know it; the decoder does.
  CHECK(text.find("ldaddal x21, x21, [x19]") != std::string::npos);
}

TEST_CASE("a listing of a symbol that is not there is an error") {
  std::ostringstream out;
  CHECK_THROWS_AS(print_listing(out, sample(), {.symbol = "none"}), Error);
}

TEST_CASE("addresses get names") {
  const Module module = sample();
  CHECK(symbolize(module, kTestText) == "loop");
  CHECK(symbolize(module, kTestText + 16) == "loop+0x10");
  CHECK(symbolize(module, kTestText + 20) == "0x4000c4");
  CHECK(symbolize(module, 0x600008) == "data+0x8");
  CHECK(symbolize(module, 0) == "0x0");
}

TEST_CASE("names of shared objects end with them") {
  Module module = sample();
  // Functions of assembly have no size: the one before goes on to the end of its code, not further.
  constexpr uint64_t kBegin = 0x700000, kEnd = 0x702000;
  for (Symbol& s : module.symbols)
    if (s.name == "loop") s.size_bytes = 0;
  CHECK(symbolize(module, kTestText + 20) == "loop+0x14");
  CHECK(symbolize(module, kBegin) == "0x700000");
  module.shared_objects.push_back(
      {.begin = kBegin, .end = kEnd, .bias = kBegin, .path = "/lib/libx.so"});
  module.symbols.push_back({kBegin + 0x1000, 0, "in_x", true});
  CHECK(symbolize(module, kBegin) == "0x700000");
  CHECK(symbolize(module, kBegin + 0x1004) == "in_x+0x4");
  CHECK(symbolize(module, kEnd) == "0x702000");
  REQUIRE(shared_object_at(module, kBegin));
  CHECK(shared_object_at(module, kBegin)->name() == "libx.so");
  CHECK_FALSE(shared_object_at(module, kBegin - 1));
  CHECK_FALSE(shared_object_at(module, kEnd));
}

TEST_CASE("instructions have a text") {
  const Module module = sample();
  CHECK(describe_instruction(module, kTestText + 16) == "ret");
  CHECK(describe_instruction(module, kTestText + 20) == ".word 0x04e0e3e0");
  CHECK(describe_instruction(module, 0) == "no instruction");
}

}  // namespace
}  // namespace gpusim
