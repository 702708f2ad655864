// Recordings of real sensors beside an external meter: GPU_Power_Benchmark (MIT licence), in
// $GPUSIM_SHARED/energy-data/gpu_power_benchmark. Their local log times are UTC+1.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "energy/power/calibrate.h"
#include "energy/power/correct.h"
#include "energy/power/meter.h"

namespace gpusim::power {
namespace {

std::filesystem::path data_folder() {
  const char* shared = std::getenv("GPUSIM_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : GPUSIM_DEFAULT_SHARED) / "energy-data" /
         "gpu_power_benchmark";
}

Calibration calibration_of(const std::string& gpu) {
  const auto folder = data_folder() / "Transient_Response" / (gpu + "_TR");
  Trace trace = read_trace((folder / "gpudata.csv").string());
  for (Sample& s : trace.samples) s.time -= Seconds(3600);
  return calibrate(trace, read_trace_or_meter(folder.string()), {});
}

TEST_CASE("the K40m's step response") {
  const Calibration c = calibration_of("K40m");
  CAPTURE(calibration_text(c));
  REQUIRE(c.reference);
  const ReferenceFit& r = *c.reference;
  CHECK(r.is_smoothed());
  CHECK(c.profile.update_period->value() == doctest::Approx(0.0154).scale(0).epsilon(0.01));
  CHECK(c.profile.capacitance.value() > 0.038);
  CHECK(c.profile.capacitance.value() < 0.048);
  // Where readings move: from about 4 W to at most 1.1 W.
  CHECK(r.raw_new_rms.value() > 3.5);
  CHECK(r.raw_new_rms.value() < 4.5);
  CHECK(r.best_slope().new_rms.value() < 1.1);
  CHECK(r.symmetric.new_rms.value() < 1.1);
  CHECK(r.best_slope().rms.value() < 1.1);
}

TEST_CASE("windows of newer GPUs") {
  // 25 ms of every 100 ms, and 1 s: what the data's authors found.
  const Calibration a100 = calibration_of("A100");
  CAPTURE(calibration_text(a100));
  CHECK(!a100.reference->is_smoothed());
  // One step up and one down tell that it is far below the update period, not much more.
  CHECK(a100.profile.window.value() > 0.015);
  CHECK(a100.profile.window.value() < 0.06);
  CHECK(a100.profile.update_period->value() == doctest::Approx(0.1).scale(0).epsilon(0.02));
  const Calibration rtx3090 = calibration_of("3090");
  CAPTURE(calibration_text(rtx3090));
  CHECK(!rtx3090.reference->is_smoothed());
  CHECK(rtx3090.profile.window.value() == doctest::Approx(1).scale(0).epsilon(0.15));
}

TEST_CASE("update periods of long logs") {
  for (const auto& [gpu, period] : {std::pair("V100", 0.02), {"A100", 0.1}, {"3090", 0.1}}) {
    CAPTURE(gpu);
    const Trace trace = read_trace(
        (data_folder() / "pwr_update_freq" / (std::string(gpu) + "_gpudata.csv")).string());
    const auto found = measure_update_period(trace.samples);
    REQUIRE(found);
    CHECK(found->period.value() == doctest::Approx(period).scale(0).epsilon(0.05));
  }
}

}  // namespace
}  // namespace gpusim::power

int main(int argc, char** argv) {
  if (!std::filesystem::exists(gpusim::power::data_folder())) {
    std::printf("skipped: %s is not there; set GPUSIM_SHARED to its folder\n",
                gpusim::power::data_folder().c_str());
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
