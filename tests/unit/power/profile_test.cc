// Profiles of short kernels through a slow simulated sensor (Lang and Ruenger), against the truth.
#include "energy/power/profile.h"

#include <doctest/doctest.h>

#include "device_sim/base/child_process.h"
#include "device_sim/base/error.h"
#include "energy/power/chart.h"
#include "energy/power/command_workload.h"
#include "energy/power/recorder.h"
#include "tests/unit/power/helpers.h"

namespace gpusim::power {
namespace {

// The C2075 of the paper: a value every 20 ms, noisy enough that two seldom are the same.
SensorModel c2075() {
  return {.update_period = Seconds(0.02),
          .noise = Watts(0.4),
          .quantum = Watts(0.001),
          .poll = Seconds(0.0001),
          .poll_jitter = Seconds(0.00002)};
}

// 6 ms: 170 W, a dip to 120 W, 170 W again.
SimulatedDevice six_milliseconds() {
  return {.idle = Watts(76),
          .kernel = {{Seconds(0), Watts(170)},
                     {Seconds(0.003), Watts(170)},
                     {Seconds(0.003), Watts(120)},
                     {Seconds(0.004), Watts(120)},
                     {Seconds(0.004), Watts(170)},
                     {Seconds(0.006), Watts(170)}},
          .seed = 11};
}

constexpr double kTrueJoules = 0.005 * 170 + 0.001 * 120;

TEST_CASE("the sampling interval is measured first") {
  SensorModel sensor = c2075();
  sensor.update_jitter = Seconds(0.0001);
  SimulatedSource source(sensor, six_milliseconds());
  const UpdatePeriod t = measure_interval(source, {.interval_changes = 1000});
  CHECK(t.period.value() == doctest::Approx(0.02).scale(0).epsilon(0.001));
  CHECK(t.intervals > 900);
}

TEST_CASE("Algorithm 1 recovers a 6 ms kernel through a 20 ms sensor") {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    SimulatedDevice device = six_milliseconds();
    device.seed = seed;
    SimulatedSource source(c2075(), device);
    SimulatedWorkload workload(source);
    const PowerProfile p = profile_offline(source, workload, {.seed = seed});
    CAPTURE(seed);
    CAPTURE(profile_text(p));
    CHECK(p.kernel.value() == doctest::Approx(0.006).scale(0).epsilon(0.02));
    CHECK(p.energy.value() == doctest::Approx(kTrueJoules).scale(0).epsilon(0.03));
    REQUIRE(p.rise);
    REQUIRE(p.fall);
    CHECK(std::abs(p.rise->value()) < 0.0005);
    CHECK(std::abs(p.fall->value() - 0.006) < 0.0005);
    CHECK(p.baseline.value() == doctest::Approx(76).scale(0).epsilon(0.01));
    CHECK(p.plateau.value() == doctest::Approx(170).scale(0).epsilon(0.01));
    CHECK(std::abs((p.energy.value() - kTrueJoules)) < 4 * p.energy_error.value() + 0.003);
    // The dip is seen.
    double dip = 0, n = 0;
    for (const ProfilePoint& x : p.points)
      if (x.time > Seconds(0.0032) && x.time < Seconds(0.0038)) dip += x.power.value(), n += 1;
    REQUIRE(n > 0);
    CHECK(dip / n == doctest::Approx(120).scale(0).epsilon(0.05));
  }
}

TEST_CASE("a launch that takes time moves the edges") {
  SimulatedSource source(c2075(), six_milliseconds());
  SimulatedWorkload workload(source, Seconds(0.004));
  const PowerProfile p = profile_offline(source, workload, {.runs = 300, .delay = Seconds(0.005)});
  CHECK(std::abs(p.rise->value() - 0.004) < 0.0005);
  CHECK(std::abs(p.fall->value() - 0.010) < 0.0005);
  // Whatever the delay, what lies above the baseline is the kernel's.
  CHECK(p.above_baseline.value() ==
        doctest::Approx(kTrueJoules - 0.006 * 76).scale(0).epsilon(0.03));
}

TEST_CASE("Algorithm 2, on-line, with clocks that drift") {
  SensorModel sensor = c2075();
  sensor.update_drift = Seconds(0.00002);
  SimulatedSource source(sensor, six_milliseconds());
  SimulatedWorkload workload(source);
  const PowerProfile p = profile_online(source, workload, Seconds(0.03), {.runs = 600, .seed = 5});
  CAPTURE(profile_text(p));
  CHECK(p.energy.value() == doctest::Approx(kTrueJoules).scale(0).epsilon(0.03));
  REQUIRE(p.rise);
  CHECK(std::abs(p.rise->value()) < 0.0005);
  CHECK(p.synchronisations > 30);
}

TEST_CASE("without synchronisation a drifting clock blurs the on-line profile") {
  SensorModel sensor = c2075();
  sensor.update_drift = Seconds(0.0001);
  const auto scatter = [&](double resync, double beta) {
    SimulatedSource source(sensor, six_milliseconds());
    SimulatedWorkload workload(source);
    const PowerProfile p = profile_online(source, workload, Seconds(0.03),
                                          {.runs = 600, .resync = Seconds(resync), .beta = beta});
    double wrong = 0, n = 0;
    for (const ProfilePoint& x : p.points)
      if (x.time > Seconds(0.0005) && x.time < Seconds(0.0055))
        wrong += x.power < Watts(100), n += 1;
    return wrong / n;
  };
  CHECK(scatter(0.2, 0.8) < 0.05);
  CHECK(scatter(1e9, -1e9) > 0.1);
}

TEST_CASE("a kernel that is too long for the on-line form") {
  SimulatedDevice device = six_milliseconds();
  device.kernel = {{Seconds(0), Watts(100)}, {Seconds(0.05), Watts(100)}};
  SimulatedSource source(c2075(), device);
  SimulatedWorkload workload(source);
  CHECK_THROWS_AS(profile_online(source, workload, Seconds(0.03), {}), Error);
}

TEST_CASE("a sensor whose value never changes has no interval") {
  SensorModel sensor = c2075();
  sensor.noise = Watts(0);
  SimulatedSource source(sensor, six_milliseconds());
  SimulatedWorkload workload(source);
  CHECK_THROWS_AS(profile_offline(source, workload, {.most_waiting = Seconds(2)}), Error);
  // It can be given.
  const PowerProfile p = profile_offline(
      source, workload, {.runs = 400, .interval = Seconds(0.02), .most_waiting = Seconds(2)});
  CHECK(std::abs(p.rise->value()) < 0.0005);
}

TEST_CASE("a profile from a recording with intervals") {
  SimulatedSource source(c2075(), six_milliseconds());
  Trace trace;
  trace.source = "recorded";
  for (int run = 0; run < 300; ++run) {
    const Seconds begin = source.now();
    const Seconds end = source.run(source.kernel());
    trace.intervals.push_back({"k", begin, end});
    const Trace more = record_until(source, begin + Seconds(0.047 + 0.0013 * (run % 17)));
    trace.samples.insert(trace.samples.end(), more.samples.begin(), more.samples.end());
  }
  const Trace again = parse_trace(trace_csv(trace), "x.csv");
  const PowerProfile p = profile_from_trace(again, "k", {});
  CHECK(p.energy.value() == doctest::Approx(kTrueJoules).scale(0).epsilon(0.03));
  CHECK(std::abs(p.fall->value() - 0.006) < 0.0005);
  CHECK_THROWS_AS(profile_from_trace(again, "other", {}), Error);
}

TEST_CASE("recordings: energy with its uncertainty, sources that die or end") {
  SimulatedDevice device = six_milliseconds();
  device.curve = {{Seconds(0), Watts(50)}, {Seconds(1), Watts(50)}, {Seconds(1), Watts(150)}};
  device.length = Seconds(2);
  SensorModel sensor = c2075();
  sensor.has_counter = true;
  SimulatedSource source(sensor, device);
  const Trace trace = record(source, {.rate = Hertz(1000)}, [] { return false; }, {});
  CHECK(!trace.is_partial);
  const EnergySummary e = summarize_energy(trace, std::nullopt, Watts(0));
  CHECK(e.energy.value() == doctest::Approx(200).scale(0).epsilon(0.02));
  REQUIRE(e.uncertainty);
  CHECK(std::abs(e.energy.value() - 200) < 4 * e.uncertainty->value());
  REQUIRE(e.counted);
  CHECK((*e.counted / e.counted_for).value() == doctest::Approx(e.mean.value()).epsilon(0.02));
  CHECK(e.counted->value() == doctest::Approx(200).scale(0).epsilon(0.02));
  CHECK(e.peak.value() == doctest::Approx(150).scale(0).epsilon(0.02));
  CHECK(e.update_period->value() == doctest::Approx(0.02).scale(0).epsilon(0.05));
  CHECK(summarize_energy(trace, std::nullopt, Watts(5)).uncertainty->value() ==
        doctest::Approx(10).scale(0).epsilon(0.05));
  // A reading that never changes says nothing of its error.
  SimulatedDevice still{.length = Seconds(1)};
  SimulatedSource steady({}, still);
  const Trace same = record(steady, {.rate = Hertz(100)}, [] { return false; }, {});
  CHECK(!summarize_energy(same, std::nullopt, Watts(0)).uncertainty);
  CHECK(summarize_energy(same, std::nullopt, Watts(5)).uncertainty);

  device.fails_at_end = true;
  SimulatedSource dying(sensor, device);
  const Trace partial = record(dying, {.rate = Hertz(1000)}, [] { return false; }, {});
  CHECK(partial.is_partial);
  CHECK(partial.samples.size() > 1500);
  REQUIRE(partial.notes.size() == 1);
  CHECK(partial.notes[0].find("the source failed after") == 0);
}

TEST_CASE("commands: status, signals, and what cannot be run") {
  CHECK(ChildProcess({"sh", "-c", "exit 3"}).wait() == 3);
  CHECK(ChildProcess({"sh", "-c", "kill -TERM $$"}).wait() == 128 + 15);
  CHECK_THROWS_WITH_AS(ChildProcess({"/no/such/program"}),
                       "/no/such/program: No such file or directory", Error);
  CommandWorkload fails({"sh", "-c", "exit 1"});
  fails.start();
  CHECK_THROWS_AS(fails.finish(), Error);
}

TEST_CASE("charts are whole and escape names") {
  ChartSeries s{.name = "<a & b>"};
  for (int i = 0; i < 20000; ++i) s.points.emplace_back(Seconds(i * 1e-3), Watts(i % 100));
  const std::string svg = power_chart("t \"<x>\"", {s}, {{Seconds(5), "here"}});
  CHECK(svg.find("&lt;a &amp; b&gt;") != std::string::npos);
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.size() < 200000);
  CHECK(power_chart("empty", {}, {}).ends_with("</svg>\n"));
}

}  // namespace
}  // namespace gpusim::power
