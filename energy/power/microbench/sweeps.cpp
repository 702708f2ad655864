#include "energy/power/microbench/sweeps.h"

#include <fmt/format.h>

#include <algorithm>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

constexpr uint32_t kLanes[] = {1, 8, 16, 24, 32};
constexpr unsigned kThreadsOfAnSm = 1024;  // in one block: two of them seldom share an SM

KernelSpec spec_of(const Mix& mix) {
  KernelSpec spec;
  for (std::string_view id : mix.instructions) spec.instructions.push_back(find_instruction(id));
  spec.shape.unroll = 60;
  return spec;
}

std::string joined(const std::string& earlier, const std::string& header, const std::string& rows,
                   const char* file) {
  if (earlier.empty()) return header + rows;
  if (!earlier.starts_with(header))
    throw Error(fmt::format("{}: the first line is not \"{}\": it is no file of ours", file,
                            header.substr(0, header.size() - 1)));
  return earlier + (earlier.ends_with('\n') ? "" : "\n") + rows;
}

}  // namespace

const std::vector<Mix>& mixes() {
  static const std::vector<Mix> all = {
      {"int_add", {"add.s32"}},
      {"int_mul", {"mul.lo.s32"}},
      {"int", {"add.s32", "mul.lo.s32", "xor.b32"}},
      {"int_fp", {"add.s32", "fma.f32", "mul.lo.s32", "add.f32"}},
      {"int_fp_dp", {"add.s32", "fma.f32", "fma.f64"}},
      {"int_fp_sfu", {"add.s32", "fma.f32", "sin.approx.f32"}},
      {"l1_only", {"ld.global.l1"}},
      {"shared_only", {"ld.shared"}},
      {"l2_only", {"ld.global.l2"}},
  };
  return all;
}

Sweeps run_sweeps(Gpu& gpu, PowerSource& source, const BenchOptions& options,
                  const Progress& progress) {
  Sweeps sweeps{.gpu = gpu.info(), .source = source.name()};
  BenchOptions whole = options;
  whole.is_single_thread = false;
  Bench bench(gpu, source, whole);
  const uint32_t sms = gpu.info().multiprocessors;
  bool knows_clock = true;
  const auto point = [&](const Mix& mix, uint32_t lanes, uint32_t active, LaunchShape shape) {
    if (progress) progress(fmt::format("{}: {} lanes, {} SMs", mix.name, lanes, active));
    const Bench::Kernel kernel{
        .spec = spec_of(mix), .optimization = 3, .shape = shape, .lanes = lanes};
    const SteadyPower p = bench.run(kernel);
    knows_clock &= p.clock.value() > 0;
    return SweepPoint{std::string(mix.name), lanes, active,
                      p.clock.value() > 0 ? p.clock : gpu.info().clock, p.power};
  };
  for (const Mix& mix : mixes())
    for (uint32_t lanes : kLanes)
      sweeps.lanes.push_back(point(mix, lanes, sms, bench.busy_shape(spec_of(mix))));
  for (const Mix& mix : {mixes()[0], mixes()[1]}) {
    std::vector<uint32_t> counts;
    for (uint32_t part = 1; part <= 5; ++part)
      counts.push_back(std::max(1u, part == 1 ? 1 : sms * (part - 1) / 4));
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    for (uint32_t active : counts)
      sweeps.sms.push_back(point(mix, 32, active, {active, kThreadsOfAnSm}));
  }
  if (!knows_clock)
    sweeps.notes.push_back(
        "The source of power does not tell clocks: the highest clock that the driver names stands "
        "in the files.");
  return sweeps;
}

SweepFiles sweep_files(const Sweeps& sweeps, const SweepFiles& earlier) {
  std::string constant, statics, idle;
  for (const SweepPoint& p : sweeps.lanes) {
    const double mhz = p.clock.value() / 1e6;
    statics += fmt::format("{},{},{:.3f},{:.6g}\n", p.mix, p.lanes, mhz, p.power.value());
    if (p.lanes == 32) constant += fmt::format("{},{:.3f},{:.6g}\n", p.mix, mhz, p.power.value());
  }
  for (const SweepPoint& p : sweeps.sms)
    idle += fmt::format("{}@{:.0f}MHz,{},{:.6g}\n", p.mix, p.clock.value() / 1e6, p.active_sms,
                        p.power.value());
  return {joined(earlier.constant, "workload,frequency_MHz,power_W\n", constant, "constant.csv"),
          joined(earlier.statics, "mix,lanes,frequency_MHz,power_W\n", statics, "static.csv"),
          joined(earlier.idle, "workload,active_sms,power_W\n", idle, "idle.csv")};
}

}  // namespace gpusim::power
