// Memory in tiles: whatever the storage of the machine that wrote them, any machine takes them.
#include "device_sim/core/machine_state.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "host/memory_plan.h"
#include "tests/unit/host/toy_module.h"

namespace gpusim {
namespace {

std::map<uint64_t, std::vector<uint8_t>> windows_of(MachineState& state) {
  std::map<uint64_t, std::vector<uint8_t>> tiles;
  state.visit_windows([&](uint64_t number, std::span<const uint8_t> bytes) {
    if (std::any_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b != 0; }))
      tiles[number] = {bytes.begin(), bytes.end()};
  });
  return tiles;
}

TEST_CASE("windows look the same on all machines") {
  const Module module = host::toy_module();
  for (const MemoryModel model : {MemoryModel::kShared, MemoryModel::kPrivate})
    for (const uint32_t cores : {1u, 3u, 64u, 70u, 200u}) {
      CAPTURE(cores);
      const host::MemoryPlan plan =
          host::plan_memory(module, {.model = model, .cores = cores, .stack_size_bytes = 65536});
      std::vector<std::unique_ptr<Backend>> machines;
      for (const BackendInfo& info : all_backends())
        if (std::string why; info.available(&why)) machines.push_back(info.create());
      for (const auto& m : machines) m->configure(module, plan.config);
      std::mt19937 random(cores);
      for (int i = 0; i < 300; ++i) {
        const uint32_t core = random() % cores;
        const uint64_t offset = random() % 60000;
        const uint64_t address = plan.stack_top(core) - 60000 + offset;
        std::vector<uint8_t> bytes(1 + random() % 50);
        for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
        bytes.resize(std::min<uint64_t>(bytes.size(), 60000 - offset));
        for (const auto& m : machines) REQUIRE(m->write_memory(core, address, bytes));
      }
      const auto expected = windows_of(*state_of(*machines[0]));
      CHECK(!expected.empty());
      for (const auto& from : machines) {
        CHECK(windows_of(*state_of(*from)) == expected);
        auto to = make_backend(from->name() == "simd" ? "scalar" : "simd");
        to->configure(module, plan.config);
        for (const auto& [number, bytes] : expected)
          REQUIRE(state_of(*to)->put_windows(number, bytes));
        CHECK(windows_of(*state_of(*to)) == expected);
        for (uint32_t core = 0; core < cores; ++core) {
          std::vector<uint8_t> a(60000), b(60000);
          REQUIRE(from->read_memory(core, plan.stack_top(core) - 60000, a));
          REQUIRE(to->read_memory(core, plan.stack_top(core) - 60000, b));
          REQUIRE(a == b);
        }
      }
      // No such tile, or of another size.
      MachineState& state = *state_of(*machines[1]);
      const std::vector<uint8_t> tile(uint64_t{std::min(cores, 64u)} * 64);
      CHECK(state.put_windows(0, tile));
      CHECK_FALSE(state.put_windows(~uint64_t{0}, tile));
      CHECK_FALSE(state.put_windows(0, std::span(tile).first(8)));
      CHECK_FALSE(state.put_linear(~uint64_t{0}, std::vector<uint8_t>(4096)));
      CHECK_FALSE(state.put_linear(0, tile.size() == 4096 ? std::span(tile).first(8) : tile));
    }
}

}  // namespace
}  // namespace gpusim
