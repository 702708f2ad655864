// Cores that wait for an event: they go on when it comes, and take next to nothing until then.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/core/sleepers.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

constexpr uint64_t kMemory = 0x10000, kFlag = kMemory + 0x40;
enum Slots : Slot { kAddress, kValue, kOne, kRounds, kMonitor, kMonitorData, kSlots };

constexpr Uop give_way(Turn turn) {
  return {.op = Op::give_way, .a = kMonitor, .aux = static_cast<uint8_t>(turn)};
}
constexpr Uop kEnd = {.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)};

// From 0: count rounds down, store 1 to the flag, signal if `signals`, end. Then, at `waiter`: load
// the flag, end if it is set, else mark it (if `marks`), wait for an event, again.
struct Program {
  Module module;
  uint32_t waiter = 0;
};
Program make_program(bool marks, bool signals) {
  Program p;
  Module& m = p.module;
  add_block(m,
            {{.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne64, .a = kRounds}},
            0);
  add_block(m,
            {{.op = Op::st32, .d = kOne, .a = kAddress},
             give_way(signals ? Turn::kSignalEvent : Turn::kYield)},
            4);
  add_block(m, {kEnd});
  p.waiter = static_cast<uint32_t>(m.uops.size());
  add_block(m, {{.op = Op::ldu32, .d = kValue, .a = kAddress}, {.op = Op::bri_ne64, .a = kValue}},
            p.waiter + 5);
  if (marks)
    add_block(m,
              {{.op = Op::mov, .d = kMonitor, .a = kAddress},
               {.op = Op::mov, .d = kMonitorData, .a = kValue},
               give_way(Turn::kWaitForEvent)},
              p.waiter);
  else
    add_block(m,
              {{.op = Op::konst, .d = kMonitor, .imm = kNoMonitor},
               {.op = Op::konst, .d = kMonitorData, .imm = 7},
               give_way(Turn::kWaitForEvent)},
              p.waiter);
  add_block(m, {kEnd});
  finish(m, kSlots);
  return p;
}

// Core 0 works for so many rounds of 2 instructions; the others, but for `idle` of them, wait for
// its flag.
std::unique_ptr<Backend> start(const std::string& backend, const Program& p, uint32_t cores,
                               uint64_t rounds, uint32_t idle = 0) {
  MachineConfig config;
  config.cores = cores;
  config.linear_base = kMemory;
  config.linear_size = 4096;
  config.window_base = 0x100000;
  config.window_shift = 12;
  std::unique_ptr<Backend> b = make_backend(backend);
  b->configure(p.module, config);
  b->set_permissions(0, kMemory, 4096, kRead | kWrite);
  for (uint32_t core = 0; core < cores - idle; ++core) {
    b->set_slot(core, kAddress, kFlag);
    b->set_slot(core, kOne, 1);
    b->set_slot(core, kRounds, rounds);
    b->set_slot(core, kMonitor, kNoMonitor);
    b->start(core, core == 0 ? 0 : p.waiter);
  }
  return b;
}

// Returns how often the others looked at the flag.
uint64_t looks(const std::string& backend, uint32_t cores, uint64_t rounds, bool marks,
               bool signals) {
  const Program p = make_program(marks, signals);
  const std::unique_ptr<Backend> b = start(backend, p, cores, rounds);
  uint32_t ended = 0;
  for (int slices = 0; b->runnable() != 0; ++slices) {
    REQUIRE(slices < 1'000'000);
    for (const Event& e : b->run_slice(1000)) {
      CHECK(e.fault == Fault::kBreakpoint);
      b->stop(e.core);
      ++ended;
    }
  }
  CHECK(ended == cores);
  return b->block_counts()[3];
}

std::vector<std::string> backends() {
  std::vector<std::string> names;
  for (const BackendInfo& info : all_backends())
    if (std::string why; info.available(&why)) names.push_back(info.name);
  return names;
}

TEST_CASE("a core that watches a word is one that sleeps, and so is one that has ended") {
  const Program p = make_program(true, false);
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    for (const uint32_t cores : {3u, 70u}) {
      CAPTURE(cores);
      const std::unique_ptr<Backend> b = start(backend, p, cores, 20'000, 1);
      Sleepers* const sleepers = sleepers_of(*b);
      REQUIRE(sleepers);
      std::vector<uint8_t> sleep(cores, 7);
      for (int slice = 0; slice < 5; ++slice) CHECK(b->run_slice(1000).empty());
      sleepers->find_sleepers(sleep);
      CHECK(sleep[0] == 0);  // it works
      for (uint32_t core = 1; core < cores; ++core) CHECK(sleep[core] == 1);
      while (b->runnable() != 0)
        for (const Event& e : b->run_slice(1000)) b->stop(e.core);
      sleepers->find_sleepers(sleep);
      for (const uint8_t one : sleep) CHECK(one == 1);
    }
  }
}

TEST_CASE("a core that watches a word sleeps until it changes") {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    for (const uint32_t cores : {2u, 64u, 65u, 1000u}) {
      CAPTURE(cores);
      constexpr uint64_t kRounds = 500'000;  // a thousand slices
      const double each = double(looks(backend, cores, kRounds, true, false)) / (cores - 1);
      CHECK(each >= 2);
      CHECK(each < 20);
    }
  }
}

TEST_CASE(
    "a core without a marked word sleeps until an event is signalled, or looks now and then") {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    for (const bool signals : {true, false}) {
      CAPTURE(signals);
      const double each = double(looks(backend, 200, 500'000, false, signals)) / 199;
      CHECK(each >= 2);
      CHECK(each < 20);
    }
  }
}

}  // namespace
}  // namespace gpusim
