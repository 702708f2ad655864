// When cores run in lockstep and when alone, and that nobody can tell afterwards.
#include "device_sim/simd/gear.h"

#include <doctest/doctest.h>

#include "device_sim/core/interleaving.h"
#include "device_sim/core/state_bytes.h"
#include "device_sim/simd/simd_backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

using simd::Gear;

constexpr int64_t kStep = 16, kLanes = 64, kPrice = 1000;
constexpr Gear::StepCost kSteps = {.few = kStep, .all = kStep};
constexpr uint64_t kFirstPause = 32 * kPrice;

TEST_CASE("cores part when lockstep has cost as much as parting does") {
  Gear gear(kSteps, kLanes, kPrice);
  // 64 lanes in each step are worth four of them: what was gained covers a price, and no more.
  for (int i = 0; i < 100; ++i) CHECK_FALSE(gear.loses(6400, 100));
  CHECK_FALSE(gear.loses(100, 100));  // 1500 lost
  CHECK(gear.loses(100, 100));
}

TEST_CASE("lockstep is tried again after a while, which grows where it does not pay") {
  Gear gear(kSteps, kLanes, kPrice);
  REQUIRE(gear.loses(1000, 1000));
  CHECK_FALSE(gear.tries(10 * kFirstPause, kStep - 1));  // too few cores for it
  for (uint64_t pause = kFirstPause; pause <= 16 * kFirstPause; pause *= 4) {
    CHECK_FALSE(gear.tries(pause - 1, 64));
    REQUIRE(gear.tries(1, 64));
    CHECK(gear.loses(20, 20));  // 300 lost: a trial ends sooner
  }
  // Once it pays, the next pause is short.
  REQUIRE(gear.tries(64 * kFirstPause, 64));
  CHECK_FALSE(gear.loses(6400, 100));
  CHECK(gear.loses(1000, 1000));
  CHECK(gear.tries(kFirstPause, 64));
}

TEST_CASE("lockstep is tried early if somebody knows better") {
  Gear gear(kSteps, kLanes, kPrice);
  REQUIRE(gear.loses(1000, 1000));
  CHECK_FALSE(gear.tries(kFirstPause / 16 - 1, 64));
  CHECK_FALSE(gear.may_try_early());
  CHECK_FALSE(gear.tries(1, 64));
  REQUIRE(gear.may_try_early());
  gear.try_now();
  CHECK(gear.loses(20, 20));
  CHECK_FALSE(gear.tries(kFirstPause / 8, 64));  // the next pause is four times as long
  CHECK_FALSE(gear.may_try_early());
}

TEST_CASE("a step costs more where few lanes are active") {
  Gear gear({.few = 40, .all = 8}, kLanes, kPrice);
  for (int i = 0; i < 100; ++i) CHECK_FALSE(gear.loses(6400, 100));  // each gains 5600
  CHECK_FALSE(gear.loses(27 * 1000, 1000));                          // half a lane above what pays
  CHECK_FALSE(gear.loses(26 * 1000, 1000));                          // a lane below: 1000 lost
  CHECK(gear.loses(26 * 1000, 1000));
  CHECK_FALSE(gear.tries(10 * kFirstPause, 26));
  CHECK(gear.tries(10 * kFirstPause, 27));
}

TEST_CASE("accesses that lie apart cost what they would cost each lane") {
  constexpr uint64_t kPerStep = kLanes - kStep;  // what all lanes gain
  Gear gear(kSteps, kLanes, kPrice);
  for (int i = 0; i < 100; ++i)
    CHECK_FALSE(gear.loses(6400, 100, {.steps = 10, .cost = 10 * kPerStep}));
  CHECK_FALSE(gear.loses(6400, 100, {.steps = 80, .cost = 80 * (kPerStep + 10)}));
  CHECK(gear.loses(6400, 100, {.steps = 10'000, .cost = 10'000 * (kPerStep + 20)}));
  // What was seen before a change is of other times.
  REQUIRE(gear.tries(kFirstPause, 64));
  CHECK_FALSE(gear.loses(6400, 100, {}));
  // Later samples have more weight.
  for (int i = 0; i < 10; ++i) CHECK_FALSE(gear.loses(6400, 100, {.steps = 500, .cost = 0}));
  CHECK_FALSE(gear.loses(6400, 100, {.steps = 1000, .cost = 1000 * 2 * kPerStep}));
  CHECK(gear.loses(6400, 100, {.steps = 1000, .cost = 1000 * 2 * kPerStep}));
}

