#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "device_sim/base/error.h"
#include "energy/power/attach/log_reader.h"
#include "energy/power/attach/timeline.h"
#include "energy/power/compare.h"
#include "energy/power/compare_report.h"
#include "energy/power/simulated.h"

namespace gpusim::power {
namespace {

Sample at(double time, double watts) { return {.time = Seconds(time), .power = Watts(watts)}; }

// Kernels of 30 ms at 150 W every 110 ms above 20 W, as a lagging sensor tells them.
struct Recording {
  Trace trace;
  std::vector<Interval> kernels;
  Curve truth;
};
Recording record(const SensorModel& sensor) {
  SimulatedDevice device;
  device.idle = Watts(20);
  device.kernel = {{Seconds(0), Watts(150)}, {Seconds(0.03), Watts(150)}};
  Recording r;
  for (int i = 0; i < 20; ++i) {
    const double begin = 0.5 + 0.1103 * i;
    device.starts.push_back(Seconds(begin));
    r.kernels.push_back({"k", Seconds(begin), Seconds(begin + 0.03)});
  }
  device.length = Seconds(3.5);
  SimulatedSource source(sensor, device);
  while (const auto s = source.poll()) {
    r.trace.samples.push_back(*s);
    source.sleep_until(s->time + Seconds(0.001));
  }
  r.truth = source.truth();
  return r;
}

double error(const NamedEnergies& n, Method m) {
  const auto& e = n.by_method[static_cast<size_t>(m)];
  REQUIRE(e);
  return std::abs(*e / *n.truth - 1);
}

TEST_CASE("a sensor without faults: methods that look inside agree with the truth") {
  SensorModel sensor;
  sensor.update_period = Seconds(0);
  sensor.has_counter = true;
  const Recording r = record(sensor);
  MethodOptions options;
  options.has_profile = true;
  const Comparison c = compare_methods(r.trace, r.kernels, options, &r.truth);
  const std::vector<NamedEnergies> names = by_name(c);
  REQUIRE(names.size() == 1);
  CHECK(names[0].count == 20);
  CHECK(names[0].truth->value() == doctest::Approx(20 * 0.03 * 150));
  for (Method m : {Method::kSynchronized, Method::kTrapezoid, Method::kOverlaid, Method::kCounter})
    CHECK(error(names[0], m) < 0.05);
  CHECK(c.idle.value() == doctest::Approx(20));
}

TEST_CASE("a lagging sensor misleads readings, and the correction helps") {
  SensorModel sensor;
  sensor.update_period = Seconds(0.002);
  sensor.lag = Seconds(0.03);
  const Recording r = record(sensor);
  MethodOptions options;
  options.has_profile = true;
  options.profile.capacitance = Seconds(0.03);
  options.profile.update_period = Seconds(0.002);
  const std::vector<NamedEnergies> names =
      by_name(compare_methods(r.trace, r.kernels, options, &r.truth));
  CHECK(error(names[0], Method::kSynchronized) > 0.2);
  CHECK(error(names[0], Method::kOneReading) > 0.2);
  CHECK(error(names[0], Method::kCorrected) < 0.05);
  CHECK(error(names[0], Method::kOverlaid) < 0.05);
}

TEST_CASE("Equation 2, and intervals without a reading") {
  Trace trace;
  for (int i = 0; i <= 10; ++i) trace.samples.push_back(at(i, i == 5 ? 40 : 10));
  const Comparison c = compare_methods(
      trace, {{"long", Seconds(3.5), Seconds(6.5)}, {"short", Seconds(8.2), Seconds(8.4)}}, {});
  CHECK(c.intervals[0].of(Method::kSynchronized).energy->value() ==
        doctest::Approx(3 * (10 + 40 + 10) / 3.0));
  CHECK(c.intervals[0].of(Method::kSynchronized).readings == 3);
  CHECK(c.intervals[0].of(Method::kOneReading).energy->value() == doctest::Approx(30));
  CHECK(c.intervals[1].of(Method::kSynchronized).energy->value() == doctest::Approx(2));
  CHECK(c.intervals[1].of(Method::kSynchronized).readings == 0);
  CHECK_FALSE(c.intervals[0].of(Method::kCounter).energy);
  CHECK_FALSE(c.intervals[0].of(Method::kCorrected).energy);
  CHECK(comparison_table(c).find("no reference here") != std::string::npos);
  const auto json = nlohmann::json::parse(comparison_json(c));
  CHECK(json["intervals"].size() == 2);
  CHECK(json["names"][0]["energy_J"]["counter"].is_null());
}

TEST_CASE("recordings that cannot be compared") {
  CHECK_THROWS_AS(compare_methods({}, {}, {}), Error);
  Trace trace;
  trace.samples = {at(0, 1)};
  CHECK_THROWS_AS(compare_methods(trace, {{"x", Seconds(2), Seconds(1)}}, {}), Error);
  const Comparison c =
      compare_methods(trace, {{"a", Seconds(0), Seconds(2)}, {"b", Seconds(1), Seconds(3)}}, {});
  REQUIRE(c.notes.size() == 1);
  CHECK(c.notes[0].find("overlap") != std::string::npos);
}

TEST_CASE("damaged logs are errors or shorter, never a crash") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "gpusim_power_gpu_test_logs";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::string log(sizeof(attach::Header), '\0');
  std::memcpy(log.data(), attach::kMagic, 8);
  const auto put32 = [&](size_t to, uint32_t v) { std::memcpy(log.data() + to, &v, 4); };
  const auto put64 = [&](size_t to, uint64_t v) { std::memcpy(log.data() + to, &v, 8); };
  put32(8, sizeof(attach::Record));
  put64(16, 3);
  log.resize(64 + 3 * 64);
  put32(64, 1);  // text 1: "k"
  put32(68, 1);
  put32(64 + 28, 1);
  log[64 + 32] = 'k';
  put32(128, 3);  // a kernel of that name
  put32(132, 1);
  put64(136, 1000000000);
  put64(144, 2000000000);
  const auto write = [&](const std::string& text) {
    const std::string path = folder / "1.log";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  };
  const attach::ProcessLog good = attach::read_log(write(log));
  REQUIRE(good.operations.size() == 1);
  CHECK(good.operations[0].name == "k");
  CHECK(good.operations[0].end.value() == 2);
  CHECK(good.unfinished == 1);
  const auto events = nlohmann::json::parse(attach::timeline_json({good}, {}, {}));
  // The process and the track of the GPU are named once each, as in gpusim's other traces.
  std::map<std::string, int> names;
  for (const auto& event : events["traceEvents"]) ++names[event["name"]];
  CHECK(names["process_name"] == 2);
  CHECK(names["thread_name"] == 1);
  CHECK(names["thread_sort_index"] == 1);
  CHECK(events["otherData"].contains("time"));
  CHECK_THROWS_AS(attach::read_log(write("GPSATT")), Error);
  CHECK_THROWS_AS(attach::read_log(write(std::string(200, 'x'))), Error);
  CHECK_THROWS_AS(attach::read_log(folder / "none.log"), Error);
  std::random_device device;
  const char* given = std::getenv("GPUSIM_SEED");
  const unsigned seed = given != nullptr ? static_cast<unsigned>(std::atol(given)) : device();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    std::string bad = log.substr(0, 8 + random() % (log.size() - 8));
    for (unsigned k = random() % 8; k > 0; --k)
      bad[8 + random() % (bad.size() - 7) - 1] ^= static_cast<char>(random());
    try {
      (void)attach::timeline_json({attach::read_log(write(bad))}, {}, {});
    } catch (const Error&) {
    }
  }
  fs::remove_all(folder);
}

TEST_CASE("names") {
  CHECK(attach::readable("_Z5heavyPii") == "heavy(int*, int)");
  CHECK(attach::readable("plain") == "plain");
  CHECK(attach::readable("_Znonsense") == "_Znonsense");
}

}  // namespace
}  // namespace gpusim::power
