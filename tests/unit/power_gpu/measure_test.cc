#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "device_sim/base/error.h"
#include "energy/power/microbench/measure.h"
#include "energy/power/microbench/sweeps.h"
#include "energy/power/microbench/target_file.h"
#include "energy/target.h"
#include "tests/unit/power_gpu/stubbed_gpu.h"

namespace gpusim::power {
namespace {

constexpr gpusim_stub_model kModel{
    .idle_w = 20, .busy_w = 0, .energy_scale = 1, .o0_scale = 1.5, .multiprocessors = 4};

SensorModel sensor() {
  SensorModel s;
  s.update_period = Seconds(0.02);
  s.window = Seconds(0.02);
  s.lag = Seconds(0.05);
  s.noise = Watts(0.05);
  s.quantum = Watts(0.001);
  return s;
}

BenchOptions quick(const std::string& list) {
  BenchOptions o;
  o.instructions = select_instructions(list);
  o.seconds = Seconds(0.6);
  o.settle = Seconds(0.5);
  o.repeats = 4;
  o.sensor_error = 0;
  return o;
}

// doctest's Approx adds 1 to the scale: joules of 1e-11 are all alike to it.
bool near(double value, double expected, double relative) {
  if (std::abs(value / expected - 1) < relative) return true;
  MESSAGE(value << " is not within " << relative << " of " << expected);
  return false;
}

// What the stub charges for all that the kernel has and its overhead has not.
double true_energy(StubbedGpu& stub, const Instruction& i) {
  const auto sum = [&](bool is_overhead) {
    double joules = 0;
    for (const std::string& s : loop_body(kernel_ptx({{&i}, is_overhead, {1}})))
      joules += stub.energy_of(s);
    return joules;
  };
  return sum(false) - sum(true);
}

TEST_CASE("the target file recovers the stub's energies within its bounds") {
  StubbedGpu stub(sensor(), kModel);
  Gpu gpu(GPUSIM_STUB_CUDA, 0);
  const BenchOptions options = quick("all");
  const BenchResults results = run_benchmarks(gpu, stub.source(), options);
  REQUIRE(results.instructions.size() == instructions().size());
  CHECK(results.idle.value() == doctest::Approx(20).epsilon(0.01));
  int outside = 0;
  double worst = 0;
  for (const InstructionResult& r : results.instructions) {
    const double truth = true_energy(stub, *r.instruction);
    CAPTURE(r.instruction->id);
    REQUIRE(truth > 0);
    for (unsigned level : {3u, 0u}) {
      const EnergyFigure& f = r.by_optimization.at(level);
      const double expected = truth * (level == 0 ? kModel.o0_scale : 1);
      CAPTURE(level);
      CAPTURE(f.energy.value());
      CAPTURE(expected);
      outside += expected < f.low.value() || expected > f.high.value();
      worst = std::max(worst, std::abs(f.energy.value() / expected - 1));
      CHECK(near(f.energy.value(), expected, 0.15));
    }
  }
  // Bounds are of 95 %, over some 140 figures.
  MESSAGE("outside of their bounds: " << outside << ", worst error " << worst);
  CHECK(outside <= static_cast<int>(results.instructions.size() * 2 * 15 / 100));

  const std::string json = target_json(results, target_name(gpu.info()), "2026-11-22");
  const std::vector<energy::Target> targets = energy::parse_target(json, "written.json");
  REQUIRE(targets.size() == 2);
  CHECK(targets[0].name == "stub-gpu-1/o3");
  CHECK(targets[1].name == "stub-gpu-1/o0");
  const auto& division = targets[0].cost(InsnClass::kIntegerDivision);
  const double expected = (true_energy(stub, *find_instruction("div.s32")) +
                           true_energy(stub, *find_instruction("div.u32"))) /
                          2;
  CHECK(near(division.energy.value.value(), expected, 0.03));
  CHECK_FALSE(division.is_substitute);
  for (const energy::ClassCost& c : targets[0].classes) CHECK_FALSE(c.is_substitute);
  CHECK(targets[0].unplaced_memory.energy.high >=
        targets[0].cost(InsnClass::kOffChipMemory).energy.value);
  REQUIRE(targets[0].timing);
  CHECK(targets[0].timing->units == 4);
  CHECK(targets[0].timing->clock.value() == 1e9);
  CHECK(near(targets[0].timing->cycles[static_cast<size_t>(InsnClass::kIntegerDivision)], 20.0 / 64,
             0.02));
  REQUIRE(targets[0].states.size() == 1);
  CHECK(targets[0].states[0].idle_power.value() == doctest::Approx(20).epsilon(0.01));
}

TEST_CASE("an offset of the sensor does not matter, a gain does and is in the bounds") {
  SensorModel s = sensor();
  s.offset = Watts(7);
  s.gain = 1.04;
  StubbedGpu stub(s, kModel);
  Gpu gpu(GPUSIM_STUB_CUDA, 0);
  BenchOptions options = quick("div.s32");
  options.optimizations = {3};
  options.sensor_error = 0.05;
  const BenchResults results = run_benchmarks(gpu, stub.source(), options);
  const EnergyFigure& f = results.instructions[0].by_optimization.at(3);
  const double truth = true_energy(stub, *find_instruction("div.s32"));
  CHECK(near(f.energy.value(), 1.04 * truth, 0.03));
  CHECK(f.low.value() < truth);
  CHECK(f.high.value() > truth);
  const auto targets = energy::parse_target(target_json(results, "x", "today"), "x.json");
  REQUIRE(targets.size() == 1);
  CHECK(targets[0].cost(InsnClass::kFloatArithmetic).is_substitute);
}

TEST_CASE("a counter of energy is used where the source has one") {
  SensorModel s = sensor();
  s.noise = Watts(5);
  s.has_counter = true;
  StubbedGpu stub(s, kModel);
  Gpu gpu(GPUSIM_STUB_CUDA, 0);
  BenchOptions options = quick("add.s32");
  options.optimizations = {3};
  const BenchResults results = run_benchmarks(gpu, stub.source(), options);
  const double truth = true_energy(stub, *find_instruction("add.s32"));
  CHECK(near(results.instructions[0].by_optimization.at(3).energy.value(), truth, 0.05));
}

TEST_CASE("static power of busy SMs is charged by time, as Equation 1 does") {
  gpusim_stub_model model = kModel;
  model.busy_w = 8;
  StubbedGpu stub(sensor(), model);
  Gpu gpu(GPUSIM_STUB_CUDA, 0);
  BenchOptions options = quick("mul.lo.s32");
  options.optimizations = {3};
  const BenchResults results = run_benchmarks(gpu, stub.source(), options);
  const double truth = true_energy(stub, *find_instruction("mul.lo.s32")) +
                       8 * stub.cycles_of("mul.lo.s32") / 1e9 / 4;
  CHECK(near(results.instructions[0].by_optimization.at(3).energy.value(), truth, 0.1));
}

TEST_CASE("sweeps fill the files that gpusim energy tune reads") {
  gpusim_stub_model model = kModel;
  model.busy_w = 8;
  StubbedGpu stub(sensor(), model);
  Gpu gpu(GPUSIM_STUB_CUDA, 0);
  BenchOptions options = quick("add.s32");
  const Sweeps sweeps = run_sweeps(gpu, stub.source(), options);
  CHECK(sweeps.lanes.size() == 5 * mixes().size());
  for (const SweepPoint& p : sweeps.sms) {
    // Idle SMs take nothing in the stub, and a busy one the same always.
    CHECK(p.power > Watts(20));
    if (p.active_sms == 4) CHECK(p.power > sweeps.sms.front().power);
  }
  const SweepFiles once = sweep_files(sweeps, {});
  CHECK(once.constant.starts_with("workload,frequency_MHz,power_W\nint_add,1000.000,"));
  const SweepFiles twice = sweep_files(sweeps, once);
  CHECK(twice.statics.size() > once.statics.size());
  CHECK(twice.statics.starts_with(once.statics));
  CHECK_THROWS_AS(sweep_files(sweeps, {.constant = "a,b\n"}), Error);
}

TEST_CASE("failures are errors that say what failed") {
  const auto message = [](auto f) {
    try {
      f();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(message([] { Gpu gpu("/nowhere/libcuda.so.1", 0); }).find("no CUDA driver") !=
        std::string::npos);
  CHECK(message([] { Gpu gpu(GPUSIM_STUB_CUDA, 3); }).find("--device 3: there are 1") !=
        std::string::npos);
  StubbedGpu stub(sensor(), kModel);
  {
    Gpu gpu(GPUSIM_STUB_CUDA, 0);
    CHECK(message([&] { gpu.load(".version 6.3\n", "k", 3, "nonsense"); }).find("no .entry") !=
          std::string::npos);
    BenchOptions options = quick("add.s32");
    options.repeats = 0;
    CHECK(message([&] { run_benchmarks(gpu, stub.source(), options); }).find("--repeats") !=
          std::string::npos);
  }
  ::setenv("GPUSIM_STUB_FAIL", "cuLaunchKernel", 1);
  Gpu gpu(GPUSIM_STUB_CUDA, 0);
  CHECK(message([&] {
          run_benchmarks(gpu, stub.source(), quick("add.s32"));
        }).find("CUDA_ERROR_UNKNOWN (999)") != std::string::npos);
  ::unsetenv("GPUSIM_STUB_FAIL");
}

TEST_CASE("a source that ends early is an error") {
  SensorModel s = sensor();
  SimulatedDevice device;
  device.length = Seconds(0.3);
  SimulatedSource source(s, device);
  Gpu gpu(GPUSIM_STUB_CUDA, 0);
  CHECK_THROWS_AS(run_benchmarks(gpu, source, quick("add.s32")), Error);
}

}  // namespace
}  // namespace gpusim::power
