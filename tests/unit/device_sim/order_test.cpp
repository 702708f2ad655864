// The order in which waiting lanes run: what must come before what, on graphs made by hand and on
// random ones.
#include "device_sim/core/order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

namespace gpusim {
namespace {

using Edges = std::vector<FlowGraph::Edge>;
using Nodes = std::vector<uint32_t>;

Nodes order_of(uint32_t nodes, const Edges& edges, const Nodes& roots = {0}) {
  return loop_order(FlowGraph(nodes, edges), roots);
}

TEST_CASE("both sides of a condition come before what follows") {
  CHECK(order_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}) == Nodes{0, 1, 2, 3});
  // The same where what follows lies between them.
  CHECK(order_of(4, {{0, 1}, {0, 3}, {1, 2}, {3, 2}}) == Nodes{0, 1, 3, 2});
}

TEST_CASE("a loop's header comes after its body and before what follows") {
  SUBCASE("header first") {
    CHECK(order_of(4, {{0, 1}, {1, 2}, {2, 1}, {1, 3}}) == Nodes{0, 2, 1, 3});
  }
  SUBCASE("rotated, with a side path behind the header") {
    // 0 enters at the header 4; 1, 2, 3 are the usual turn, 5 the other one, 6 a part of the usual
    // turn that was moved away. Both turns can be the last.
    CHECK(order_of(8, {{0, 4},
                       {4, 1},
                       {4, 5},
                       {1, 2},
                       {1, 6},
                       {2, 3},
                       {6, 3},
                       {3, 4},
                       {3, 7},
                       {5, 4},
                       {5, 7}}) == Nodes{0, 1, 2, 6, 3, 5, 4, 7});
  }
  SUBCASE("a turn that leaves the loop on its own way") {
    CHECK(order_of(5, {{0, 1}, {1, 2}, {2, 1}, {2, 3}, {1, 4}, {3, 4}}) == Nodes{0, 2, 1, 3, 4});
  }
  SUBCASE("of one node") { CHECK(order_of(3, {{0, 1}, {1, 1}, {1, 2}}) == Nodes{0, 1, 2}); }
}

TEST_CASE("an inner loop stands for one node of the outer") {
  // 1 is the header of the outer loop, 3 of the inner.
  CHECK(order_of(7, {{0, 1}, {1, 2}, {1, 6}, {2, 3}, {3, 4}, {4, 3}, {3, 5}, {5, 1}}) ==
        Nodes{0, 2, 4, 3, 5, 1, 6});
  // Two loops that share a header are one.
  CHECK(order_of(5, {{0, 1}, {1, 2}, {2, 1}, {2, 3}, {3, 1}, {1, 4}}) == Nodes{0, 2, 3, 1, 4});
}

TEST_CASE("a loop with two entries is ordered all the same") {
  const Nodes order = order_of(5, {{0, 1}, {0, 2}, {1, 2}, {2, 1}, {1, 3}, {2, 3}, {3, 4}});
  CHECK(order.front() == 0);
  CHECK(order[3] == 3);
  CHECK(order[4] == 4);
}

TEST_CASE(
    "functions that nothing leads to, and loops that are entered nowhere, have their places") {
  CHECK(order_of(4, {{0, 1}, {2, 3}}, {2, 0}) == Nodes{0, 1, 2, 3});
  Nodes order = order_of(5, {{0, 1}, {2, 3}, {3, 4}, {4, 2}}, {0});
  std::sort(order.begin(), order.end());
  CHECK(order == Nodes{0, 1, 2, 3, 4});
  CHECK(order_of(0, {}, {}).empty());
}

TEST_CASE("deep nests and long chains are ordered in good time") {
  // A chain, and edges back that make loops nested as deep as half of it.
  constexpr uint32_t kCount = 200'000;
  Edges edges;
  for (uint32_t i = 0; i + 1 < kCount; ++i) {
    edges.push_back({i, i + 1});
    edges.push_back({kCount - 1 - i / 2, i / 2});
  }
  Nodes order = order_of(kCount, edges);
  std::sort(order.begin(), order.end());
  for (uint32_t i = 0; i < kCount; ++i) REQUIRE(order[i] == i);
}

TEST_CASE("a path between loops never goes back; every loop ends with its header") {
  const char* text = std::getenv("GPUSIM_SEED");
  const uint64_t seed = text ? std::strtoull(text, nullptr, 0) : std::random_device()();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    const auto count = static_cast<uint32_t>(random() % 20 + 1);
    Edges edges;
    for (uint32_t i = 0; i < count; ++i)
      for (uint64_t n = random() % 3; n-- > 0;)
        edges.push_back({i, static_cast<uint32_t>(random() % count)});
    const Nodes order = order_of(count, edges);
    REQUIRE(order.size() == count);
    Nodes place(count, count);
    for (uint32_t i = 0; i < count; ++i) place[order[i]] = i;
    std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count));
    for (const auto& e : edges) reaches[e.from][e.to] = true;
    for (uint32_t k = 0; k < count; ++k)
      for (uint32_t i = 0; i < count; ++i)
        for (uint32_t j = 0; j < count; ++j)
          if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
    for (const auto& e : edges)
      if (!reaches[e.to][e.from]) CHECK(place[e.from] < place[e.to]);
    // An edge against the order goes from the header, which is the last of its loop at that level:
    // all nodes between are in a loop with it.
    for (const auto& e : edges)
      for (uint32_t at = place[e.to]; at < place[e.from]; ++at) {
        CHECK(reaches[order[at]][e.from]);
        CHECK(reaches[e.from][order[at]]);
      }
  }
}

