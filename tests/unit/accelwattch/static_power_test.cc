#include "energy/accelwattch/static_power.h"

#include <doctest/doctest.h>

#include "device_sim/base/error.h"
#include "energy/accelwattch/constant_power.h"

using namespace gpusim;
using namespace gpusim::accelwattch;

TEST_CASE("equation 4: every added lane takes the same") {
  const StaticCategory c = make_category(Watts(10), Watts(41), LaneForm::kLinear);
  CHECK(c.added_lane == Watts(1));
  CHECK(static_power_all_sms(c, 1) == Watts(10));
  CHECK(static_power_all_sms(c, 17) == Watts(26));
  CHECK(static_power_all_sms(c, 32) == Watts(41));
  CHECK(static_power_all_sms(c, 0) == Watts(10));
  CHECK(lanes_of(c, Watts(13), 40, 80) == 17);
  CHECK_THROWS_AS(static_power_all_sms(c, 33), Error);
  CHECK_THROWS_AS(static_power_all_sms(c, -1), Error);
  CHECK_THROWS_AS(static_power(c, 1, 81, 80), Error);
}

TEST_CASE("equation 5: full and partial half-warps take turns") {
  const StaticCategory c = make_category(Watts(10), Watts(40), LaneForm::kHalfWarp);
  CHECK(c.added_lane == Watts(2));
  CHECK(static_power_all_sms(c, 1) == Watts(10));
  CHECK(static_power_all_sms(c, 16) == Watts(40));
  CHECK(static_power_all_sms(c, 17) == Watts(25));
  CHECK(static_power_all_sms(c, 24) == Watts(32));
  CHECK(static_power_all_sms(c, 32) == Watts(40));
  CHECK(static_power_all_sms(c, 16.5) == Watts(32.5));
}

TEST_CASE("a sawtooth over lanes is taken for half-warps, a line for the linear form") {
  std::vector<LanePoint> line, saw;
  for (const double y : {1.0, 8.0, 16.0, 20.0, 24.0, 32.0}) {
    line.push_back(
        {y, static_power_all_sms(make_category(Watts(15), Watts(33), LaneForm::kLinear), y)});
    saw.push_back(
        {y, static_power_all_sms(make_category(Watts(15), Watts(33), LaneForm::kHalfWarp), y)});
  }
  CHECK(fit_lanes(line).category.form == LaneForm::kLinear);
  CHECK(fit_lanes(saw).category.form == LaneForm::kHalfWarp);
  CHECK(fit_lanes(saw).half_warp_rms_percent < 1e-9);
  line.pop_back();
  CHECK_THROWS_AS(fit_lanes(line), Error);
}

TEST_CASE("mixes") {
  CHECK(classify({}) == Mix::kLight);
  CHECK(classify({.l1 = true, .shared = true}) == Mix::kL1Only);
  CHECK(classify({.shared = true, .l2 = true}) == Mix::kSharedOnly);
  CHECK(classify({.l2 = true}) == Mix::kL2Only);
  CHECK(classify({.int_add = true, .l1 = true}) == Mix::kIntAdd);
  CHECK(classify({.int_mul = true}) == Mix::kIntMul);
  CHECK(classify({.int_add = true, .int_mul = true}) == Mix::kInt);
  CHECK(classify({.int_add = true, .fp = true}) == Mix::kIntFp);
  CHECK(classify({.int_mul = true, .fp = true, .dp = true}) == Mix::kIntFpDp);
  CHECK(classify({.int_add = true, .fp = true, .sfu = true}) == Mix::kIntFpSfu);
  CHECK(classify({.int_add = true, .fp = true, .tex = true}) == Mix::kIntFpTex);
  CHECK(classify({.int_add = true, .fp = true, .tensor = true}) == Mix::kIntFpTensor);
  CHECK(classify({.int_add = true, .fp = true, .dp = true, .sfu = true}) == Mix::kOther);
  CHECK(classify({.int_add = true, .dp = true}) == Mix::kOther);
  CHECK(classify({.fp = true}) == Mix::kOther);
}

TEST_CASE("equations 6 to 8: idle SMs") {
  // 30 W constant, 2 W per active SM, 0.25 W per idle one, 80 SMs.
  std::vector<IdlePoint> points;
  for (const double k : {80.0, 60.0, 1.0})
    points.push_back({k, Watts(30 + 2 * k + 0.25 * (80 - k))});
  CHECK(idle_sm_power(points, 80, Watts(30)).value() == doctest::Approx(0.25));
  CHECK(idle_sm_power(std::vector{Watts(0.2), Watts(0.45)}).value() == doctest::Approx(0.3));
  CHECK_THROWS_AS(idle_sm_power(std::vector{Watts(0.2), Watts(-0.1)}), Error);
  CHECK_THROWS_AS(idle_sm_power(std::vector<Watts>{}), Error);
  points.erase(points.begin());
  CHECK_THROWS_AS(idle_sm_power(points, 80, Watts(30)), Error);
}

TEST_CASE("constant power over several workloads") {
  std::vector<FrequencyCurve> curves;
  struct Shape {
    const char* name;
    double beta, tau;
  };
  for (const auto& [name, beta, tau] :
       {Shape{"int_mem", 40, 35}, Shape{"fp_add", 20, 25}, Shape{"nanosleep", 0.5, 9}}) {
    FrequencyCurve c{name, {}};
    for (double f = 0.2; f < 1.7; f += 0.1)
      c.points.push_back({Hertz(f * 1e9), Watts(beta * f * f * f + tau * f + 32.5)});
    curves.push_back(c);
  }
  const ConstantFit fit = fit_constant_power(curves);
  CHECK(fit.constant.value() == doctest::Approx(32.5));
  CHECK(fit.least.value() == doctest::Approx(32.5).epsilon(1e-4));
  CHECK(fit.curves[0].beta == doctest::Approx(40));
  CHECK(fit.curves[1].tau == doctest::Approx(25));
  CHECK(fit.curves[1].static_part(Hertz(1.4e9)).value() == doctest::Approx(35));
  CHECK(fit.pearson_r == doctest::Approx(1));
  CHECK(fit.mape < 1e-6);
  CHECK(fit_curve(curves[2], Watts(32.5)).tau == doctest::Approx(9));

  // A curve that bends the other way would want a negative share; none is given.
  FrequencyCurve bent{"bent", {}};
  for (double f = 0.2; f < 1.7; f += 0.1)
    bent.points.push_back({Hertz(f * 1e9), Watts(50 + 60 * f - 10 * f * f * f)});
  CHECK(fit_constant_power({bent}).curves[0].beta == doctest::Approx(0).epsilon(1e-6));

  curves[0].points.resize(2);
  CHECK_THROWS_AS(fit_constant_power(curves), Error);
  CHECK_THROWS_AS(fit_constant_power({}), Error);
  bent.points[0].power = Watts(-1);
  CHECK_THROWS_AS(fit_constant_power({bent}), Error);
}
