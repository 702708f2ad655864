// That hot loops do run as native code, where there can be any, with all lanes and with some. All
// of it runs in each instruction set that the processor has.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "device_sim/simd/jit/code_cache.h"
#include "device_sim/simd/jit/regions.h"
#include "device_sim/simd/simd_backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

uint32_t core_count = 64;  // a full group, or one with lanes that hold no core
simd::VectorCode under_test = simd::VectorCode::kNone;
constexpr Uop kEnd = {.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)};
enum Slots : Slot { kCore, kSquare, kSum, kRounds, kStack, kOther, kTurn, kStored, kSlots };
constexpr uint64_t kLinearBytes = 1 << 20;

// sum = (sum + core * core) ^ core, `rounds` times.
Module make_loop() {
  Module m;
  add_block(m, {{.op = Op::mul32, .d = kSquare, .a = kCore, .b = kCore}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::add32, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::xor32, .d = kSum, .a = kSum, .b = kCore},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            2);
  add_block(m, {kEnd}, 7);
  finish(m, kSlots);
  return m;
}

constexpr uint64_t kWindow = uint64_t{1} << MachineConfig{}.window_shift;

uint64_t stack_of(uint32_t core) { return kLinearBytes + core * kWindow; }

// Every core from the first micro-op on.
template <class Rounds>
void start(SimdBackend& b, const Module& module, uint32_t native_after, Rounds rounds,
           bool counts_lanes = false) {
  MachineConfig config;
  config.count_lanes = counts_lanes;
  config.cores = core_count;
  config.linear_size = config.window_base = kLinearBytes;
  config.native_after = native_after;
  config.regroup = false;  // what is tested is code for groups
  b.limit_groups_code(under_test);
  b.configure(module, config);
  for (uint32_t core = 0; core < core_count; ++core)
    b.set_permissions(core, stack_of(core), kWindow, kRead | kWrite);
  b.set_permissions_all(0, kLinearBytes, kRead | kWrite);
  b.set_slots(kStack, {stack_of(0), kWindow});
  for (uint32_t core = 0; core < core_count; ++core) {
    b.set_slot(core, kCore, core);
    b.set_slot(core, kRounds, rounds(core));
    b.start(core, 0);
  }
}

struct Run {
  std::vector<uint64_t> sums, tallies;
  uint64_t instructions = 0;
  uint64_t all = 0;  // sum over slices of what all had executed by then
  size_t native_variants = 0;
};
template <class Rounds>
Run run(uint32_t native_after, Rounds rounds, const Module& module = make_loop(),
        uint64_t slice = 1000) {
  SimdBackend b;
  start(b, module, native_after, rounds);
  Run r;
  while (b.runnable() != 0) {
    for (const Event& e : b.run_slice(slice)) b.stop(e.core);
    r.all += b.tally_of_all().classes[0];  // also while blocks are counted apart
  }
  for (uint32_t core = 0; core < core_count; ++core) r.tallies.push_back(b.tally(core).classes[0]);
  for (uint32_t core = 0; core < core_count; ++core) r.sums.push_back(b.slot(core, kSum));
  const std::vector<uint64_t> counts = b.block_counts();
  for (size_t i = 0; i < counts.size(); ++i)
    r.instructions += counts[i] * module.blocks[i].insn_count;
  r.native_variants = b.native_variants();
  return r;
}

template <class Rounds>
void check_sums(Rounds rounds, const Module& module, const std::vector<uint64_t>& sums) {
  CHECK(run(MachineConfig::kNeverNative, rounds, module).sums == sums);
  CHECK(run(1, rounds, module).sums == sums);
}

// In one block the row of kSquare grows from 32-bit to 64-bit words and that of kSum shrinks, which
// wants the lanes in opposite orders; the next block turns both back.
Module make_growing_and_shrinking() {
  Module m;
  add_block(m, {{.op = Op::mul64, .d = kSum, .a = kCore, .b = kCore}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::add64, .d = kSquare, .a = kSquare, .b = kCore},
             {.op = Op::add32, .d = kSum, .a = kSum, .b = kSquare},
             Uop{.op = Op::bri_ne32, .a = kRounds}.with_imm16(1)},
            6);
  add_block(m, {kEnd}, 5);
  add_block(m,
            {{.op = Op::xor32, .d = kSquare, .a = kSquare, .b = kSum},
             {.op = Op::mul64, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::jmp}},
            2);
  finish(m, kSlots);
  return m;
}

// Between steps on rows, steps on a value that runs evenly over the lanes, until its words of 32
// bits wrap, in some lanes before others; then what came before in the block must have happened
// once. `reads_before`: the rows need it as it was before, too.
Module make_mixed(bool reads_before) {
  Module m;
  add_block(m,
            {{.op = Op::mul32, .d = kSquare, .a = kCore, .b = kCore},
             {.op = Op::mov32, .d = kOther, .a = kCore},
             {.op = Op::mov32, .d = kTurn, .a = kRounds},
             {.op = Op::jmp}},
            4);
  add_block(m,
            {{.op = Op::add32, .d = kSum, .a = kSum, .b = reads_before ? kOther : kSquare},
             {.op = Op::addi32, .d = kOther, .a = kOther, .imm = 0x0123'4567},
             {.op = Op::xor32, .d = kSum, .a = kSum, .b = kOther},
             {.op = Op::add32, .d = kTurn, .a = kOther, .b = kTurn},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::add32, .d = kSum, .a = kSum, .b = kTurn},
             {.op = Op::bri_ne32, .a = kRounds}},
            4);
  add_block(m, {kEnd}, 11);
  finish(m, kSlots);
  return m;
}

