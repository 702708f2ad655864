#include "energy/power_log.h"

#include "helpers.h"

namespace gpusim::energy {
namespace {

constexpr const char* kThesisLine =
    "15.7.2013 11:36:16,20,7W,89,8766315921014,151,9921875,136,605458408151";

TEST_CASE("the thesis's line is read, with commas as separators and decimal points") {
  const auto log = parse_power_log(std::string(kThesisLine) + "\r\n", "log");
  REQUIRE(log.size() == 1);
  CHECK(log[0].supplementary.value() == doctest::Approx(20.7));
  CHECK(log[0].efficiency == doctest::Approx(89.8766315921014));
  CHECK(log[0].in.value() == doctest::Approx(151.9921875));
  CHECK(log[0].out.value() == doctest::Approx(136.605458408151));
  CHECK(100 * (log[0].out / log[0].in) == doctest::Approx(log[0].efficiency).epsilon(1e-6));
}

TEST_CASE("numbers without a fraction are found by efficiency = out / in") {
  const auto log = parse_power_log(
      "15.7.2013 11:36:16,20W,90,100,90\n"
      "15.7.2013 11:36:17,20,5W,90,200,180\n"
      "15.7.2013 11:36:18,20W,90,5,200,181\n"
      "15.7.2013 11:36:19,20W,90,100,5,90,45\n",
      "log");
  REQUIRE(log.size() == 4);
  CHECK(log[0].in == Watts(100));
  CHECK(log[1].out == Watts(180));
  CHECK(log[2].efficiency == doctest::Approx(90.5));
  CHECK(log[3].in.value() == doctest::Approx(100.5));
  CHECK(log[3].out.value() == doctest::Approx(90.45));
  CHECK(log[3].time == Seconds(3));
}

TEST_CASE("energy is the integral over time, across midnight too") {
  const auto log = parse_power_log(
      "31.12.2013 23:59:58,0W,90,100,90\n"
      "1.1.2014 0:00:00,0W,90,200,180\n"
      "1.1.2014 0:00:01,10W,90,200,180\n",
      "log");
  const PowerSummary s = summarize(log);
  CHECK(s.duration == Seconds(3));
  CHECK(s.in.value() == doctest::Approx(300 + 200));
  CHECK(s.mean_in.value() == doctest::Approx(500.0 / 3));
  CHECK(s.supplementary.value() == doctest::Approx(5));
  CHECK(summarize(parse_power_log(kThesisLine, "log")).mean_in == Watts(151.9921875));
}

TEST_CASE("a bad log is refused with its line") {
  const auto refused = [](const std::string& text) {
    return message_of([&] { parse_power_log(text, "log"); });
  };
  CHECK(mentions(refused(""), "no sample"));
  CHECK(mentions(refused("date,power\n"), "log, line 1: it does not begin with a date"));
  CHECK(mentions(refused("31.2.2013 11:36:16,20,7W,89,1,151,9,136,6\n"), "date"));
  CHECK(mentions(refused("15.7.2013 25:36:16,20,7W,89,1,151,9,136,6\n"), "date"));
  CHECK(mentions(refused("15.7.2013 11:36:16\n"), "four numbers"));
  CHECK(mentions(refused("15.7.2013 11:36:16,20,7,89,1,151,9,136,6\n"), "four numbers"));
  CHECK(mentions(refused("15.7.2013 11:36:16,20,7W,89,8,151,9\n"), "four numbers"));
  CHECK(mentions(refused("15.7.2013 11:36:16,20,7W,50,0,151,9,136,6\n"), "efficiency"));
  CHECK(mentions(refused("15.7.2013 11:36:16,20,7W,nan,1,151,9,136,6\n"), "four numbers"));
  CHECK(mentions(refused(std::string(kThesisLine) + "\n15.7.2013 11:36:15,20W,90,100,90\n"),
                 "log, line 2: time runs backwards"));
}

}  // namespace
}  // namespace gpusim::energy
