// Which blocks belong to a look in vain.
#include <doctest/doctest.h>

#include "host/run/profile_waiting.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim::host {
namespace {

constexpr Uop give_way(Turn turn) {
  return {.op = Op::give_way, .aux = static_cast<uint8_t>(turn)};
}
constexpr Uop kWork = {.op = Op::fence}, kEnd = {.op = Op::trap};
constexpr Uop kBranch = {.op = Op::bri_ne64};

void number_blocks(Module& m) {
  finish(m, 4);
  for (uint32_t b = 0; b < m.blocks.size(); ++b)
    for (uint32_t u = 0; u < m.blocks[b].uop_count; ++u) m.uop_block[m.blocks[b].first_uop + u] = b;
}

using Counts = std::vector<uint64_t>;

TEST_CASE("a look is the loop round a YIELD") {
  for (const Turn turn : {Turn::kYield, Turn::kWaitForEvent, Turn::kSignalEvent}) {
    Module m;
    add_block(m, {kWork, kBranch}, 4);      // 0: leaves when the word has changed
    add_block(m, {kWork, give_way(turn)}, 0);
    add_block(m, {kEnd});                    // micro-op 4
    number_blocks(m);
    const Counts in_vain = executions_in_vain(m, Counts{11, 10, 1});
    CHECK(in_vain == (turn == Turn::kSignalEvent ? Counts{0, 0, 0} : Counts{10, 10, 0}));
    CHECK(executions_in_vain(m, Counts{1, 0, 1}) == Counts{0, 0, 0});
  }
}

TEST_CASE("what lies on one of several ways back is no part of the look") {
  Module m;
  add_block(m, {kWork, kBranch}, 5);              // 0: to 2 or to 1
  add_block(m, {kWork, kWork, {.op = Op::jmp}}, 5);  // 1
  add_block(m, {kWork, kBranch}, 9);              // 2, micro-op 5: leaves
  add_block(m, {kWork, give_way(Turn::kYield)}, 0);
  add_block(m, {kEnd});  // micro-op 9
  number_blocks(m);
  CHECK(executions_in_vain(m, Counts{100, 40, 100, 99, 1}) == Counts{99, 0, 99, 99, 0});
}

TEST_CASE("who works long between two turns does not look") {
  for (const uint32_t work : {kLongestLook - 3, kLongestLook - 2}) {
    Module m;
    add_block(m, {kBranch}, 3);  // 0
    add_block(m, {kWork, give_way(Turn::kYield)}, 0);
    add_block(m, {kEnd});
    m.blocks[0].insn_count = work + 1;
    number_blocks(m);
    const bool is_look = work + 1 + 2 <= kLongestLook;
    CHECK(executions_in_vain(m, Counts{6, 5, 1}) == Counts{is_look ? 5u : 0u, 5, 0});
  }
}

TEST_CASE("a YIELD that leads nowhere is a look of itself, and counts are never exceeded") {
  Module m;
  add_block(m, {kWork, give_way(Turn::kYield)}, 2);
  add_block(m, {kBranch}, 6);  // micro-op 2: two loops share a block
  add_block(m, {give_way(Turn::kYield)}, 2);
  add_block(m, {kBranch}, 2);  // micro-op 4
  add_block(m, {kEnd});
  add_block(m, {give_way(Turn::kYield)}, 2);  // micro-op 6
  number_blocks(m);
  // More turns than looks: cores that stopped between.
  CHECK(executions_in_vain(m, Counts{3, 7, 5, 0, 0, 4}) == Counts{3, 7, 5, 0, 0, 4});
}

TEST_CASE("links and stubs between blocks are followed") {
  Module m;
  add_block(m, {kWork, kBranch}, 6);                  // 0
  add_block(m, {kWork, give_way(Turn::kYield)}, 5);   // 1: back by a stub
  add_block(m, {kEnd});                               // 2, micro-op 4
  m.uops.push_back(kWork);                            // 5: a stub of block 1
  m.uops.push_back({.op = Op::link, .imm = Uop::pack_target(1, 0)});
  finish(m, 4);
  m.uop_block = {0, 0, 1, 1, 2, 1, 1};
  m.uops[1].imm = Uop::pack_target(0, 4);
  CHECK(executions_in_vain(m, Counts{4, 3, 1}) == Counts{3, 3, 0});
}

}  // namespace
}  // namespace gpusim::host
