#include "host/sweep/scaling.h"

#include <doctest/doctest.h>

#include <cmath>

#include "device_sim/base/student.h"

namespace gpusim::sweep {
namespace {

std::vector<WorkPoint> work_of(double serial, std::vector<uint32_t> cores) {
  std::vector<WorkPoint> points;
  for (const uint32_t n : cores) points.push_back({n, 1e9 / amdahl(serial, n)});
  return points;
}

TEST_CASE("a curve made by Amdahl's law gives its serial share back") {
  for (const double serial : {0.0, 1e-6, 0.01, 0.3, 1.0}) {
    INFO("serial share " << serial);
    const auto curve = strong_speed_ups(work_of(serial, {1, 2, 4, 64, 1024, 65536}));
    REQUIRE(curve.size() == 6);
    CHECK(curve[0].speed_up == doctest::Approx(1));
    CHECK(curve[5].efficiency == doctest::Approx(amdahl(serial, 65536) / 65536));
    const auto fit = fit_amdahl(curve);
    REQUIRE(fit);
    CHECK(fit->share == doctest::Approx(serial).epsilon(1e-6));
    CHECK(fit->deviation < 1e-9);
    CHECK(fit->uncertainty < 1e-6);
  }
}

TEST_CASE("scatter makes the serial share uncertain by as much") {
  auto points = work_of(0.05, {1, 2, 4, 8, 16, 32, 64, 128});
  double sign = 1;
  for (WorkPoint& p : points) p.work *= 1 + 0.04 * (sign = -sign);
  const auto fit = fit_amdahl(strong_speed_ups(points));
  REQUIRE(fit);
  CHECK(fit->uncertainty > 0.001);
  CHECK(std::abs(fit->share - 0.05) < 2 * fit->uncertainty + 0.005);
  CHECK(fit->deviation > 0.02);
}

TEST_CASE("a program that gets slower has a serial share of 1 at most") {
  const auto fit = fit_amdahl(strong_speed_ups({{1, 100}, {2, 150}, {4, 300}, {8, 900}}));
  REQUIRE(fit);
  CHECK(fit->share == 1);
  CHECK(fit->deviation > 0.25);
}

TEST_CASE("weak scaling: efficiency and Gustafson's law") {
  const auto perfect = weak_speed_ups({{1, 10}, {16, 10}, {256, 10}});
  CHECK(perfect[2].speed_up == doctest::Approx(256));
  CHECK(perfect[2].efficiency == doctest::Approx(1));
  CHECK(fit_gustafson(perfect)->share == doctest::Approx(0));
  std::vector<WorkPoint> points;
  for (const uint32_t n : {1u, 2u, 8u, 64u, 4096u})
    points.push_back({n, n * 50.0 / gustafson(0.2, n)});
  CHECK(fit_gustafson(weak_speed_ups(points))->share == doctest::Approx(0.2).epsilon(1e-6));
}

TEST_CASE("curves that start with more than one core, points without work, too few points") {
  const auto curve = strong_speed_ups({{2, 0}, {4, 100}, {8, 50}});
  REQUIRE(curve.size() == 2);
  CHECK(curve[0].speed_up == doctest::Approx(4));
  CHECK(curve[1].speed_up == doctest::Approx(8));
  CHECK_FALSE(fit_amdahl(strong_speed_ups({{1, 10}, {2, 6}})));
  CHECK_FALSE(fit_amdahl(strong_speed_ups({{1, 10}})));
  CHECK_FALSE(fit_amdahl({}));
  CHECK_FALSE(fit_gustafson({}));
  CHECK(strong_speed_ups({}).empty());
}

TEST_CASE("medians and quantiles") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(student_t_95(1) == doctest::Approx(12.706));
  CHECK(student_t_95(1000) == doctest::Approx(1.962).epsilon(1e-3));
}

}  // namespace
}  // namespace gpusim::sweep
