// Operations of warps, one by one, against statements of their own (PTX ISA 9.0, sections of the
// instructions), on every backend that has them.
#include <doctest/doctest.h>

#include <bit>
#include <random>

#include "tests/unit/device_sim/cta_machine.h"

namespace gpusim {
namespace {

enum Slots : Slot { kA, kB, kC, kD, kP, kSlots };

struct Lane {
  uint64_t a, b, c;
};

// shfl.sync, as the manual's listing has it; `p`: its second result.
uint32_t shuffled(int mode, uint32_t lane, uint32_t bval, uint32_t cval,
                  const std::vector<Lane>& lanes, uint32_t there, bool& p) {
  const int mask = static_cast<int>(cval >> 8) & 31, l = static_cast<int>(lane);
  const int bits = static_cast<int>(bval & 31), clamp = static_cast<int>(cval & 31);
  const int max_lane = (l & mask) | (clamp & ~mask), min_lane = l & mask;
  int j = 0;
  if (mode == 0) p = (j = min_lane | (bits & ~mask)) <= max_lane;
  if (mode == 1) p = (j = l - bits) >= max_lane;
  if (mode == 2) p = (j = l + bits) <= max_lane;
  if (mode == 3) p = (j = l ^ bits) <= max_lane;
  if (!p) j = l;
  if (!(there >> j & 1)) j = l;  // undefined there, one's own here
  return static_cast<uint32_t>(lanes[static_cast<size_t>(j)].a);
}

// Everything else, for the members of `mask`.
uint64_t expected(WarpOp op, uint32_t lane, uint32_t mask, const std::vector<Lane>& lanes,
                  bool wide, bool negated) {
  std::vector<uint64_t> values;
  uint32_t ballot = 0, equal = 0;
  const auto value = [&](uint32_t i) { return wide ? lanes[i].a : uint64_t{uint32_t(lanes[i].a)}; };
  uint32_t first = 0;
  while (!(mask >> first & 1)) ++first;
  uint32_t sum = 0, low = ~0u, high = 0, all = ~0u, any = 0, odd = 0;
  int32_t s_low = INT32_MAX, s_high = INT32_MIN;
  bool same = true;
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(mask >> i & 1)) continue;
    if ((lanes[i].a != 0) != negated) ballot |= 1u << i;
    if (value(i) == value(lane)) equal |= 1u << i;
    same &= value(i) == value(first);
    const auto x = static_cast<uint32_t>(lanes[i].a);
    sum += x;
    low = std::min(low, x);
    high = std::max(high, x);
    s_low = std::min(s_low, static_cast<int32_t>(x));
    s_high = std::max(s_high, static_cast<int32_t>(x));
    all &= x;
    any |= x;
    odd ^= x;
  }
  switch (op) {
    case WarpOp::kVoteAll:
      return ballot == mask;
    case WarpOp::kVoteAny:
      return ballot != 0;
    case WarpOp::kVoteUni:
      return ballot == mask || ballot == 0;
    case WarpOp::kVoteBallot:
      return ballot;
    case WarpOp::kMatchAny:
      return equal;
    case WarpOp::kMatchAll:
      return same ? mask : 0;
    case WarpOp::kReduceAdd:
      return sum;
    case WarpOp::kReduceMinU:
      return low;
    case WarpOp::kReduceMaxU:
      return high;
    case WarpOp::kReduceMinS:
      return static_cast<uint32_t>(s_low);
    case WarpOp::kReduceMaxS:
      return static_cast<uint32_t>(s_high);
    case WarpOp::kReduceAnd:
      return all;
    case WarpOp::kReduceOr:
      return any;
    case WarpOp::kReduceXor:
      return odd;
    case WarpOp::kElect:
      return first;
    default:
      return 0;
  }
}

Module one_row(const Uop& u) {
  Module m;
  append(m, {u, kEndThread});
  finish_warps(m, kSlots);
  return m;
}