// A value whose spacing changes in each round, and what it was in the round before.
Module make_former_value() {
  Module m;
  add_block(m,
            {{.op = Op::mul64, .d = kSum, .a = kCore, .b = kCore},
             {.op = Op::mov, .d = kTurn, .a = kCore},
             {.op = Op::mov, .d = kOther, .a = kCore},
             {.op = Op::jmp}},
            4);
  add_block(m,
            {{.op = Op::xor64, .d = kSum, .a = kSum, .b = kOther},
             {.op = Op::mov, .d = kOther, .a = kTurn},
             {.op = Op::lsli64, .d = kTurn, .a = kTurn, .imm = 1},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            4);
  add_block(m, {kEnd}, 9);
  finish(m, kSlots);
  return m;
}

// In each round lanes part at one branch or two, for a few micro-ops, and meet again. `big`: makes
// rows of words rows of 64 bits, or does not.
Module make_parting(uint64_t big) {
  Module m;
  add_block(m, {{.op = Op::mul32, .d = kSquare, .a = kCore, .b = kCore}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::add32, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::andi64, .d = kOther, .a = kSum, .imm = 255},
             Uop{.op = Op::bri_ltu32, .a = kOther}.with_imm16(100)},
            7);
  add_block(m, {{.op = Op::konst, .d = kTurn, .imm = 7}, {.op = Op::jmp}}, 12);
  add_block(m,
            {{.op = Op::xor64, .d = kSum, .a = kSum, .b = kCore},
             Uop{.op = Op::bri_ltu32, .a = kOther}.with_imm16(50)},
            12);
  add_block(m,
            {{.op = Op::add64, .d = kSum, .a = kSum, .b = kOther},
             {.op = Op::konst, .d = kTurn, .imm = big},
             {.op = Op::jmp}},
            12);
  add_block(m,
            {{.op = Op::add64, .d = kSum, .a = kSum, .b = kTurn},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            2);
  add_block(m, {kEnd}, 15);
  finish(m, kSlots);
  return m;
}

TEST_CASE("a value's former stride is kept where the value's register gets another") {
  const auto rounds = [](uint32_t) { return uint64_t{50}; };
  std::vector<uint64_t> sums;
  for (uint64_t core = 0; core < core_count; ++core) {
    uint64_t sum = core * core, turn = core, former = core;
    for (int round = 0; round < 50; ++round) {
      sum ^= former;
      former = turn;
      turn <<= 1;
    }
    sums.push_back(sum);
  }
  // In short slices, after one of which the code is hot.
  CHECK(run(MachineConfig::kNeverNative, rounds, make_former_value(), 60).sums == sums);
  const Run native = run(1, rounds, make_former_value(), 60);
  CHECK(native.sums == sums);
  if (under_test != simd::VectorCode::kNone) CHECK(native.native_variants > 0);
}

TEST_CASE("steps on compact values between steps on rows") {
  const auto rounds = [](uint32_t) { return uint64_t{1000}; };
  for (const bool reads_before : {false, true}) {
    CAPTURE(reads_before);
    const Module m = make_mixed(reads_before);
    std::vector<uint64_t> sums;
    for (uint32_t core = 0; core < core_count; ++core) {
      uint32_t sum = 0, other = core, turn = 1000;
      for (uint32_t left = 1000; left != 0; --left) {
        sum += reads_before ? other : core * core;
        other += 0x0123'4567;
        sum ^= other;
        turn += other;
        sum += turn;
      }
      sums.push_back(sum);
    }
    check_sums(rounds, m, sums);
    for (const uint64_t slice : {7, 100, 100'000}) {
      CAPTURE(slice);
      const Run native = run(1, rounds, m, slice);
      const Run interpreted = run(MachineConfig::kNeverNative, rounds, m, slice);
      CHECK(native.sums == sums);
      CHECK(native.tallies == interpreted.tallies);
      CHECK(native.all == interpreted.all);
    }
  }
}

TEST_CASE("a region ends where all lanes meet") {
  const Module m = make_parting(9);
  simd::CodeCache code(simd::VectorCode::kNone);
  code.follow(m);
  std::vector<uint32_t> rank(m.uops.size());
  std::iota(rank.begin(), rank.end(), 0u);
  simd::Machine machine;
  machine.native = &code;
  machine.rank = rank.data();
  const simd::Region region = simd::region_behind(machine, 4);
  CHECK(region.steps.size() == 7);
  CHECK(region.taken == 7);
  CHECK(region.other == 5);
  CHECK(region.join == 12);
  CHECK(simd::region_behind(machine, 14).steps.empty());  // a loop's branch
}

TEST_CASE("a region goes on behind links") {
  Module m;
  const auto add_link = [&m](uint32_t target) {
    m.uops.push_back({.op = Op::link, .imm = Uop::pack_target(0, target)});
  };
  add_block(m, {{.op = Op::bri_eq64, .a = kCore}}, 5);  // 0
  add_link(2);                                          // 1
  add_block(m,
            {{.op = Op::xor64, .d = kSum, .a = kSum, .b = kCore}, {.op = Op::bri_eq64, .a = kSum}},
            5);  // 2, 3
  add_link(5);   // 4
  add_block(m, {kEnd}, 5);
  finish(m, kSlots);
  simd::CodeCache code(simd::VectorCode::kNone);
  code.follow(m);
  const std::vector<uint32_t> rank = {0, 1, 1, 2, 3, 3};
  simd::Machine machine;
  machine.native = &code;
  machine.rank = rank.data();
  const simd::Region region = simd::region_behind(machine, 0);
  CHECK(region.steps.size() == 2);
  CHECK(region.taken == 5);
  CHECK(region.other == 2);
  CHECK(region.join == 5);
}

TEST_CASE("lanes that part for a few micro-ops and meet again") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  for (const uint64_t big : {uint64_t{9}, ~uint64_t{0}, uint64_t{1} << 40})
    for (const uint64_t step : {0, 20})
      for (const uint64_t slice : {1000, 61}) {
        CAPTURE(big);
        CAPTURE(step);
        CAPTURE(slice);
        const auto rounds = [&](uint32_t core) { return 1500 + step * core; };
        std::vector<uint64_t> sums, tallies;
        for (uint32_t core = 0; core < core_count; ++core) {
          uint64_t sum = 0, turn = 0, instructions = 2;
          for (uint64_t i = rounds(core); i > 0; --i) {
            sum = static_cast<uint32_t>(sum + core * core);
            const uint64_t other = sum & 255;
            instructions += 6 + 2 + (other >= 50 && other < 100 ? 3 : 0);
            if (other >= 100)
              turn = 7;
            else
              sum ^= core;
            if (other >= 50 && other < 100) {
              sum += other;
              turn = big;
            }
            sum += turn;
          }
          sums.push_back(sum);
          tallies.push_back(instructions);
        }
        const Module module = make_parting(big);
        const Run interpreted = run(MachineConfig::kNeverNative, rounds, module, slice);
        const Run native = run(1, rounds, module, slice);
        CHECK(interpreted.sums == sums);
        CHECK(native.sums == sums);
        CHECK(interpreted.tallies == tallies);
        CHECK(native.tallies == tallies);
        CHECK(native.instructions == interpreted.instructions);
        CHECK(native.all == interpreted.all);
      }
}

uint64_t expected_sum(uint32_t core, uint64_t rounds) {
  uint32_t sum = 0;
  for (uint64_t i = 0; i < rounds; ++i) sum = (sum + core * core) ^ core;
  return sum;
}

template <class Rounds>
void check(Rounds rounds, size_t least_variants) {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const Run interpreted = run(MachineConfig::kNeverNative, rounds);
  const Run native = run(1, rounds);
  for (uint32_t core = 0; core < core_count; ++core) {
    CHECK(interpreted.sums[core] == expected_sum(core, rounds(core)));
    CHECK(native.sums[core] == interpreted.sums[core]);
  }
  CHECK(native.instructions == interpreted.instructions);
  CHECK(interpreted.native_variants == 0);
  if (under_test != simd::VectorCode::kNone) CHECK(native.native_variants >= least_variants);
}

TEST_CASE("a hot loop of a whole group becomes native code") {
  check([](uint32_t) { return uint64_t{5000}; }, 1);
}
TEST_CASE("a hot loop that lanes leave one after the other becomes native code twice") {
  check([](uint32_t core) { return uint64_t{3000} + 200 * core; }, 2);
}
TEST_CASE("rows that grow and rows that shrink in one block") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const Module module = make_growing_and_shrinking();
  const auto rounds = [](uint32_t) { return uint64_t{1000}; };
  const Run interpreted = run(MachineConfig::kNeverNative, rounds, module);
  const Run native = run(1, rounds, module);
  CHECK(native.sums == interpreted.sums);
  for (uint32_t core = 0; core < core_count; ++core) {
    uint64_t square = 0, sum = uint64_t{core} * core;
    for (uint64_t i = 1000;; --i) {
      square += core;
      sum = static_cast<uint32_t>(sum + square);
      if (i == 1) break;
      square = static_cast<uint32_t>(square ^ sum);
      sum *= square;
    }
    CHECK(interpreted.sums[core] == sum);
  }
}