TEST_CASE("a change that cost more makes the next one dearer") {
  Gear gear(kSteps, kLanes, kPrice);
  REQUIRE(gear.loses(1000, 1000));
  gear.note_change(9 * kPrice);
  CHECK_FALSE(gear.tries(10 * kFirstPause - 1, 64));
  REQUIRE(gear.tries(1, 64));
  CHECK_FALSE(gear.loses(100, 100));  // 1500 lost, of 10000
  gear.note_change(0);
  CHECK_FALSE(gear.loses(60, 60));
  CHECK(gear.loses(10, 10));  // a quarter
}

TEST_CASE("a gear's state is kept, and wild values are seen") {
  Gear gear(kSteps, kLanes, kPrice);
  REQUIRE(gear.loses(1000, 1000));
  REQUIRE_FALSE(gear.tries(5000, 64));
  StateWriter w;
  gear.describe(w);
  Gear other(kSteps, kLanes, kPrice);
  StateReader r(w.bytes);
  other.describe(r);
  CHECK(other.is_sound());
  CHECK(other.tries(kFirstPause - 5000, 64));
  for (size_t i = 7; i < 24; i += 8) {
    std::vector<uint8_t> wild = w.bytes;
    wild[i] ^= 0x80;
    StateReader bad(wild);
    Gear third(kSteps, kLanes, kPrice);
    third.describe(bad);
    CHECK_FALSE(third.is_sound());
  }
}

// Each core first does so many rounds of its own loop, then as many as all others, with sums on its
// stack; at last it reads its neighbour's.
constexpr uint32_t kCores = 70, kLoops = 4;
constexpr uint64_t kLinearBytes = 1 << 20;
enum Slots : Slot { kLoop, kRounds, kCommon, kStack, kNeighbour, kSum, kSeen, kSlots };

Module make_phases() {
  Module m;
  constexpr uint32_t kLoopUops = 5, kSecond = kLoops + 1 + kLoops * (kLoopUops + 1);
  for (uint32_t k = 0; k < kLoops; ++k)
    add_block(m, {Uop{.op = Op::bri_eq64, .a = kLoop}.with_imm16(static_cast<uint16_t>(k))},
              kLoops + 1 + k * (kLoopUops + 1));
  add_block(m, {{.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kUndefined)}});
  const auto add_loop = [&m](uint32_t k, Slot rounds) {
    const auto start = static_cast<uint32_t>(m.uops.size());
    add_block(m,
              {{.op = Op::ld64, .d = kSum, .a = kStack, .imm = 16},
               {.op = Op::addi64, .d = kSum, .a = kSum, .imm = k + 1},
               {.op = Op::st64, .d = kSum, .a = kStack, .imm = 16},
               {.op = Op::addi64, .d = rounds, .a = rounds, .imm = ~uint64_t{0}},
               {.op = Op::bri_ne64, .a = rounds}},
              start);
  };
  for (uint32_t k = 0; k < kLoops; ++k) {
    add_loop(k, kRounds);
    add_block(m, {{.op = Op::jmp}}, kSecond);
  }
  add_loop(kLoops, kCommon);
  add_block(m, {{.op = Op::ld64, .d = kSeen, .a = kNeighbour, .imm = 16},
                {.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)}});
  finish(m, kSlots);
  return m;
}

