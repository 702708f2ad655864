// The simulated sensor against what its parts are by definition.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "device_sim/base/error.h"
#include "energy/power/updates.h"
#include "tests/unit/power/helpers.h"

namespace gpusim::power {
namespace {

SensorModel ideal() { return {.update_period = Seconds(0), .poll = Seconds(0.001)}; }

TEST_CASE("a curve's values and energy") {
  const Curve c({{Seconds(1), Watts(10)},
                 {Seconds(2), Watts(10)},
                 {Seconds(2), Watts(30)},
                 {Seconds(4), Watts(50)}});
  CHECK(c.at(Seconds(0)).value() == 10);
  CHECK(c.at(Seconds(2)).value() == 30);
  CHECK(c.at(Seconds(3)).value() == 40);
  CHECK(c.at(Seconds(9)).value() == 50);
  CHECK(c.energy(Seconds(0), Seconds(5)).value() == doctest::Approx(20 + 80 + 50));
  CHECK_THROWS_AS(Curve({{Seconds(1), Watts(1)}, {Seconds(0), Watts(1)}}), Error);
}

TEST_CASE("appending cuts what was to come") {
  Curve c({{Seconds(0), Watts(10)}, {Seconds(10), Watts(110)}});
  c.append({{Seconds(5), Watts(200)}, {Seconds(6), Watts(200)}, {Seconds(6), Watts(1)}});
  CHECK(c.at(Seconds(4.9999)).value() == doctest::Approx(60).scale(0).epsilon(0.001));
  CHECK(c.at(Seconds(5)).value() == 200);
  CHECK(c.at(Seconds(7)).value() == 1);
  CHECK(c.energy(Seconds(0), Seconds(8)).value() == doctest::Approx(175 + 200 + 2));
}

TEST_CASE("the capacitor follows its differential equation") {
  // dM/dt = (P - M) / C, stepped finely, against the closed form.
  SensorModel sensor = ideal();
  sensor.lag = Seconds(0.3);
  SimulatedDevice device;
  device.curve = {{Seconds(0), Watts(50)},   {Seconds(0.5), Watts(50)}, {Seconds(0.5), Watts(200)},
                  {Seconds(1.1), Watts(80)}, {Seconds(1.5), Watts(80)}, {Seconds(1.5), Watts(20)}};
  const SimulatedSource source(sensor, device);
  const double h = 1e-5;
  double m = 50;
  for (int i = 0; i < 250000; ++i) {
    const double t = i * h;
    if (i % 10000 == 0)
      CHECK(source.smoothed_at(Seconds(t)).value() == doctest::Approx(m).scale(0).epsilon(2e-3));
    m += h / 0.3 * (source.truth().at(Seconds(t + h / 2)).value() - m);
  }
}

TEST_CASE("the window is a mean, gain and offset a line, the quantum a grid") {
  SensorModel sensor = ideal();
  sensor.window = Seconds(0.1);
  sensor.gain = 1.1;
  sensor.offset = Watts(-2);
  SimulatedDevice device;
  device.curve = {{Seconds(0), Watts(50)}, {Seconds(1), Watts(50)}, {Seconds(1), Watts(150)}};
  CHECK(SimulatedSource(sensor, device).smoothed_at(Seconds(1.05)).value() ==
        doctest::Approx(1.1 * 100 - 2));
  sensor.quantum = Watts(0.5);
  SimulatedSource source(sensor, device);
  for (int i = 0; i < 1500; ++i) {
    const double w = source.poll()->power.value();
    CHECK(w == doctest::Approx(std::round(w * 2) / 2));
  }
}

TEST_CASE("values repeat until the sensor updates them") {
  SensorModel sensor{.update_period = Seconds(0.02), .noise = Watts(0.5), .poll = Seconds(0.0005)};
  SimulatedSource source(sensor, {.seed = 7});
  const Trace trace = record_until(source, Seconds(10));
  std::set<double> values;
  for (const Sample& s : trace.samples) values.insert(s.power.value());
  CHECK(values.size() >= 498);
  CHECK(values.size() <= 502);
  const auto period = measure_update_period(trace.samples);
  REQUIRE(period);
  CHECK(period->period.value() == doctest::Approx(0.02).scale(0).epsilon(0.001));
}

TEST_CASE("polls are jittered and stall") {
  SensorModel sensor{.poll = Seconds(0.001),
                     .stall_chance = 0.01,
                     .stall_length = Seconds(0.13),
                     .poll_jitter = Seconds(0.0002)};
  SimulatedSource source(sensor, {.seed = 3});
  const Trace trace = record_until(source, Seconds(20));
  double shortest = 1, longest = 0;
  for (size_t i = 1; i < trace.samples.size(); ++i) {
    const double step = (trace.samples[i].time - trace.samples[i - 1].time).value();
    shortest = std::min(shortest, step);
    longest = std::max(longest, step);
  }
  CHECK(shortest > 0);
  CHECK(longest > 0.13);
  CHECK(longest / shortest > 100);
}

TEST_CASE("a simulation with a length ends, or dies") {
  SimulatedDevice device{.length = Seconds(0.1)};
  SimulatedSource source({}, device);
  CHECK(record_until(source, Seconds(1)).duration() < Seconds(0.1));
  device.fails_at_end = true;
  SimulatedSource dying({}, device);
  CHECK_THROWS_AS(record_until(dying, Seconds(1)), Error);
}

TEST_CASE("a kernel that starts replaces the tail of the one before") {
  SimulatedDevice device = k20_device();
  device.kernel = {{Seconds(0), Watts(158)}, {Seconds(1), Watts(158)}};
  SimulatedSource source(k20_sensor(), device);
  source.sleep_until(Seconds(2));
  const Seconds end = source.run(device.kernel);
  source.sleep_until(end + Seconds(1));
  const Seconds again = source.run(device.kernel);
  source.sleep_until(again + Seconds(20));
  CHECK(source.truth().at(Seconds(1)).value() == 25);
  CHECK(source.truth().energy(Seconds(2), Seconds(3)).value() == doctest::Approx(158));
  CHECK(source.truth().energy(Seconds(3), Seconds(4)).value() == doctest::Approx(52.5));
  CHECK(source.truth().energy(Seconds(4), Seconds(5)).value() == doctest::Approx(158));
  CHECK(source.truth().at(Seconds(30)).value() == 25);
}

TEST_CASE("files of the simulated sensor say what is wrong with them") {
  const auto message = [](const char* text) {
    try {
      parse_simulated(text, "x.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("{") == "x.json: not JSON, at line 1, column 2");
  CHECK(message(R"({"sensor": {"update_period": 1}})").find("unknown key") != std::string::npos);
  CHECK(message("{}").find("what it draws is expected") != std::string::npos);
  CHECK(message(R"({"device": {}})").find("what it draws is expected") != std::string::npos);
  CHECK(message(R"({"sensor": {"gain": "x"}})").find("must be a number") != std::string::npos);
  CHECK(message(R"({"device": {"curve": [[1, 2], [0, 2]]}})").find("time falls") !=
        std::string::npos);
  CHECK(message(R"({"device": {"starts_s": [1]}})").find("no \"kernel\"") != std::string::npos);
  CHECK(message(R"({"sensor": {"preset": "k20"}, "device": {"preset": "k20",
                  "kernel": [[0, 158], [1, 158]], "starts_s": [1, 3], "length_s": 9}})")
            .empty());
}

}  // namespace
}  // namespace gpusim::power