TEST_CASE("shuffles read the lanes that the manual says") {
  std::mt19937 random(7);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CAPTURE(run.width);
    for (int round = 0; round < 60; ++round) {
      const int mode = round % 4;
      const bool lane_in_slot = random() % 2, clamp_in_slot = lane_in_slot && random() % 2;
      const auto constant = static_cast<uint16_t>(random() & WarpFields::kClampBits);
      const uint16_t usual = mode == 1 ? 0 : 31;
      WarpFields f{.lane = static_cast<uint8_t>(lane_in_slot ? 0 : random() % 32),
                   .clamp = clamp_in_slot  ? uint16_t{0}
                            : random() % 2 ? usual
                                           : constant,
                   .lane_in_slot = lane_in_slot,
                   .clamp_in_slot = clamp_in_slot};
      // The second warp is smaller in half of the rounds.
      const uint32_t threads = round % 8 < 4 ? 64 : 33 + random() % 31;
      std::vector<Lane> lanes(64);
      for (Lane& l : lanes) l = {random() | uint64_t{random()} << 32, random(), random()};
      for (const bool second : {false, true}) {
        const auto op = static_cast<WarpOp>(mode + (second ? int(WarpOp::kInRangeIdx) : 0));
        const Module m = one_row({.op = Op::warp,
                                  .d = kD,
                                  .a = kA,
                                  .b = kB,
                                  .c = kC,
                                  .aux = static_cast<uint8_t>(op),
                                  .imm = f.pack()});
        CtaMachine machine(m, run, threads);
        machine.set(kA, [&](uint32_t t) { return lanes[t].a; });
        machine.set(kB, [&](uint32_t t) { return (lanes[t].b & 0xffffffff) | lanes[t].c << 32; });
        CHECK(machine.run().empty());
        CHECK(machine.ended == 1);
        for (uint32_t t = 0; t < threads; ++t) {
          const uint32_t first = t & ~31u;
          const std::vector<Lane> warp(lanes.begin() + first, lanes.begin() + first + 32);
          const uint32_t there = threads - first >= 32 ? ~0u : (1u << (threads - first)) - 1;
          bool p = false;
          const uint32_t d =
              shuffled(mode, t % 32, lane_in_slot ? uint32_t(lanes[t].b) : f.lane,
                       clamp_in_slot ? uint32_t(lanes[t].c) : f.clamp, warp, there, p);
          CAPTURE(mode);
          CAPTURE(t);
          REQUIRE(machine.get(kD, t) == (second ? uint64_t{p} : uint64_t{d}));
        }
      }
    }
  }
}

TEST_CASE("votes, matches and reductions are of the members") {
  std::mt19937 random(8);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CAPTURE(run.width);
    for (int round = 0; round < 150; ++round) {
      const auto op = static_cast<WarpOp>(int(WarpOp::kVoteAll) + round % 15);
      CAPTURE(int(op));
      if (op > WarpOp::kElect) continue;
      // A mask for each half of a warp, or one for all; by a slot or as a constant.
      const bool parted = random() % 2, in_slot = parted || random() % 2;
      const uint32_t members = parted ? static_cast<uint32_t>(random()) : ~0u;
      WarpFields f{.mask = in_slot ? 0 : members, .mask_in_slot = in_slot};
      f.negated = is_vote(op) && random() % 2;
      f.wide = is_match(op) && random() % 2;
      const uint32_t kinds = random() % 3, threads = 64;
      std::vector<Lane> lanes(64);
      for (Lane& l : lanes) {
        const uint64_t x = random() | uint64_t{random()} << 32;
        l.a = kinds == 0 ? x : kinds == 1 ? (x & 1) << 32 | (x & 1) : 5;
      }
      const Module m = one_row({.op = Op::warp,
                                .d = kD,
                                .a = kA,
                                .b = kB,
                                .c = kC,
                                .aux = static_cast<uint8_t>(op),
                                .imm = f.pack()});
      CtaMachine machine(m, run, threads);
      const auto mask_of = [&](uint32_t t) { return members >> (t % 32) & 1 ? members : ~members; };
      machine.set(kA, [&](uint32_t t) { return lanes[t].a; });
      machine.set(kC, [&](uint32_t t) { return mask_of(t); });
      CHECK(machine.run().empty());
      for (uint32_t t = 0; t < threads; ++t) {
        const std::vector<Lane> warp(lanes.begin() + (t & ~31u), lanes.begin() + (t & ~31u) + 32);
        CAPTURE(t);
        REQUIRE(machine.get(kD, t) == expected(op, t % 32, mask_of(t), warp, f.wide, f.negated));
      }
    }
  }
}

constexpr uint64_t all_lanes() { return WarpFields{}.pack(); }
constexpr Uop row_of(WarpOp op, Slot d, Slot a, uint64_t imm = all_lanes()) {
  return {.op = Op::warp, .d = d, .a = a, .aux = static_cast<uint8_t>(op), .imm = imm};
}

