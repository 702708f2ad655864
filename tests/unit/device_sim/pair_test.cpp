// Cores that swap the same pair of words: no swap of another core's comes between the two words.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

constexpr uint64_t kMemory = 0x10000, kWindows = 0x100000;
enum Slots : Slot {
  kAddress, kOldLow, kOldHigh, kNewLow, kNewHigh, kSeenLow, kSeenHigh, kRounds, kSlots
};

// Counts rounds down; each adds 1 to the lower word and 3 to the upper one.
Module make_program() {
  Module m;
  add_block(m, {{.op = Op::ld64, .d = kOldLow, .a = kAddress},
                {.op = Op::ld64, .d = kOldHigh, .a = kAddress, .imm = 8},
                {.op = Op::mov, .d = kSeenLow, .a = kOldLow},
                {.op = Op::mov, .d = kSeenHigh, .a = kOldHigh},
                {.op = Op::addi64, .d = kNewLow, .a = kOldLow, .imm = 1},
                {.op = Op::addi64, .d = kNewHigh, .a = kOldHigh, .imm = 3},
                {.op = Op::cas128, .d = kOldLow, .a = kAddress, .b = kNewLow},
                {.op = Op::br_ne64, .a = kOldLow, .b = kSeenLow}});
  add_block(m, {{.op = Op::br_ne64, .a = kOldHigh, .b = kSeenHigh}});
  add_block(m, {{.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
                {.op = Op::bri_ne64, .a = kRounds}});
  add_block(m, {{.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)}});
  finish(m, kSlots);
  return m;
}

TEST_CASE("pairs of words that all cores swap") {
  const Module module = make_program();
  for (const BackendInfo& info : all_backends()) {
    if (std::string why; !info.available(&why)) continue;
    CAPTURE(std::string(info.name));
    for (const uint32_t cores : {1u, 7u, 33u, 100u})
      for (const uint64_t address : {kMemory + 0x40, kWindows + 0x40}) {  // in a window: a stack
        CAPTURE(cores);
        CAPTURE(address);
        MachineConfig config;
        config.cores = cores;
        config.linear_base = kMemory;
        config.linear_size = 4096;
        config.window_base = kWindows;
        config.window_shift = 12;
        const std::unique_ptr<Backend> b = make_backend(info.name);
        b->configure(module, config);
        b->set_permissions(0, address & ~uint64_t{4095}, 4096, kRead | kWrite);
        constexpr uint64_t kEach = 10;
        b->set_slots(kAddress, {address});
        b->set_slots(kRounds, {kEach});
        b->start_all(0);
        for (int slices = 0; b->runnable() != 0; ++slices) {
          REQUIRE(slices < 1'000'000);
          for_each_core(b->run_slice(200), [&](const Event& e) {
            CHECK(e.fault == Fault::kBreakpoint);
            b->stop(e.core);
          });
        }
        uint64_t pair[2] = {};
        REQUIRE(b->read_memory(0, address, {reinterpret_cast<uint8_t*>(pair), sizeof pair}));
        CHECK(pair[0] == cores * kEach);
        CHECK(pair[1] == 3 * cores * kEach);
      }
  }
}

}  // namespace
}  // namespace gpusim
