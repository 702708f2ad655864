// Reading and writing recordings, good and bad ones.
#include "energy/power/trace.h"

#include <doctest/doctest.h>

#include "device_sim/base/error.h"
#include "energy/power/meter.h"

namespace gpusim::power {
namespace {

std::string message(const std::string& text, TimeOrder order = TimeOrder::kRefuse) {
  try {
    parse_trace(text, "t.csv", order);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a trace comes back as it was written") {
  Trace trace;
  trace.source = "nvml:0 (Some, GPU)";
  trace.is_partial = true;
  trace.notes = {"a note"};
  trace.intervals = {{"my kernel", Seconds(0.25), Seconds(0.5)}};
  for (int i = 0; i < 5; ++i)
    trace.samples.push_back({.time = Seconds(i * 0.1),
                             .power = Watts(50 + i),
                             .instant = Watts(51),
                             .energy_total = Joules(i),
                             .core_clock = Hertz(1.41e9),
                             .temperature_c = 40,
                             .throttle_reasons = 4});
  const Trace again = parse_trace(trace_csv(trace), "x.csv");
  CHECK(again.source == trace.source);
  CHECK(again.is_partial);
  CHECK(again.notes == trace.notes);
  REQUIRE(again.intervals.size() == 1);
  CHECK(again.intervals[0].name == "my kernel");
  CHECK(again.intervals[0].end.value() == 0.5);
  REQUIRE(again.samples.size() == 5);
  CHECK(again.samples[3].time.value() == doctest::Approx(0.3));
  CHECK(again.samples[3].power.value() == 53);
  CHECK(again.samples[3].instant->value() == 51);
  CHECK(!again.samples[3].average);
  CHECK(again.samples[3].core_clock->value() == 1.41e9);
  CHECK(*again.samples[3].throttle_reasons == 4);
  CHECK(trace_csv(again) == trace_csv(trace));
}

TEST_CASE("logs of nvidia-smi") {
  const Trace t = parse_trace(
      "timestamp, utilization.gpu [%], pstate, clocks.current.sm [MHz], power.draw [W], "
      "power.draw.instant [W]\n"
      "2023/07/08 19:27:36.359, 50, P0, 1800, 126.97, 126.89\n"
      "2023/07/08 19:27:36.459, 50, P0, 1800 MHz, 127.00 W, [N/A]\r\n",
      "log");
  REQUIRE(t.samples.size() == 2);
  CHECK(t.duration().value() == doctest::Approx(0.1));
  CHECK(t.samples[0].time.value() == doctest::Approx(1688844456.359));
  CHECK(t.samples[0].utilization == doctest::Approx(0.5));
  CHECK(t.samples[0].core_clock->value() == 1.8e9);
  CHECK(t.samples[1].core_clock->value() == 1.8e9);
  CHECK(t.samples[0].instant->value() == 126.89);
  CHECK(!t.samples[1].instant);
}

TEST_CASE("units in headers are obeyed") {
  const Trace t = parse_trace("time_ms;power [mW]\n0;50000\n1500;60000\n", "u");
  CHECK(t.samples[1].time.value() == 1.5);
  CHECK(t.samples[1].power.value() == 60);
  CHECK(message("time_s,power [hp]\n0,1\n").find("the unit hp is not known") != std::string::npos);
}

TEST_CASE("bad files are refused with their line") {
  CHECK(message("") == "t.csv: no header line: the file is empty");
  CHECK(message("time_s,power_W\n") == "t.csv: no sample in the file");
  CHECK(message("a,b\n1,2\n").find("t.csv, line 1: no column for time") == 0);
  CHECK(message("time_s,a\n1,2\n").find("no column for power") != std::string::npos);
  CHECK(message("time_s,power_W,power_W\n1,2,3\n").find("several columns") != std::string::npos);
  CHECK(message("time_s,power_W\n1,2\n2\n3,4\n") ==
        "t.csv, line 3: 1 values, but the header has 2");
  CHECK(message("time_s,power_W\n1,x\n").find("x is not a number") != std::string::npos);
  CHECK(message("time_s,power_W\n1,nan\n").find("not a number") != std::string::npos);
  CHECK(message("time_s,power_W\n1,-5\n").find("negative") != std::string::npos);
  CHECK(message("time_s,power_W\n,5\n").find("no time") != std::string::npos);
  CHECK(message("timestamp,power.draw [W]\n2023-07-08,5\n").find("is expected") !=
        std::string::npos);
  CHECK(message("timestamp,power.draw [W]\n2023/13/08 10:00:00,5\n").find("is expected") !=
        std::string::npos);
}

TEST_CASE("unsorted times are refused, or sorted when asked to") {
  const std::string text = "time_s,power_W\n0,1\n2,3\n1,2\n3,4\n";
  CHECK(message(text).find("t.csv, line 4: time falls by 1 s") == 0);
  const Trace t = parse_trace(text, "t.csv", TimeOrder::kSort);
  REQUIRE(t.samples.size() == 4);
  CHECK(t.samples[1].power.value() == 2);
  CHECK(t.notes.size() == 1);
}

TEST_CASE("duplicate times, gaps and missing powers become notes") {
  const Trace t =
      parse_trace("time_s,power_W\n0,1\n0,2\n0.1,3\n0.2,\n0.3,4\n0.4,5\n9999,6\n", "t.csv");
  REQUIRE(t.samples.size() == 5);
  CHECK(t.samples[0].power.value() == 2);
  REQUIRE(t.notes.size() == 3);
  CHECK(t.notes[0].find("1 of 7 lines had no power (the first: line 5)") == 0);
  CHECK(t.notes[1].find("1 samples had the time") == 0);
  CHECK(t.notes[2].find("1 gaps of more than 1 s") == 0);
}

TEST_CASE("a recording that was cut off is still one") {
  const Trace t = parse_trace("time_s,power_W\n0,1\n1,2\n2", "t.csv");
  CHECK(t.samples.size() == 2);
  CHECK(t.is_partial);
}

TEST_CASE("trapezoids") {
  std::vector<Sample> s;
  for (const auto& [t, w] : {std::pair(0.0, 10.0), {1.0, 20.0}, {3.0, 0.0}})
    s.push_back({.time = Seconds(t), .power = Watts(w)});
  CHECK(trapezoid(s).value() == doctest::Approx(15 + 20));
  CHECK(trapezoid(s, Seconds(0.5), Seconds(2)).value() == doctest::Approx(8.75 + 15));
  CHECK(trapezoid(s, Seconds(-1), Seconds(4)).value() == doctest::Approx(10 + 35));
  CHECK(trapezoid(s, Seconds(2), Seconds(2)).value() == 0);
}

TEST_CASE("records of a meter") {
  std::string data;
  const auto word = [&](int w) {
    data += static_cast<char>(w & 0xff);
    data += static_cast<char>(w >> 8 & 0xff);
  };
  // Two records 29,335 ticks (10 ms) apart across a wrap; rails of 1000 and 100 steps, one of them
  // with a current of -1 step.
  for (const int ticks : {60000, 60000 + 29335 - 65536}) {
    word(ticks);
    for (const int amperes : {100, -1, 0, 0}) {
      word(1000 << 4);
      word((amperes & 0xfff) << 4);
    }
  }
  const Trace t = parse_meter(data, Seconds(5), "m.bin");
  REQUIRE(t.samples.size() == 2);
  CHECK(t.samples[0].time.value() == 5);
  CHECK(t.duration().value() == doctest::Approx(0.01));
  CHECK(t.samples[0].power.value() == doctest::Approx(7.568 * (4.88 - 0.0488)));
  CHECK(parse_meter(data + "x", Seconds(5), "m.bin").is_partial);
  CHECK_THROWS_AS(parse_meter("", Seconds(0), "m.bin"), Error);
}

}  // namespace
}  // namespace gpusim::power