// Odd lanes add 1, 100 times; then all take the sum of the warp, at places of their own.
TEST_CASE("lanes of one mask meet at rows of different places") {
  Module m;
  append(m, {{.op = Op::br_bit0, .a = kB}}, 5);  // 0: even lanes go to 5
  append(m,
         {{.op = Op::addi32, .d = kA, .a = kA, .imm = 1},
          {.op = Op::addi32, .d = kC, .a = kC, .imm = ~uint64_t{0}},
          {.op = Op::bri_ne32, .a = kC}},
         1);                        // 1
  append(m, {{.op = Op::jmp}}, 8);  // 4
  append(m, {row_of(WarpOp::kReduceAdd, kD, kA),
             {.op = Op::addi32, .d = kD, .a = kD, .imm = 1000},
             kEndThread});                                      // 5
  append(m, {row_of(WarpOp::kReduceAdd, kD, kA), kEndThread});  // 8
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 64);
    machine.set(kA, [](uint32_t t) { return t; });
    machine.set(kB, [](uint32_t t) { return t; });
    machine.set(kC, [](uint32_t) { return 100; });
    CHECK(machine.run().empty());
    for (uint32_t t = 0; t < 64; ++t) {
      uint64_t sum = 16 * 100;
      for (uint32_t i = t & ~31u; i < (t & ~31u) + 32; ++i) sum += i;
      CHECK(machine.get(kD, t) == sum + (t % 2 ? 0 : 1000));
    }
  }
}

// A loop of nothing but rows of warps and its own count: it is compiled only if they do not end
// what is.
TEST_CASE("rows of warps stay in native code") {
  if (std::string why; !SimdBackend::available(&why)) return;
  Module m;
  const Uop shuffle =
      row_of(WarpOp::kShuffleDown, kD, kA, WarpFields{.lane = 1, .clamp = 31}.pack());
  append(m,
         {shuffle,
          {.op = Op::add32, .d = kA, .a = kA, .b = kD},
          {.op = Op::cta_sync, .imm = BarrierFields{}.pack()},
          {.op = Op::addi32, .d = kC, .a = kC, .imm = ~uint64_t{0}},
          {.op = Op::bri_ne32, .a = kC}},
         0);
  append(m, {kEndThread});
  finish_warps(m, kSlots);
  CtaMachine reference(m, {}, 64), machine(m, {.backend = "simd", .native_after = 0}, 64);
  for (CtaMachine* each : {&reference, &machine}) {
    each->set(kA, [](uint32_t t) { return t * t; });
    each->set(kC, [](uint32_t) { return 200; });
    CHECK(each->run().empty());
  }
  for (uint32_t t = 0; t < 64; ++t) CHECK(machine.get(kA, t) == reference.get(kA, t));
  if (simd::TraceCompiler::best() != simd::VectorCode::kNone)
    CHECK(dynamic_cast<SimdBackend&>(machine.backend()).native_variants() > 0);
}

// Of 16 groups all but the last wait at the barrier, in the middle of the loop.
TEST_CASE("what lies between barriers is native code for every group of a CTA") {
  if (std::string why; !SimdBackend::available(&why)) return;
  Module m;
  append(m,
         {{.op = Op::mul32, .d = kA, .a = kA, .b = kB},
          {.op = Op::cta_sync, .imm = BarrierFields{}.pack()},
          {.op = Op::add32, .d = kA, .a = kA, .b = kB},
          {.op = Op::addi32, .d = kC, .a = kC, .imm = ~uint64_t{0}},
          {.op = Op::bri_ne32, .a = kC}},
         0);
  append(m, {kEndThread});
  finish_warps(m, kSlots);
  CtaMachine reference(m, {}, 1024), machine(m, {.backend = "simd", .native_after = 0}, 1024);
  for (CtaMachine* each : {&reference, &machine}) {
    each->set(kA, [](uint32_t t) { return t * t; });
    each->set(kB, [](uint32_t t) { return 2 * t + 3; });
    each->set(kC, [](uint32_t) { return 200; });
    CHECK(each->run().empty());
  }
  for (uint32_t t = 0; t < 1024; ++t) CHECK(machine.get(kA, t) == reference.get(kA, t));
  // One before the barrier, one behind it.
  if (simd::TraceCompiler::best() != simd::VectorCode::kNone)
    CHECK(dynamic_cast<SimdBackend&>(machine.backend()).native_variants() >= 2);
}

TEST_CASE("lanes that are all at a row together go on in the same slice") {
  Module m;
  append(m,
         {row_of(WarpOp::kShuffleBfly, kD, kA, WarpFields{.lane = 1, .clamp = 31}.pack()),
          {.op = Op::warp_sync, .imm = all_lanes()},
          row_of(WarpOp::kReduceAdd, kD, kD),
          {.op = Op::cta_sync, .imm = BarrierFields{}.pack()},
          {.op = Op::cta_reduce, .d = kP, .a = kD, .imm = BarrierFields{}.pack()},
          {.op = Op::add32, .d = kA, .a = kA, .b = kD},
          {.op = Op::addi32, .d = kC, .a = kC, .imm = ~uint64_t{0}},
          {.op = Op::bri_ne32, .a = kC}},
         0);
  append(m, {kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    if (run.seed != 0 || run.slice != CtaRun{}.slice) continue;
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 32, 3);
    machine.set(kA, [](uint32_t t) { return t; });
    machine.set(kC, [](uint32_t) { return 3; });
    CHECK(machine.run().empty());
    CHECK(machine.slices == 1);
    const uint64_t first = 16 * 31, second = 33 * first, third = 33 * second;
    for (uint32_t t = 0; t < 32; ++t) {
      CHECK(machine.get(kA, t, 2) == t + first + second + third);
      CHECK(machine.get(kP, t, 2) == 32);
    }
  }
}