struct Phases {
  std::vector<uint64_t> sums;
  std::vector<ClassCounts> tallies;
  std::vector<uint64_t> block_counts;
  size_t rearrangements = 0;
  uint64_t instructions = 0;
  std::vector<GroupUse> use;
};
// `most`: rounds of a core's own loop.
void start_phases(SimdBackend& b, const Module& module, MachineConfig config, uint64_t most,
                  uint64_t common) {
  config.cores = kCores;
  config.linear_size = config.window_base = kLinearBytes;
  const uint64_t window = uint64_t{1} << config.window_shift;
  b.configure(module, config);
  b.set_permissions(0, kLinearBytes, window * kCores, kRead | kWrite);
  for (uint32_t core = 0; core < kCores; ++core) {
    const uint64_t stack = kLinearBytes + (core + 1) * window - 64;
    b.set_slot(core, kLoop, mixed(1, core, 0) % kLoops);
    b.set_slot(core, kRounds, 1 + mixed(2, core, 0) % most);
    b.set_slot(core, kCommon, common);
    b.set_slot(core, kStack, stack);
    b.set_slot(core, kNeighbour, core + 1 == kCores ? stack : stack + window);
    b.start(core, 0);
  }
}

Phases run_phases(uint32_t native_after, uint64_t common, uint32_t threads,
                  bool counts_lanes = false, bool keeps_groups = false) {
  const Module module = make_phases();
  MachineConfig config;
  config.native_after = native_after;
  config.threads = threads;
  config.count_lanes = counts_lanes;
  config.keeps_groups = keeps_groups;
  const uint64_t window = uint64_t{1} << config.window_shift;
  SimdBackend b;
  start_phases(b, module, config, /*most=*/3000, common);
  while (b.runnable() != 0)
    for (const Event& e : b.run_slice(200)) {
      CHECK(e.fault == Fault::kBreakpoint);
      b.stop(e.core);
    }
  Phases r;
  r.rearrangements = b.rearrangements();
  r.instructions = b.instructions();
  r.use = b.group_use();
  r.block_counts = b.block_counts();
  for (uint32_t core = 0; core < kCores; ++core) {
    r.sums.push_back(b.slot(core, kSum));
    r.tallies.push_back(b.tally(core).classes);
    std::array<uint8_t, 8> word;
    CHECK(b.read_memory(core, kLinearBytes + (core + 1) * window - 48, word));
    uint64_t value;
    std::memcpy(&value, word.data(), sizeof value);
    CHECK(value == r.sums.back());
  }
  return r;
}

TEST_CASE("cores part where they differ, meet where they agree, and nobody can tell") {
  const Phases expected = run_phases(MachineConfig::kNeverNative, 20000, 1);
  CHECK(expected.rearrangements == 0);
  for (const uint32_t threads : {1u, 2u}) {
    const Phases actual = run_phases(/*native_after=*/0, 20000, threads);
    CHECK(actual.rearrangements >= 3);  // apart, and at last together for good or for a while
    CHECK(actual.sums == expected.sums);
    CHECK(actual.tallies == expected.tallies);
    CHECK(actual.block_counts == expected.block_counts);
  }
}

TEST_CASE("cores that are in one loop meet soon") {
  const Module module = make_phases();
  MachineConfig config;
  config.native_after = 100;
  config.count_lanes = true;
  SimdBackend b;
  start_phases(b, module, config, /*most=*/20'000, /*common=*/200'000);
  while (b.runnable() != 0)
    for (const Event& e : b.run_slice(8000)) b.stop(e.core);
  CHECK(b.rearrangements() >= 2);
  uint64_t alone = 0;
  for (const GroupUse& u : b.group_use()) alone += u.alone;
  CHECK(alone < b.instructions() / 5);  // more than a third after a whole pause
}

