#include "energy/schedule.h"

#include "helpers.h"

namespace gpusim::energy {
namespace {

Step kernel(double seconds, double watts) {
  return {Step::Kind::kKernel, "k", Seconds(seconds), Watts(watts)};
}
Step pause(double seconds) { return {Step::Kind::kPause, "idle", Seconds(seconds), Watts(0)}; }

// Idle 100 W for 10 s, 50 W for 5 s, then 20 W.
Target three_states() {
  Target t;
  t.name = std::string("t");  // GCC 12 warns of the literal
  t.states = {{.name = "high", .idle_power = Watts(100), .hold = Seconds(10)},
              {.name = "middle", .idle_power = Watts(50), .hold = Seconds(5)},
              {.name = "low", .idle_power = Watts(20)}};
  return t;
}

void check_is_whole(const PowerCurve& curve, double seconds) {
  Joules sum;
  Seconds at;
  for (const Segment& s : curve.segments) {
    CHECK(s.begin.value() == doctest::Approx(at.value()));
    CHECK(s.end > s.begin);
    at = s.end;
    sum += s.energy();
  }
  CHECK(at.value() == doctest::Approx(seconds));
  CHECK(sum.value() == doctest::Approx(curve.energy.value()));
}

TEST_CASE("after work the states fall one by one") {
  const Target t = three_states();
  const PowerCurve curve = power_curve(t, {pause(3), kernel(2, 40), pause(30)});
  check_is_whole(curve, 35);
  REQUIRE(curve.segments.size() == 5);
  CHECK(curve.segments[0].state == "low");  // nothing has run yet
  CHECK(curve.segments[1].power == Watts(140));
  CHECK(curve.segments[2].state == "high");
  CHECK((curve.segments[2].end - curve.segments[2].begin).value() == doctest::Approx(10));
  CHECK(curve.segments[3].state == "middle");
  CHECK((curve.segments[3].end - curve.segments[3].begin).value() == doctest::Approx(5));
  CHECK(curve.segments[4].state == "low");
  CHECK(curve.energy.value() == doctest::Approx(3 * 20 + 2 * 140 + 10 * 100 + 5 * 50 + 15 * 20));
}

TEST_CASE("pauses in a row are one, and work in between starts the tail again") {
  const Target t = three_states();
  const PowerCurve two = power_curve(t, {kernel(1, 0), pause(6), pause(6)});
  const PowerCurve one = power_curve(t, {kernel(1, 0), pause(12)});
  CHECK(two.energy.value() == doctest::Approx(one.energy.value()));
  const PowerCurve again = power_curve(t, {kernel(1, 0), pause(6), kernel(1, 0), pause(6)});
  CHECK(again.energy.value() == doctest::Approx(14 * 100));
  check_is_whole(again, 14);
}

TEST_CASE("a kernel that begins in the tail raises the state at once") {
  const PowerCurve curve =
      power_curve(three_states(), {kernel(1, 5), pause(12), kernel(1, 5), pause(1)});
  CHECK(curve.segments.back().state == "high");
  CHECK(curve.energy.value() == doctest::Approx(105 + 1000 + 100 + 105 + 100));
}

TEST_CASE("a target without states gives the curve above idle") {
  const Target t;
  const PowerCurve curve = power_curve(t, {kernel(2, 40), pause(3)});
  CHECK(curve.energy.value() == doctest::Approx(80));
  CHECK(curve.duration() == Seconds(5));
  CHECK(curve.average().value() == doctest::Approx(16));
  CHECK(power_curve(t, {}).energy == Joules(0));
}

TEST_CASE("schedules are read, and refused where they make no sense") {
  const Target& t = one_target("template");
  const auto read = [&](const std::string& text) {
    return parse_schedule(t, text, "plan.json", ".");
  };
  const auto steps = read(
      R"({"steps": [{"pause": 500, "unit": "ms"}, {"transfer": 1, "unit": "GB", "count": 2}]})");
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].duration.value() == doctest::Approx(0.5));
  CHECK(steps[1].duration.value() == doctest::Approx(2.00002));
  CHECK(steps[1].power == Watts(5));
  const auto refused = [&](const std::string& text) { return message_of([&] { read(text); }); };
  CHECK(mentions(refused("{}"), "\"steps\" is missing"));
  CHECK(mentions(refused(R"({"steps": []})"), "not empty"));
  CHECK(mentions(refused(R"({"steps": [{}]})"), "plan.json.steps[0]: a step is"));
  CHECK(mentions(refused(R"({"steps": [{"pause": 1, "unit": "J"}]})"), "time is wanted"));
  CHECK(mentions(refused(R"({"steps": [{"pause": -1, "unit": "s"}]})"), "not negative"));
  CHECK(mentions(refused(R"({"steps": [{"kernel": "none.json"}]})"), "No such file"));
  CHECK(mentions(refused(R"({"steps": [{"pause": 1, "unit": "s", "n": 1}]})"), "unknown key"));
}

}  // namespace
}  // namespace gpusim::energy