// Every fourth lane ends at once.
TEST_CASE("lanes that have ended do not count") {
  Module m;
  append(m, {{.op = Op::andi64, .d = kP, .a = kB, .imm = 3}, {.op = Op::bri_eq64, .a = kP}}, 4);
  append(m, {row_of(WarpOp::kVoteBallot, kD, kA), kEndThread});
  append(m, {kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 128, 3);
    machine.set(kA, [](uint32_t) { return 1; });
    machine.set(kB, [](uint32_t t) { return t; });
    CHECK(machine.run().empty());
    CHECK(machine.ended == 3);
    for (uint32_t t = 0; t < 128; ++t)
      CHECK(machine.get(kD, t, 2) == (t % 4 == 0 ? 0 : 0xeeeeeeee));
  }
}

TEST_CASE("a lane outside of its own mask is alone, and active lanes see each other") {
  Module m;
  append(m,
         {row_of(WarpOp::kReduceAdd, kD, kA, WarpFields{.mask = 0xffff}.pack()),
          {.op = Op::br_bit0, .a = kB}},
         4);
  append(m, {row_of(WarpOp::kActiveMask, kP, kA), kEndThread});
  append(m, {row_of(WarpOp::kActiveMask, kP, kA), kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    if (run.seed != 0) continue;  // lanes are held apart on purpose
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 32);
    machine.set(kA, [](uint32_t t) { return t + 1; });
    machine.set(kB, [](uint32_t t) { return t; });
    CHECK(machine.run().empty());
    for (uint32_t t = 0; t < 32; ++t) {
      CHECK(machine.get(kD, t) == (t < 16 ? 136 : t + 1));
      CHECK(machine.get(kP, t) == (t % 2 ? 0xaaaaaaaa : 0x55555555));
    }
  }
}

// Even lanes wait for all, odd ones for the odd ones: nobody can go on.
TEST_CASE("lanes that wait for each other are reported with their places") {
  Module m;
  append(m, {{.op = Op::br_bit1, .a = kB}}, 3);
  append(m, {{.op = Op::warp_sync, .imm = all_lanes()}, kEndThread});            // 1
  append(m, {{.op = Op::cta_sync, .imm = BarrierFields{}.pack()}, kEndThread});  // 3
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 64);
    machine.set(kB, [](uint32_t t) { return t; });
    const std::vector<Event> events = machine.run();
    CHECK(machine.ended == 0);
    REQUIRE(events.size() == 64);
    for (uint32_t t = 0; t < 64; ++t) {
      CHECK(events[t].core == t);
      CHECK(events[t].fault == Fault::kDeadlock);
      CHECK(events[t].uop == (t % 2 ? 3 : 1));
    }
  }
}

// Reductions of an old style: the last warp of a block adds without barriers, through memory.
TEST_CASE("lanes of a warp go in step through memory") {
  Module m;
  std::vector<Uop> uops{{.op = Op::st32, .d = kA, .a = kB}};
  for (const uint64_t distance : {16, 8, 4, 2, 1})
    for (const Uop& u :
         {Uop{.op = Op::ldu32, .d = kC, .a = kB, .imm = 4 * distance},
          Uop{.op = Op::add32, .d = kA, .a = kA, .b = kC}, Uop{.op = Op::st32, .d = kA, .a = kB}})
      uops.push_back(u);
  uops.push_back(kEndThread);
  Block b;
  b.insn_count = b.uop_count = static_cast<uint32_t>(uops.size());
  b.classes[0] = static_cast<uint16_t>(uops.size());
  m.uops = uops;
  m.blocks.push_back(b);
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    if (run.seed != 0) continue;  // lanes are held apart on purpose
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 32, 3, 256);
    machine.set(kA, [](uint32_t t) { return t * t; });
    machine.set(kB, [](uint32_t t) { return CtaMachine::kShared + 4 * t; });
    CHECK(machine.run().empty());
    for (uint32_t place = 0; place < 3; ++place) CHECK(machine.get(kA, 0, place) == 10416);
  }
}

}  // namespace
}  // namespace gpusim
