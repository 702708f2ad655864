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

TEST_CASE("nothing was executed, or nothing repeats: no regions") {
  Module m = loop();
  CHECK(choose_regions(m, std::vector<uint64_t>(4, 0)).empty());
  CHECK(choose_regions(m, {}).empty());
  m.uops[6] = jump(Op::jmp, 2, 7);
  CHECK(choose_regions(m, std::vector<uint64_t>(4, 1)).empty());
}

}  // namespace
}  // namespace gpusim::cuda