// --- modules

struct Code {
  Module module;
  // A block of one micro-op that ends it.
  void block(Op op, uint32_t target, JumpHint hint = JumpHint::kNone) {
    const auto at = static_cast<uint32_t>(module.uops.size());
    module.blocks.push_back(
        {.pc = 4 * uint64_t{at}, .insn_count = 1, .first_uop = at, .uop_count = 1});
    module.uops.push_back(
        {.op = op, .aux = static_cast<uint8_t>(hint), .imm = Uop::pack_target(at, target)});
    module.code.uop_at.push_back(at);
  }
};

TEST_CASE("a call goes on where it returns, not in the function") {
  Code code;
  code.block(Op::jmp, 3);                         // 0: to the header
  code.block(Op::jmp, 5, JumpHint::kCall);        // 1: the body calls
  code.block(Op::jmp, 3);                         // 2
  code.block(Op::bri_eq64, 1);                    // 3: the header
  code.block(Op::jmp_reg, 0, JumpHint::kReturn);  // 4
  code.block(Op::jmp_reg, 0, JumpHint::kReturn);  // 5: the function
  ReconvergenceOrder order;
  order.compute(code.module);
  CHECK(order.uop_at() == Nodes{0, 1, 2, 3, 4, 5});
  for (uint32_t u = 0; u < 6; ++u) CHECK(order.uop_at()[order.rank()[u]] == u);
}

TEST_CASE("micro-ops found late go behind the others of a large module until they are many") {
  constexpr uint32_t kReturns = 8000;
  Code code;
  code.block(Op::jmp, 2);  // 0
  for (uint32_t i = 1; i < kReturns; ++i) code.block(Op::jmp, i + 1);
  code.block(Op::jmp_reg, 0, JumpHint::kReturn);
  ReconvergenceOrder order;
  order.compute(code.module);
  code.block(Op::jmp, 5);
  CHECK(order.extend(code.module).empty());
  CHECK(order.rank()[kReturns + 1] == kReturns + 1);
  CHECK(order.uop_at()[kReturns + 1] == kReturns + 1);
  CHECK(order.is_partly_ranked());
  for (uint32_t i = 0; i < kReturns / 8; ++i) code.block(Op::jmp, 5);
  CHECK(order.extend(code.module).size() == kReturns + 2);
  CHECK_FALSE(order.is_partly_ranked());
  CHECK(order.rank()[kReturns + 1] < order.rank()[5]);
}

TEST_CASE("a small module is ranked anew whenever it grows") {
  Code code;
  for (uint32_t i = 0; i < 32; ++i) code.block(Op::jmp, i + 1);
  code.block(Op::jmp_reg, 0, JumpHint::kReturn);  // 32
  ReconvergenceOrder order;
  order.compute(code.module);
  code.block(Op::jmp, 5);
  CHECK(order.extend(code.module).size() == 33);
  CHECK(order.rank()[33] < order.rank()[5]);
  // Micro-ops that name nothing there is, and a module of nothing.
  code.block(Op::jmp, 4711);
  order.compute(code.module);
  CHECK(order.rank().size() == 35);
  order.compute(Module{});
  CHECK(order.rank().empty());
}

TEST_CASE("a link is where it leads to") {
  Code code;
  code.block(Op::link, 2);  // 0
  code.block(Op::jmp, 2);   // 1
  code.block(Op::jmp, 1);   // 2
  code.block(Op::jmp, 0);   // 3
  ReconvergenceOrder order;
  order.compute(code.module);
  CHECK(order.rank()[0] == order.rank()[2]);
  CHECK(order.uop_at()[order.rank()[0]] == 2);
  ReconvergenceOrder resumed;
  resumed.compute(code.module);
  CHECK(resumed.set(code.module, order.rank(), order.computed()));
  CHECK(resumed.rank() == order.rank());
  CHECK(resumed.uop_at() == order.uop_at());
  CHECK_FALSE(resumed.set(code.module, {1, 1, 1, 0}, 4));
}

TEST_CASE("where lanes stop comes before all else") {
  Code code;
  code.block(Op::jmp, 1);       // 0
  code.block(Op::bri_eq64, 4);  // 1: the header of a loop; the way out is not translated
  code.block(Op::jmp, 1);       // 2
  code.block(Op::jmp, 0);       // 3
  code.block(Op::jmp_reg, 0);   // 4: its stub
  code.module.blocks.back().insn_count = 0;
  ReconvergenceOrder order;
  order.compute(code.module);
  CHECK(order.rank()[4] == 0);
}

}  // namespace
}  // namespace gpusim
