// What the simd backend says of its lanes: which were active, which had diverged, which slept.
#include <doctest/doctest.h>

#include "device_sim/simd/simd_backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

enum Slots : Slot { kRole, kRounds, kMonitor, kMonitorData, kAddress, kValue, kOne, kSlots };
constexpr Uop kEnd = {.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)};
constexpr uint64_t kMemory = 0x10000;

MachineConfig config_for(uint32_t cores) {
  MachineConfig config;
  config.cores = cores;
  config.linear_base = kMemory;
  config.linear_size = 4096;
  config.window_base = 0x100000;
  config.window_shift = 12;
  config.count_lanes = true;
  return config;
}

uint32_t run_to_end(SimdBackend& b, uint64_t slice) {
  uint32_t ended = 0;
  while (b.runnable() != 0)
    for (const Event& e : b.run_slice(slice)) {
      CHECK(e.fault == Fault::kBreakpoint);
      b.stop(e.core);
      ++ended;
    }
  return ended;
}

// Blocks: 0 goes to block 3 for role 1; 1 is a loop of 2 instructions; 2 ends; 3 and 4 the same.
Module make_fork() {
  Module m;
  add_block(m, {{.op = Op::bri_ne64, .a = kRole}}, 4);
  for (const uint32_t loop : {1u, 4u}) {
    add_block(m,
              {{.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
               {.op = Op::bri_ne64, .a = kRounds}},
              loop);
    add_block(m, {kEnd});
  }
  finish(m, kSlots);
  return m;
}

TEST_CASE("lanes that go different ways offer slots to each other in vain") {
  constexpr uint64_t kTurns = 100;
  const Module module = make_fork();
  for (const uint32_t cores : {64u, 40u, 128u + 40u}) {
    for (const uint32_t native_after : {0u, MachineConfig::kNeverNative}) {
      INFO(cores, " cores, native code after ", native_after);
      MachineConfig config = config_for(cores);
      config.native_after = native_after;
      config.regroup = false;
      SimdBackend b;
      b.configure(module, config);
      for (uint32_t core = 0; core < cores; ++core) {
        b.set_slot(core, kRole, core % 4 == 0);  // a quarter
        b.set_slot(core, kRounds, kTurns);
        b.start(core, 0);
      }
      CHECK(run_to_end(b, 1 << 20) == cores);
      const std::vector<uint64_t> counts = b.block_counts(), lanes = b.block_lanes();
      CHECK(counts[0] == cores);
      CHECK(lanes[0] == cores);
      CHECK(counts[1] == kTurns * cores * 3 / 4);
      CHECK(counts[3] == kTurns * cores / 4);
      // Who runs first has the others beside it; then those are alone.
      CHECK(lanes[1] + lanes[3] - counts[1] - counts[3] ==
            (lanes[1] > counts[1] ? counts[3] : counts[1]));
      const std::vector<GroupUse> groups = b.group_use();
      CHECK(groups.size() == (cores + 63) / 64);
      for (size_t g = 0; g < groups.size(); ++g) {
        const uint64_t width = std::min<uint64_t>(64, cores - 64 * g), quarter = width / 4;
        const uint64_t others = lanes[1] > counts[1] ? quarter : width - quarter;
        CHECK(groups[g].offered == width * (1 + 2 * 2 * kTurns));
        CHECK(groups[g].active == width * (1 + 2 * kTurns));
        CHECK(groups[g].diverged == others * 2 * kTurns);
        CHECK(groups[g].asleep == 0);
      }
    }
  }
}

TEST_CASE("sums of lanes do not depend on slices and threads") {
  const Module module = make_fork();
  for (const uint64_t slice : {uint64_t{100}, uint64_t{1} << 40}) {
    for (const uint32_t threads : {1u, 3u}) {
      MachineConfig config = config_for(256);
      config.threads = threads;
      config.regroup = false;
      SimdBackend b;
      b.configure(module, config);
      for (uint32_t core = 0; core < 256; ++core) {
        b.set_slot(core, kRounds, 20'000'000);  // beyond what one word of two sums holds
        b.start(core, 0);
      }
      if (slice == 100)
        for (int i = 0; i < 50; ++i) b.run_slice(slice);
      else
        run_to_end(b, slice);
      const std::vector<uint64_t> counts = b.block_counts();
      CHECK(b.block_lanes() == counts);
      uint64_t active = 0;
      for (const GroupUse& g : b.group_use()) {
        CHECK(g.offered == g.active);
        active += g.active;
      }
      CHECK(active == 256 + 2 * counts[1]);
      if (slice != 100) CHECK(counts[1] == 256 * uint64_t{20'000'000});
    }
  }
}

// Core 0 counts down, stores a flag, ends; the others wait for it in WFE.
TEST_CASE("lanes that sleep in a group that works are told apart") {
  constexpr uint64_t kTurns = 1000;
  Module m;
  add_block(m, {{.op = Op::bri_eq64, .a = kRole}}, 7);  // 0
  add_block(m, {{.op = Op::ldu32, .d = kValue, .a = kAddress}, {.op = Op::bri_ne64, .a = kValue}}, 6);
  add_block(m,
            {{.op = Op::mov, .d = kMonitor, .a = kAddress},
             {.op = Op::mov, .d = kMonitorData, .a = kValue},
             {.op = Op::give_way, .a = kMonitor, .aux = static_cast<uint8_t>(Turn::kWaitForEvent)}},
            1);
  add_block(m, {kEnd});  // micro-op 6
  add_block(m,
            {{.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne64, .a = kRounds}},
            7);
  add_block(m, {{.op = Op::st32, .d = kOne, .a = kAddress}, {.op = Op::jmp}}, 11);
  add_block(m, {kEnd});  // 11
  finish(m, kSlots);
  MachineConfig config = config_for(64);
  SimdBackend b;
  b.configure(m, config);
  b.set_permissions(0, kMemory, 4096, kRead | kWrite);
  for (uint32_t core = 0; core < 64; ++core) {
    b.set_slot(core, kRole, core != 0);
    b.set_slot(core, kAddress, kMemory + 64);
    b.set_slot(core, kOne, 1);
    b.set_slot(core, kRounds, kTurns);
    b.set_slot(core, kMonitor, kNoMonitor);
    b.start(core, 0);
  }
  CHECK(run_to_end(b, 1 << 20) == 64);
  const GroupUse use = b.group_use().at(0);
  CHECK(use.asleep >= 63 * kTurns);  // most of the 2 * kTurns instructions of core 0
  CHECK(use.active + use.diverged + use.asleep <= use.offered);
  // While they slept they were not runnable: nothing of that is divergence.
  CHECK(use.diverged < 63 * kTurns);
}

}  // namespace
}  // namespace gpusim
