// Which code becomes a region of the CUDA backend, and where it is entered.
#include "device_sim/cuda/regions.h"

#include <doctest/doctest.h>

namespace gpusim::cuda {
namespace {

Uop jump(Op op, uint32_t block, uint32_t target) {
  return Uop{.op = op, .imm = Uop::pack_target(block, target)};
}

// 0: falls into 1. 1, 2: a loop, with a store in 2. 3: behind it; calls the system.
Module loop() {
  Module m;
  m.slot_count = 8;
  m.code.text_base = 0x1000;
  m.uops = {
      Uop{.op = Op::konst, .d = 0, .imm = 5},
      jump(Op::jmp, 0, 2),
      Uop{.op = Op::addi64, .d = 1, .a = 1, .imm = 1},
      jump(Op::br_ne64, 1, 5),
      jump(Op::link, 1, 7),
      Uop{.op = Op::st64, .d = 2, .a = 3},
      jump(Op::jmp, 2, 2),
      Uop{.op = Op::mov, .d = 4, .a = 1},
      Uop{.op = Op::service, .imm = Uop::pack_target(3, 0)},
  };
  m.uops[3].a = 1;
  m.uops[3].b = 0;
  m.uop_block = {0, 0, 1, 1, 1, 2, 2, 3, 3};
  m.blocks = {{.pc = 0x1000, .insn_count = 2, .first_uop = 0, .uop_count = 2},
              {.pc = 0x1008, .insn_count = 2, .first_uop = 2, .uop_count = 2},
              {.pc = 0x1010, .insn_count = 2, .first_uop = 5, .uop_count = 2},
              {.pc = 0x1018, .insn_count = 2, .first_uop = 7, .uop_count = 2}};
  m.code.uop_at = {0, kNoUop, 2, kNoUop, 5, kNoUop, 7, kNoUop};
  return m;
}

using Places = std::vector<uint32_t>;

TEST_CASE("a hot loop is a region, entered from outside and at its front") {
  const Module m = loop();
  const std::vector<CodeRegion> regions =
      choose_regions(m, std::vector<uint64_t>{1, 1000000, 999999, 1});
  REQUIRE(regions.size() == 1);
  CHECK(regions[0].places == Places{2, 4, 5});
  CHECK(regions[0].entries == Places{2});
  CHECK(regions[0].blocks == Places{1, 2});
  CHECK(regions[0].slots == std::vector<Slot>{0, 1, 2, 3});
  CHECK(regions[0].written == std::vector<Slot>{1});
  CHECK(longest_way(m, regions) == 4);
  const std::vector<uint8_t> entries = region_entries(m, regions);
  for (uint32_t i = 0; i < entries.size(); ++i) CHECK(entries[i] == (i == 2));
}

TEST_CASE("what a system call ends is in a region up to it") {
  const Module m = loop();
  const std::vector<CodeRegion> regions = choose_regions(m, std::vector<uint64_t>(4, 1));
  REQUIRE(regions.size() == 1);
  CHECK(regions[0].places == Places{0, 2, 4, 5, 7});
  CHECK(regions[0].blocks == Places{0, 1, 2});
  CHECK(text_of(m, regions).find("at = 8; goto leave;") != std::string::npos);
}

// A loop that loads to slot 1 from slot 2 on, adds to slot 3, and copies 64 bits to slot 4.
Module narrow_loop() {
  Module m;
  m.slot_count = 8;
  m.code.text_base = 0x1000;
  m.uops = {
      Uop{.op = Op::ldu32, .d = 1, .a = 2},
      Uop{.op = Op::add32, .d = 3, .a = 3, .b = 1},
      Uop{.op = Op::mov, .d = 4, .a = 5},
      Uop{.op = Op::addi64, .d = 2, .a = 2, .imm = 4},
      Uop{.op = Op::ld64, .d = 6, .a = 4},
      jump(Op::br_ne64, 0, 0),
      Uop{.op = Op::service, .imm = Uop::pack_target(1, 0)},
  };
  m.uop_block = {0, 0, 0, 0, 0, 0, 1};
  m.blocks = {{.pc = 0x1000, .insn_count = 6, .first_uop = 0, .uop_count = 6},
              {.pc = 0x1018, .insn_count = 1, .first_uop = 6, .uop_count = 1}};
  m.code.uop_at = {0, kNoUop, kNoUop, kNoUop, kNoUop, kNoUop, 6};
  return m;
}

TEST_CASE("slots that hold 32 bits throughout are known") {
  Module m = narrow_loop();
  const std::vector<uint64_t> counts = {1000000, 1};
  CHECK(choose_regions(m, counts)[0].narrow == std::vector<Slot>{1, 3});
  m.uops[2].a = 3;  // a copy of such a slot
  CHECK(choose_regions(m, counts)[0].narrow == std::vector<Slot>{1, 3, 4});
  m.uops[1].op = Op::add64;
  CHECK(choose_regions(m, counts)[0].narrow == std::vector<Slot>{1});
  const std::string text = text_of(m, choose_regions(m, counts));
  CHECK(text.find("if ((0 | s.high[1]) != 0) return at;") != std::string::npos);
}

TEST_CASE("a slot that a turn of the loop need not write may hold more") {
  Module m = loop();
  m.uops[5] = Uop{.op = Op::ldu32, .d = 2, .a = 3};  // not in the first stretch
  const std::vector<CodeRegion> regions =
      choose_regions(m, std::vector<uint64_t>{1, 1000000, 999999, 1});
  REQUIRE(regions.size() == 1);
  CHECK(regions[0].written == std::vector<Slot>{1, 2});
  CHECK(regions[0].narrow.empty());
}

TEST_CASE("accesses whose addresses are known at the front of a block are looked at there") {
  const Module m = narrow_loop();
  const std::string text = text_of(m, choose_regions(m, std::vector<uint64_t>{1000000, 1}));
  const auto count = [&](const std::string& word) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  // Both loads; of what is between them, the copy that the second one's address is.
  CHECK(count("GPUSIM_LOOK_AHEAD(") == 2);
  CHECK(count("GPUSIM_AHEAD(") == 1);
  CHECK(count("GPUSIM_AHEAD(mov)") == 1);
  CHECK(count("GPUSIM_STEP_OPEN(") == 2);
  // One after another: where the first one's result is the second one's address.
  Module chain = m;
  chain.uops[2].a = 1;
  const std::string other = text_of(chain, choose_regions(chain, std::vector<uint64_t>{1000, 1}));
  CHECK(other.find("GPUSIM_LOOK_AHEAD(ldu32)") != std::string::npos);
  CHECK(other.find("GPUSIM_LOOK_AHEAD(ld64)") == std::string::npos);
}

TEST_CASE("executions of one block follow from what a region took of the budget") {
  const Module m = narrow_loop();
  const std::string text = text_of(m, choose_regions(m, std::vector<uint64_t>{1000000, 1}));
  CHECK(text.find("++n0") == std::string::npos);
  CHECK(text.find("n0 = (static_cast<uint32_t>(budget - left)) / 6u;") != std::string::npos);
}

TEST_CASE("nothing was executed, or nothing repeats: no regions") {
  Module m = loop();
  CHECK(choose_regions(m, std::vector<uint64_t>(4, 0)).empty());
  CHECK(choose_regions(m, {}).empty());
  m.uops[6] = jump(Op::jmp, 2, 7);
  CHECK(choose_regions(m, std::vector<uint64_t>(4, 1)).empty());
}

}  // namespace
}  // namespace gpusim::cuda