// A loop that is entered five times, kSquare having another form each time: the same for all lanes,
// affine, words of 32 bits with zeros above and with their sign, words of 64 bits.
Module make_loop_of_many_forms() {
  constexpr Uop kTimes = {.op = Op::konst, .d = kRounds, .imm = 400};
  constexpr Uop kGo = {.op = Op::jmp};
  Module m;
  uint32_t first[5] = {}, at = 9;
  for (uint32_t& f : first) f = std::exchange(at, at + 3);
  add_block(m, {{.op = Op::konst, .d = kSquare, .imm = 7}, kTimes, kGo}, 3);
  add_block(m,  // 3
            {{.op = Op::xor64, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::mul64, .d = kSum, .a = kSum, .b = kCore},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            3);
  add_block(m, {{.op = Op::addi64, .d = kTurn, .a = kTurn, .imm = 1}, kGo}, first[4] + 2);  // 7
  add_block(m, {{.op = Op::mov, .d = kSquare, .a = kCore}, kTimes, kGo}, 3);
  add_block(m, {{.op = Op::mul32, .d = kSquare, .a = kCore, .b = kCore}, kTimes, kGo}, 3);
  add_block(m, {{.op = Op::mulw, .d = kSquare, .a = kSum, .b = kCore}, kTimes, kGo}, 3);
  add_block(m, {{.op = Op::mul64, .d = kSquare, .a = kSum, .b = kSum}, kTimes, kGo}, 3);
  add_block(m, {{.op = Op::konst, .d = kSquare, .imm = 7}, kEnd}, 3);
  for (uint32_t k = 0; k < 5; ++k)
    add_block(m, {Uop{.op = Op::bri_eq32, .a = kTurn}.with_imm16(static_cast<uint16_t>(k + 1))},
              first[k]);
  finish(m, kSlots);
  return m;
}

TEST_CASE("a loop whose values have five forms has native code for each") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const Module module = make_loop_of_many_forms();
  const auto rounds = [](uint32_t) { return uint64_t{0}; };
  const Run interpreted = run(MachineConfig::kNeverNative, rounds, module);
  const Run native = run(64, rounds, module);  // nothing but the loop is hot then
  CHECK(native.sums == interpreted.sums);
  CHECK(native.instructions == interpreted.instructions);
  if (under_test != simd::VectorCode::kNone) CHECK(native.native_variants >= 5);
}