// Each core reads words from `first` + core * `apart` on, `step` bytes from one to the next.
size_t changes_reading(uint64_t first, uint64_t apart, uint64_t step, bool starts_alone = false) {
  enum : Slot { kAt, kLeft, kWord, kAll };
  Module module;
  add_block(module, {{.op = Op::ld64, .d = kWord, .a = kAt},
                     {.op = Op::addi64, .d = kAt, .a = kAt, .imm = step},
                     {.op = Op::addi64, .d = kLeft, .a = kLeft, .imm = ~uint64_t{0}},
                     {.op = Op::bri_ne64, .a = kLeft}});
  add_block(module, {{.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)}});
  finish(module, kAll);
  MachineConfig config;
  config.cores = 64;
  config.linear_size = config.window_base = uint64_t{64} << 20;
  config.starts_alone = starts_alone;
  SimdBackend b;
  b.configure(module, config);
  b.set_permissions(0, 0, config.window_base + (uint64_t{config.cores} << config.window_shift),
                    kRead | kWrite);
  for (uint32_t core = 0; core < config.cores; ++core) {
    b.set_slot(core, kAt, first + core * apart);
    b.set_slot(core, kLeft, 100'000);
    b.start(core, 0);
  }
  while (b.runnable() != 0)
    for (const Event& e : b.run_slice(32768)) {
      REQUIRE(e.fault == Fault::kBreakpoint);
      b.stop(e.core);
    }
  return b.rearrangements();
}

TEST_CASE("cores that read rows of their own part, and those that read together do not") {
  constexpr uint64_t kMegabyte = 1 << 20, kStacks = 64 * kMegabyte, kWindow = 1 << 16;
  static_assert(kWindow == uint64_t{1} << MachineConfig{}.window_shift);
  CHECK(changes_reading(0, 8, 0) == 0);
  CHECK(changes_reading(0, 8, 64 * 8) == 0);
  CHECK(changes_reading(0, 0, 8) == 0);
  CHECK(changes_reading(kStacks + 64, kWindow, 0) == 0);  // one row of stacks
  CHECK(changes_reading(0, kMegabyte, 8) >= 1);           // lines in the same sets of a cache
  CHECK(changes_reading(kStacks + 64, kWindow + 8, 0) >= 1);
}

TEST_CASE("where one core starts the others, cores begin alone") {
  CHECK(changes_reading(0, 1 << 20, 8, /*starts_alone=*/true) >= 1);
  CHECK(changes_reading(0, 8, 0, /*starts_alone=*/true) == 2);  // and meet, as that pays
}

TEST_CASE("a trial of lockstep generates no code for what was hot while cores ran alone") {
  const Module module = make_phases();
  MachineConfig config;
  config.native_after = 4000;  // more than lockstep runs here
  SimdBackend b;
  start_phases(b, module, config, /*most=*/2'000'000, /*common=*/1);
  // Apart, on trial, and apart again.
  for (int i = 0; b.rearrangements() < 3 && b.runnable() != 0; ++i) {
    REQUIRE(i < 100'000);
    const bool is_on_trial = b.rearrangements() == 2;  // blocks are looked through between slices
    for (const Event& e : b.run_slice(is_on_trial ? 200 : 8000)) b.stop(e.core);
  }
  CHECK(b.rearrangements() == 3);
  CHECK(b.native_variants() == 0);
}

TEST_CASE("what lanes do is counted in lockstep and alone, and changes nothing") {
  const Phases plain = run_phases(/*native_after=*/0, 20000, 1);
  CHECK(plain.use.empty());
  const Phases counted = run_phases(/*native_after=*/0, 20000, 1, /*counts_lanes=*/true);
  CHECK(counted.rearrangements == plain.rearrangements);
  CHECK(counted.tallies == plain.tallies);
  const Phases kept = run_phases(/*native_after=*/0, 20000, 1, /*counts_lanes=*/true,
                                 /*keeps_groups=*/true);
  CHECK(kept.rearrangements == 0);
  CHECK(kept.tallies == plain.tallies);
  for (const Phases* run : {&counted, &kept}) {
    REQUIRE(run->use.size() == 2);  // groups of 64 and 6
    uint64_t active = 0;
    for (const GroupUse& u : run->use) {
      active += u.active;
      CHECK(u.active + u.diverged + u.asleep <= u.offered);
      CHECK((u.alone > 0) == (run == &counted));
      CHECK(u.alone < u.active);
    }
    CHECK(active == run->instructions);
  }
  CHECK(counted.use[0].diverged < kept.use[0].diverged);
}

}  // namespace
}  // namespace gpusim
