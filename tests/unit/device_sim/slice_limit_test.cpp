// Slices that end by the clock: none lasts, and every core has its turns.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/core/machine_state.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

enum Slots : Slot { kCount, kSlots };

// Counts for ever, two instructions a time.
Module counting() {
  Module m;
  add_block(m,
            {{.op = Op::addi64, .d = kCount, .a = kCount, .imm = 1},
             {.op = Op::bri_ne64, .a = kCount}},
            0);
  finish(m, kSlots);
  return m;
}

void check_turns(const std::string& name, uint32_t cores, uint32_t threads) {
  CAPTURE(name);
  CAPTURE(threads);
  constexpr uint64_t kSlice = 10'000;
  const Module module = counting();
  MachineConfig config;
  config.cores = cores;
  config.threads = threads;
  config.window_base = 0x100000;
  config.window_shift = 12;
  const std::unique_ptr<Backend> backend = make_backend(name);
  backend->configure(module, config);
  for (uint32_t core = 0; core < cores; ++core) backend->start(core, 0);
  CpuMachineState* const state = memory_of(*backend);
  REQUIRE(state);
  const auto counts = [&] {
    std::vector<uint64_t> all(cores);
    for (uint32_t core = 0; core < cores; ++core) all[core] = backend->slot(core, kCount);
    return all;
  };

  // Over when somebody first looks at the clock.
  state->limit_slices(std::chrono::nanoseconds(1));
  backend->run_slice(kSlice);
  CHECK(std::ranges::count(counts(), 0u) > cores / 2);

  // The next ones do not begin with the first cores again.
  uint64_t slices = 1;
  for (; slices < 10 * cores && std::ranges::count(counts(), 0u) != 0; ++slices)
    backend->run_slice(kSlice);
  std::vector<uint64_t> all = counts();
  CHECK(std::ranges::count(all, 0u) == 0);
  for (uint64_t i = 0; i < 3 * slices; ++i) backend->run_slice(kSlice);
  all = counts();
  const auto [least, most] = std::ranges::minmax(all);
  CHECK(least > kSlice / 4);
  CHECK(most - least <= 2 * kSlice);

  // Without a limit all run in each slice.
  state->limit_slices({});
  backend->run_slice(kSlice);
  backend->run_slice(kSlice);
  const std::vector<uint64_t> later = counts();
  for (uint32_t core = 0; core < cores; ++core) REQUIRE(later[core] > all[core]);
}

}  // namespace

TEST_CASE("slices that end by the clock give every core its turns") {
  check_turns("scalar", 40, 1);
  for (const uint32_t threads : {1, 2}) check_turns("simd", 64 * 40, threads);
}

}  // namespace gpusim