TEST_CASE("a loop becomes native code within the slice in which it turns out to be hot") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const Module module = make_loop();
  SimdBackend b;
  start(b, module, /*native_after=*/64, [](uint32_t) { return uint64_t{100'000}; });
  b.run_slice(200'000);
  CHECK(b.runnable() == core_count);
  CHECK((b.native_variants() > 0) == (under_test != simd::VectorCode::kNone));
}

// Every core keeps values of all sizes on a stack of its own: how it is stored, loaded, and where.
struct OnStack {
  Op store, load;
  uint64_t offset;    // bytes from the stack's start
  uint64_t step = 0;  // by which the address grows
};
Module make_spilling(OnStack x) {
  Module m;
  add_block(m, {{.op = Op::mul64, .d = kSquare, .a = kCore, .b = kCore}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::add64, .d = kSum, .a = kSum, .b = kSquare},
             {.op = x.store, .d = kSum, .a = kStack, .imm = x.offset},
             {.op = Op::xor64, .d = kSum, .a = kSum, .b = kCore},
             {.op = x.load, .d = kOther, .a = kStack, .imm = x.offset},
             {.op = Op::mul64, .d = kSum, .a = kSum, .b = kOther},
             {.op = Op::ld64, .d = kOther, .a = kStack, .imm = x.offset & ~uint64_t{7}},
             {.op = Op::add64, .d = kSum, .a = kSum, .b = kOther},
             {.op = Op::st64, .d = kSum, .a = kStack, .imm = 512},
             {.op = Op::addi64, .d = kStack, .a = kStack, .imm = x.step},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            2);
  add_block(m, {kEnd}, 7);
  finish(m, kSlots);
  return m;
}

// The same with values that fit 32 bits, of which only some are looked at again.
Module make_narrow_spilling(OnStack x) {
  Module m;
  add_block(m, {{.op = Op::mul32, .d = kSquare, .a = kCore, .b = kCore}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::xor32, .d = kOther, .a = kSum, .b = kRounds},
             {.op = Op::addi32, .d = kOther, .a = kOther, .imm = 0xffffff80},
             {.op = x.store, .d = kOther, .a = kStack, .imm = x.offset},
             {.op = Op::addi64, .d = kStack, .a = kStack, .imm = x.step},
             {.op = Op::jmp}},
            7);
  add_block(m,
            {{.op = x.load, .d = kOther, .a = kStack, .imm = x.offset - x.step},
             {.op = Op::mul32, .d = kSum, .a = kSquare, .b = kOther},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            2);
  add_block(m, {kEnd}, 11);
  finish(m, kSlots);
  return m;
}

TEST_CASE("values of every size on stacks") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const OnStack accesses[] = {
      {Op::st8, Op::ldu8, 64},      {Op::st8, Op::lds8w, 67},      {Op::st8, Op::lds8x, 71},
      {Op::st16, Op::ldu16, 72},    {Op::st16, Op::lds16w, 74},    {Op::st16, Op::lds16x, 78},
      {Op::st16, Op::lds16w, 76},   {Op::st32, Op::ldu32, 80},     {Op::st32, Op::ldu32, 84},
      {Op::st32, Op::lds32x, 84},   {Op::st32, Op::lds32x, 88},    {Op::st64, Op::ld64, 96},
      {Op::st32, Op::ldu32, 102},   {Op::st64, Op::ld64, 4092},    {Op::st16, Op::ldu16, 99},
      {Op::st32, Op::ldu32, 80, 4}, {Op::st16, Op::lds16w, 80, 2}, {Op::st64, Op::ld64, 80, 8}};
  for (const OnStack& x : accesses) {
    CAPTURE(op_info(x.load).name);
    CAPTURE(x.offset);
    for (const Module& module : {make_spilling(x), make_narrow_spilling(x)}) {
      // All lanes together, and ever fewer of them.
      for (const uint64_t step : {0, 20}) {
        const auto rounds = [&](uint32_t core) { return 1000 + step * core; };
        const Run interpreted = run(MachineConfig::kNeverNative, rounds, module);
        const Run native = run(1, rounds, module);
        CHECK(native.sums == interpreted.sums);
        CHECK(native.instructions == interpreted.instructions);
      }
    }
  }
}

// Each core stores its number on its stack and adds what it finds there; after `rounds`, it does
// so for 1,000 rounds more, with (core << shift) + more taken from `changed`.
Module make_compact_spills(const Uop& load, Slot changed, uint64_t shift, uint64_t more) {
  Module m;
  add_block(m,
            {{.op = Op::mov, .d = kOther, .a = kStack},
             {.op = Op::mov, .d = kStored, .a = kCore},
             {.op = Op::jmp}},
            3);
  add_block(m,
            {{.op = Op::st64, .d = kStored, .a = kStack, .imm = 16},
             load,
             {.op = Op::add64, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            3);
  add_block(m, {{.op = Op::bri_ne32, .a = kTurn}}, 15);
  add_block(m,
            {{.op = Op::lsli64, .d = kSquare, .a = kCore, .imm = shift},
             {.op = Op::addi64, .d = kSquare, .a = kSquare, .imm = more},
             {.op = Op::sub64, .d = changed, .a = changed, .b = kSquare},
             {.op = Op::konst, .d = kTurn, .imm = 1},
             {.op = Op::konst, .d = kRounds, .imm = 1000},
             {.op = Op::jmp}},
            3);
  add_block(m, {kEnd}, 15);
  finish(m, kSlots);
  return m;
}

// Of a row on stacks that is compact in a loop's first 2,000 rounds.
template <class Sum>
void check_compact_spills(const Module& module, Sum later_sum) {
  const auto rounds = [](uint32_t) { return uint64_t{2000}; };
  std::vector<uint64_t> sums;
  for (uint64_t core = 0; core < core_count; ++core)
    sums.push_back(2000 * core + 1000 * later_sum(core));
  check_sums(rounds, module, sums);
}

TEST_CASE("a compact row on stacks, until lanes look at others' stacks") {
  for (const Op op : {Op::ldu8, Op::ldu16, Op::ldu32, Op::ld64, Op::lds8x, Op::lds16w}) {
    CAPTURE(op_info(op).name);
    const Uop load{.op = op, .d = kSquare, .a = kOther, .imm = 16};
    const uint64_t shift = MachineConfig{}.window_shift;
    check_compact_spills(make_compact_spills(load, kOther, shift, 0),
                         [](uint64_t) { return uint64_t{0}; });
    // Twice as close: every other one at what a core stored.
    check_compact_spills(make_compact_spills(load, kOther, shift - 1, 0),
                         [](uint64_t core) { return core % 2 ? 0 : core / 2; });
  }
}

TEST_CASE("a compact row on stacks, until some lanes' elements wrap") {
  struct {
    Op op;
    uint64_t last;  // that does not
    uint64_t modulus;
  } const loads[] = {{Op::ldu8, 0xff, 1 << 8},
                     {Op::ldu16, 0xffff, 1 << 16},
                     {Op::ldu32, 0xffffffff, uint64_t{1} << 32},
                     {Op::lds8x, 0x7f, 1 << 8},
                     {Op::lds16x, 0x7fff, 1 << 16},
                     {Op::lds32x, 0x7fffffff, uint64_t{1} << 32}};
  for (const auto& x : loads) {
    CAPTURE(op_info(x.op).name);
    const uint64_t first = x.last - 20;  // core 0's
    check_compact_spills(make_compact_spills({.op = x.op, .d = kSquare, .a = kOther, .imm = 16},
                                             kStored, /*shift=*/63, -first),
                         [&](uint64_t core) {
                           const uint64_t value = first + core - (core << 63);
                           const uint64_t low = value & (x.modulus - 1);
                           return low > x.last ? low - x.modulus : low;
                         });
  }
}

TEST_CASE("a stack that a core may not write to any more") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  constexpr uint32_t kCulprit = 7;
  const Module module = make_spilling({Op::st32, Op::ldu32, 80});
  for (const uint32_t native_after : {1u, MachineConfig::kNeverNative})
    for (const bool changes_module : {false, true}) {
      SimdBackend b;
      start(b, module, native_after, [](uint32_t) { return uint64_t{1000000}; });
      for (int slice = 0; slice < 10; ++slice) CHECK(b.run_slice(1000).empty());
      if (changes_module) b.module_changed();
      // As often as before, the last time of another core.
      for (uint32_t core = 0; core < core_count; ++core)
        b.set_permissions(0, stack_of(0), kWindow, kRead | kWrite);
      b.set_permissions(kCulprit, stack_of(kCulprit), kWindow, kRead);
      const std::span<const Event> events = b.run_slice(1000);
      REQUIRE(events.size() == 1);
      CHECK(events[0].core == kCulprit);
      CHECK(events[0].fault == Fault::kStoreAccess);
    }
}

// Cores go to and fro between two arrays, a page for each core in both.
constexpr uint64_t kArrayBytes = 64 * kPageSize, kOtherArray = 2 * kArrayBytes;
Module make_two_arrays() {
  Module m;
  add_block(m, {{.op = Op::lsli64, .d = kOther, .a = kCore, .imm = kPageShift}, {.op = Op::jmp}},
            2);
  add_block(m,
            {{.op = Op::st64, .d = kSum, .a = kOther, .imm = 8},
             {.op = Op::st64, .d = kRounds, .a = kOther, .imm = kOtherArray},
             {.op = Op::ld64, .d = kSquare, .a = kOther, .imm = 8},
             {.op = Op::add64, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::ld64, .d = kSquare, .a = kOther, .imm = kOtherArray},
             {.op = Op::add64, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            2);
  add_block(m, {kEnd}, 10);
  finish(m, kSlots);
  return m;
}

TEST_CASE("permissions of an array that cores accessed before the last are forgotten, too") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const Module module = make_two_arrays();
  for (const uint32_t native_after : {1u, MachineConfig::kNeverNative})
    for (const uint64_t taken : {uint64_t{0}, kOtherArray}) {
      SimdBackend b;
      start(b, module, native_after, [](uint32_t) { return uint64_t{1000000}; });
      b.set_permissions_all(kArrayBytes, kArrayBytes, 0);  // between them
      for (int slice = 0; slice < 10; ++slice) CHECK(b.run_slice(1000).empty());
      b.set_permissions_all(taken, kArrayBytes, kRead);
      const std::span<const Event> events = b.run_slice(1000);
      REQUIRE(events.size() == core_count);
      for (const Event& event : events) {
        CHECK(event.fault == Fault::kStoreAccess);
        CHECK(event.address == taken + event.core * kPageSize + (taken == 0 ? 8 : 0));
      }
    }
}

// In turn t core c replaces element c ^ (t & 63) of a table: by turns, lanes access neighbours in
// order, by eights, and all mixed up.
struct InTable {
  Op store, load;
  uint32_t log2_size;
  uint64_t at;  // in linear memory
};
Module make_permuting(InTable x) {
  Module m;
  add_block(m, {{.op = Op::xor64, .d = kTurn, .a = kTurn, .b = kTurn}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::andi64, .d = kOther, .a = kTurn, .imm = 63},
             {.op = Op::xor64, .d = kOther, .a = kOther, .b = kCore},
             {.op = Op::lsli64, .d = kOther, .a = kOther, .imm = x.log2_size},
             {.op = x.load, .d = kSquare, .a = kOther, .imm = x.at},
             {.op = Op::add64, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::xor64, .d = kSum, .a = kSum, .b = kCore},
             {.op = x.store, .d = kSum, .a = kOther, .imm = x.at},
             {.op = Op::addi64, .d = kTurn, .a = kTurn, .imm = 1},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            2);
  add_block(m, {kEnd}, 12);
  finish(m, kSlots);
  return m;
}

TEST_CASE("elements at even strides, of which some may not be accessed any more") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  constexpr uint64_t kMiddle = 32 * kPageSize;  // where core 32's are, in a page of their own
  Module m;
  add_block(m,
            {{.op = Op::ld64, .d = kSquare, .a = kOther},
             {.op = Op::ld64, .d = kTurn, .a = kOther, .imm = 8},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            0);
  add_block(m, {kEnd}, 4);
  finish(m, kSlots);
  for (const uint32_t native_after : {1u, MachineConfig::kNeverNative})
    for (const uint64_t stride : {kPageSize, -kPageSize}) {
      SimdBackend b;
      start(b, m, native_after, [](uint32_t) { return uint64_t{1000000}; });
      b.set_slots(kOther, {kMiddle - 32 * stride, stride});
      for (int slice = 0; slice < 10; ++slice) CHECK(b.run_slice(1000).empty());
      b.set_permissions_all(0, kMiddle, 0);
      const std::span<const Event> events = b.run_slice(1000);
      const uint32_t below = std::min(core_count, 32u), behind = std::max(core_count, 33u) - 33;
      CHECK(events.size() == (stride == kPageSize ? below : behind));
      for (const Event& event : events) {
        CHECK(event.fault == Fault::kLoadAccess);
        CHECK(event.address == kMiddle + (uint64_t{event.core} - 32) * stride);
        CHECK(event.address < kMiddle);
      }
    }
}

TEST_CASE("elements that lanes permute") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  for (InTable x : {InTable{Op::st8, Op::ldu8, 0}, InTable{Op::st16, Op::ldu16, 1},
                    InTable{Op::st32, Op::ldu32, 2}, InTable{Op::st64, Op::ld64, 3}}) {
    const uint64_t bytes = uint64_t{64} << x.log2_size;
    for (const uint64_t at : {uint64_t{4096}, uint64_t{8190}, kLinearBytes - bytes}) {
      x.at = at;
      CAPTURE(op_info(x.load).name);
      CAPTURE(x.at);
      for (const uint64_t step : {0, 20}) {
        const auto rounds = [&](uint32_t core) { return 1000 + step * core; };
        std::vector<uint64_t> table(64), sums(core_count);
        for (uint64_t turn = 0; turn < rounds(core_count - 1); ++turn)
          for (uint32_t core = 0; core < core_count; ++core) {
            if (turn >= rounds(core)) continue;
            uint64_t& element = table[core ^ (turn & 63)];
            sums[core] = (sums[core] + element) ^ core;
            element = sums[core] & (~uint64_t{0} >> (64 - (8u << x.log2_size)));
          }
        const Module module = make_permuting(x);
        const Run interpreted = run(MachineConfig::kNeverNative, rounds, module);
        const Run native = run(1, rounds, module);
        CHECK(interpreted.sums == sums);
        CHECK(native.sums == sums);
        if (simd::TraceCompiler::best() != simd::VectorCode::kNone && at == 4096)
          CHECK(native.native_variants != 0);
      }
    }
  }
}

// Lane 0 accesses the first bytes of memory, the others the end of the address space, where there
// is none.
TEST_CASE("scattered accesses from one end of the address space to the other") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  for (const Op op : {Op::ld64, Op::st64}) {
    CAPTURE(op_info(op).name);
    Module m;
    add_block(m, {{.op = op, .d = kSum, .a = kOther}, {.op = Op::jmp}}, 2);
    add_block(m, {kEnd}, 2);
    finish(m, kSlots);
    SimdBackend b;
    start(b, m, MachineConfig::kNeverNative, [](uint32_t) { return uint64_t{1}; });
    for (uint32_t core = 0; core < core_count; ++core)
      b.set_slot(core, kOther, -uint64_t{core * core});
    std::vector<bool> faults(core_count);
    while (b.runnable() != 0)
      for (const Event& e : b.run_slice(1000)) {
        faults[e.core] = e.fault != Fault::kBreakpoint;
        b.stop(e.core);
      }
    for (uint32_t core = 0; core < core_count; ++core) CHECK(faults[core] == (core != 0));
  }
}

// A branch finds that its operand is affine, in the first 2,047 rounds only: from then on it is
// not.
TEST_CASE("an operand that a branch finds affine, but not for ever") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  // Slot 0 is also what fields hold that a micro-op does not have.
  for (const Slot x : {Slot{kCore}, Slot{kSquare}}) {
    const Slot core_number = x == kCore ? kSquare : kCore;
    Module m;
    add_block(m,
              {{.op = Op::mul64, .d = kSum, .a = kCore, .b = kCore},
               {.op = Op::mov, .d = core_number, .a = kCore},
               {.op = Op::jmp}},
              3);
    add_block(m,
              {{.op = Op::addi64, .d = kOther, .a = kOther, .imm = 1},
               {.op = Op::lsri64, .d = kTurn, .a = kOther, .imm = 11},
               {.op = Op::add64, .d = kTurn, .a = kSum, .b = kTurn},
               {.op = Op::xor64, .d = x, .a = kSum, .b = kTurn},
               {.op = Op::xor64, .d = x, .a = x, .b = core_number},
               Uop{.op = Op::bri_ne64, .a = x}.with_imm16(5000)},
              10);
    add_block(m, {kEnd}, 9);
    add_block(m,
              {{.op = Op::add64, .d = kSum, .a = kSum, .b = x},
               {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
               {.op = Op::bri_ne32, .a = kRounds}},
              3);
    add_block(m, {kEnd}, 13);
    finish(m, kSlots);
    std::vector<uint64_t> sums(core_count);
    for (uint32_t core = 0; core < core_count; ++core) {
      sums[core] = uint64_t{core} * core;
      for (uint64_t turn = 1; turn <= 4000; ++turn)
        sums[core] += sums[core] ^ (sums[core] + (turn >> 11)) ^ core;
    }
    const auto rounds = [](uint32_t) { return uint64_t{4000}; };
    check_sums(rounds, m, sums);
  }
}

// Products that overflow raise a flag in each lane at another time, first of all lanes that compute
// them natively, then with a state for which the interpreter does. The next block reads the state.
TEST_CASE("a floating-point state that changes its form while it is looked at") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  constexpr Slot kFactor = kOther, kState = kTurn, kProduct = kSquare;
  constexpr uint64_t kFlushToZero = uint64_t{1} << (24 + 32), kInexact = 0x10, kOverflow = 4;
  constexpr uint64_t kRoundsInAll = 3000;
  for (const uint64_t state : {kInexact, kInexact | kFlushToZero}) {
    CAPTURE(state);
    Module m;
    add_block(m,
              {{.op = Op::mul64, .d = kProduct, .a = kCore, .b = kCore},
               {.op = Op::lsli64, .d = kProduct, .a = kProduct, .imm = 40},
               {.op = Op::ori64, .d = kProduct, .a = kProduct, .imm = 0x3ff0000000000000},
               {.op = Op::konst, .d = kFactor, .imm = 0x3ff8000000000000},
               {.op = Op::konst, .d = kState, .imm = state},
               {.op = Op::jmp}},
              6);
    add_block(m,
              {{.op = Op::fmul64, .d = kProduct, .a = kProduct, .b = kFactor, .e = kState},
               Uop{.op = Op::bri_ne64, .a = kProduct}.with_imm16(1)},
              9);
    add_block(m, {kEnd}, 8);
    add_block(m,
              {{.op = Op::add64, .d = kSum, .a = kSum, .b = kState},
               {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
               {.op = Op::bri_ne32, .a = kRounds}},
              6);
    add_block(m, {kEnd}, 12);
    finish(m, kSlots);
    std::vector<uint64_t> sums(core_count);
    for (uint32_t core = 0; core < core_count; ++core) {
      double product = 1 + core * core / 4096.0;
      uint64_t now = state;
      for (uint64_t round = 0; round < kRoundsInAll; ++round) {
        product *= 1.5;
        if (std::isinf(product)) now |= kOverflow;
        sums[core] += now;
      }
    }
    const auto rounds = [](uint32_t) { return kRoundsInAll; };
    check_sums(rounds, m, sums);
  }
}

// In each lane another product is the first to overflow; the same block then replaces the state.
TEST_CASE("a floating-point state that is written after a flag was raised") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  constexpr Slot kFactor = kOther, kState = kTurn, kProduct = kSquare;
  constexpr uint64_t kInexact = 0x10, kRoundsInAll = 3000;
  Module m;
  add_block(m,
            {{.op = Op::mul64, .d = kProduct, .a = kCore, .b = kCore},
             {.op = Op::lsli64, .d = kProduct, .a = kProduct, .imm = 40},
             {.op = Op::ori64, .d = kProduct, .a = kProduct, .imm = 0x3ff0000000000000},
             {.op = Op::konst, .d = kFactor, .imm = 0x3ff8000000000000},
             {.op = Op::jmp}},
            5);
  add_block(m,
            {{.op = Op::konst, .d = kState, .imm = kInexact},
             {.op = Op::fmul64, .d = kProduct, .a = kProduct, .b = kFactor, .e = kState},
             {.op = Op::lsri64, .d = kState, .a = kProduct, .imm = 62},
             {.op = Op::xor64, .d = kState, .a = kState, .b = kCore},
             {.op = Op::jmp}},
            10);
  add_block(m,
            {{.op = Op::add64, .d = kSum, .a = kSum, .b = kState},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            5);
  add_block(m, {kEnd}, 13);
  finish(m, kSlots);
  std::vector<uint64_t> sums(core_count);
  for (uint32_t core = 0; core < core_count; ++core) {
    double product = 1 + core * core / 4096.0;
    for (uint64_t round = 0; round < kRoundsInAll; ++round) {
      product *= 1.5;
      sums[core] += (product >= 2) ^ core;
    }
  }
  const auto rounds = [](uint32_t) { return kRoundsInAll; };
  check_sums(rounds, m, sums);
}

// A loop in which now and then a lane goes a rare way, and whose header lies before all else
// of it, in a module of 8,000 other blocks. Its own come last, and make no eighth of all.
TEST_CASE("lanes meet in loops that were found late in a large module") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  constexpr uint32_t kOthers = 8000;
  constexpr uint64_t kRoundsOfAll = 20'000;
  const auto add_others = [](Module& m) {
    for (uint32_t i = 0; i < kOthers; ++i)
      add_block(m, {{.op = Op::jmp}}, i == 0 ? kOthers + 1 : i + 1);
    add_block(m, {kEnd}, kOthers);
  };
  const auto add_loop = [](Module& m) {
    const auto head = static_cast<uint32_t>(m.uops.size());
    add_block(m,
              {{.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
               {.op = Op::bri_eq64, .a = kRounds}},
              head + 9);
    add_block(m,
              {{.op = Op::mul64, .d = kOther, .a = kRounds, .b = kRounds},
               {.op = Op::mul64, .d = kSquare, .a = kCore, .b = kCore},
               {.op = Op::add64, .d = kOther, .a = kOther, .b = kSquare},
               {.op = Op::ubfx, .d = kOther, .a = kOther, .aux = 3, .imm = 15},
               {.op = Op::bri_eq64, .a = kOther}},
              head + 10);
    add_block(m, {{.op = Op::addi64, .d = kSum, .a = kSum, .imm = 1}, {.op = Op::jmp}}, head);
    add_block(m, {kEnd}, head + 9);
    add_block(m, {{.op = Op::addi64, .d = kSum, .a = kSum, .imm = 100}, {.op = Op::jmp}}, head);
    finish(m, kSlots);
  };
  uint64_t offered[2] = {};
  for (const bool late : {false, true}) {
    Module m;
    add_others(m);
    if (late)
      finish(m, kSlots);
    else
      add_loop(m);
    SimdBackend b;
    start(
        b, m, MachineConfig::kNeverNative, [](uint32_t) { return kRoundsOfAll; },
        /*counts_lanes=*/true);
    if (late) {
      add_loop(m);
      b.module_changed();
    }
    while (b.runnable() != 0)
      for (const Event& e : b.run_slice(1000)) b.stop(e.core);
    for (uint32_t core = 0; core < core_count; ++core) {
      uint64_t sum = 0;
      for (uint64_t i = kRoundsOfAll - 1; i > 0; --i)
        sum += ((i * i + core * core) >> 3 & 15) == 0 ? 100 : 1;
      CHECK(b.slot(core, kSum) == sum);
    }
    for (const GroupUse& use : b.group_use()) offered[late] += use.offered;
  }
  CHECK(offered[0] > 0);
  CHECK(offered[1] < offered[0] + offered[0] / 4);
}

// Several lanes add to the same of four counters, lanes in order.
TEST_CASE("atomic additions at different places, some the same") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  for (const uint32_t log2_size : {2u, 3u})
    for (const uint64_t at : {uint64_t{4096}, kLinearBytes - (uint64_t{4} << log2_size)}) {
      Module m;
      add_block(m, {{.op = Op::andi64, .d = kOther, .a = kCore, .imm = 3}, {.op = Op::jmp}}, 2);
      add_block(m,
                {{.op = Op::lsli64, .d = kSquare, .a = kOther, .imm = log2_size},
                 {.op = Op::addi64, .d = kSquare, .a = kSquare, .imm = at},
                 {.op = Op::amo_add,
                  .d = kTurn,
                  .a = kSquare,
                  .b = kCore,
                  .aux = static_cast<uint8_t>(log2_size)},
                 {.op = Op::xor64, .d = kSum, .a = kSum, .b = kTurn},
                 {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
                 {.op = Op::bri_ne32, .a = kRounds}},
                2);
      add_block(m, {kEnd}, 8);
      finish(m, kSlots);
      for (const uint64_t step : {0, 20}) {
        const auto rounds = [&](uint32_t core) { return 300 + step * core; };
        std::vector<uint64_t> sums(core_count), counters(4);
        for (uint64_t turn = 0; turn < rounds(core_count - 1); ++turn)
          for (uint32_t core = 0; core < core_count; ++core) {
            if (turn >= rounds(core)) continue;
            sums[core] ^= counters[core & 3];
            counters[core & 3] += core;
          }
        check_sums(rounds, m, sums);
      }
    }
}

}  // namespace
}  // namespace gpusim

int main(int argc, char** argv) {
  using gpusim::simd::VectorCode;
  const VectorCode best = gpusim::simd::TraceCompiler::best();
  const char* const names[] = {"none", "AVX2", "AVX-512"};
  for (const VectorCode code : {VectorCode::kAvx512, VectorCode::kAvx2, VectorCode::kNone}) {
    if (code > best || (code == VectorCode::kNone && best != code)) continue;
    gpusim::under_test = code;
    for (const uint32_t cores : {64, 63, 40}) {
      gpusim::core_count = cores;
      std::printf("native code: %s, %u cores\n", names[static_cast<int>(code)], cores);
      if (const int status = doctest::Context(argc, argv).run()) return status;
    }
  }
  if (best != VectorCode::kNone) return 0;
  std::puts("skipped: this processor has neither AVX2 nor AVX-512, only the rest ran");
  return 77;
}
