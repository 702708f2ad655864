// Activity over time: nothing is lost when slices and groups are merged, and the size is bounded.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "device_sim/simd/simd_backend.h"
#include "host/run/timeline.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim::host {
namespace {

constexpr Slot kRounds = 0;

// A loop of two instructions, rounds(core) times, then an end that the host sees.
struct Machine {
  Module module;
  SimdBackend backend;
  Tallies tallies;
  std::vector<bool> alive;

  template <class Rounds>
  Machine(uint32_t cores, Rounds rounds) : alive(cores, true) {
    add_block(module,
              {{.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
               {.op = Op::bri_ne64, .a = kRounds}},
              0);
    add_block(module, {{.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)}});
    finish(module, 2);
    MachineConfig config;
    config.cores = cores;
    config.linear_size = config.window_base = 1 << 20;
    config.window_shift = 12;
    config.count_lanes = true;
    backend.configure(module, config);
    for (uint32_t core = 0; core < cores; ++core) {
      backend.set_slot(core, kRounds, rounds(core));
      backend.start(core, 0);
    }
  }
  void run(ActivityRecorder& recorder, uint64_t slice) {
    const auto is_alive = [&](uint32_t core) { return bool{alive[core]}; };
    while (backend.runnable() != 0) {
      for (const Event& e : backend.run_slice(slice)) {
        backend.stop(e.core);
        alive[e.core] = false;
      }
      recorder.after_slice(module, backend, tallies, is_alive);
    }
    recorder.finish(module, backend, tallies, is_alive);
  }
};

uint64_t instructions(const ActivityRecorder& recorder) {
  uint64_t sum = 0;
  for (const TimeSlice& s : recorder.slices()) sum += Tally{s.classes, 0}.instructions();
  return sum;
}

TEST_CASE("a long run takes no more than the bound, and nothing is lost") {
  constexpr uint32_t kCores = 128;
  Machine m(kCores, [](uint32_t core) { return 50'000 + 1000 * core; });
  ActivityRecorder recorder(kCores, 64, {CycleTable()});
  m.run(recorder, 20);
  CHECK(recorder.slices().size() <= ActivityRecorder::kMostSlices);
  CHECK(recorder.slices().size() >= ActivityRecorder::kMostSlices / 2 - 1);
  CHECK(instructions(recorder) == m.tallies.total(m.module, m.backend).instructions());
  // Slices of 20 instructions, of which the busiest core executes all: time is its instructions.
  double seconds = 0;
  for (const TimeSlice& s : recorder.slices()) seconds += s.seconds[0];
  CHECK(seconds == doctest::Approx(2 * (50'000 + 1000 * 127) * 1e-9));
  CHECK(timeline_json(recorder, "p", {}).size() < 16'000'000);
}

TEST_CASE("many cores share rows") {
  constexpr uint32_t kCores = 100'000;
  Machine m(kCores, [](uint32_t core) { return core < kCores / 2 ? 10u : 1000u; });
  ActivityRecorder recorder(kCores, 64, {CycleTable()}, 16, 8);
  m.run(recorder, 20);
  CHECK(recorder.row_count() <= 8);
  CHECK(recorder.slices().size() <= 16);
  CHECK(recorder.row_name(0) == "cores 0-12543");
  CHECK(recorder.row_name(7) == "cores 87808-99999");
  CHECK(instructions(recorder) == m.tallies.total(m.module, m.backend).instructions());
  const auto trace = nlohmann::json::parse(timeline_json(recorder, "p\"\n", {}));
  size_t events = 0;
  for (const auto& event : trace["traceEvents"]) events += event["ph"] == "X";
  CHECK(events <= 8 * 16);
  // The first rows end soon, the last ones run.
  const TimeSlice& last = recorder.slices().back();
  CHECK(last.rows[0].ended == doctest::Approx(last.rows[0].all()));
  CHECK(last.rows[7].running > 0.9 * last.rows[7].all());
}

TEST_CASE("accesses off the chip are spread over slices, and none is lost") {
  constexpr auto kOn = static_cast<size_t>(InsnClass::kOnChipMemory),
                 kOff = static_cast<size_t>(InsnClass::kOffChipMemory);
  for (const uint64_t off : {0u, 1u, 777u, 9'999u, 1'000'000u}) {
    Machine m(64, [](uint32_t core) { return 100 + 7 * core; });
    for (Block& b : m.module.blocks) {
      b.classes = {};
      b.classes[kOff] = b.insn_count;
    }
    ActivityRecorder recorder(64, 64, {CycleTable()});
    m.run(recorder, 30);
    const uint64_t all = instructions(recorder);
    recorder.place_memory(off);
    CHECK(instructions(recorder) == all);
    uint64_t placed = 0;
    for (const TimeSlice& s : recorder.slices()) {
      placed += s.classes[kOff];
      const double share = static_cast<double>(off) / static_cast<double>(all);
      const double accesses = static_cast<double>(s.classes[kOff] + s.classes[kOn]);
      if (off < all) CHECK(std::abs(static_cast<double>(s.classes[kOff]) - share * accesses) <= 2 + recorder.slices().size());
    }
    CHECK(placed == std::min(off, all));
  }
}

TEST_CASE("shares of a row add up to its slots") {
  Machine m(192, [](uint32_t core) { return core % 3 == 0 ? 10'000u : 3000u; });
  ActivityRecorder recorder(192, 64, {CycleTable()});
  m.run(recorder, 100);
  CHECK(recorder.knows_lanes());
  for (const TimeSlice& s : recorder.slices())
    for (const RowActivity& row : s.rows) {
      CHECK(row.running >= 0);
      CHECK(row.diverged >= 0);
      CHECK(row.waiting >= -1e-6);
      CHECK(row.ended >= 0);
    }
}

TEST_CASE("time of a slice is that of its busiest core, or what the units need") {
  ClassCounts all{};
  all[0] = 1000;
  CycleTable table;
  CHECK(table.seconds(all, 400, 10) == doctest::Approx(400e-9));   // ten cores, one has most
  CHECK(table.seconds(all, 100, 10) == doctest::Approx(100e-9));
  table.units = 4;
  CHECK(table.seconds(all, 100, 10) == doctest::Approx(250e-9));   // four units for ten cores
  table.units_are_cores = false;
  CHECK(table.seconds(all, 400, 10) == doctest::Approx(250e-9));
  table.cycles[0] = 2.5;
  table.clock_hz = 5e8;
  CHECK(table.seconds(all, 0, 10) == doctest::Approx(2.5 * 250 / 5e8));
}

}  // namespace
}  // namespace gpusim::host
