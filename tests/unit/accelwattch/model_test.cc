#include "energy/accelwattch/model.h"

#include <doctest/doctest.h>

#include <set>

#include "device_sim/base/error.h"
#include "energy/accelwattch/components.h"

using namespace gpusim;
using namespace gpusim::accelwattch;

namespace {

KernelActivity quiet(const Model& m) {
  KernelActivity k{.suite = {}, .name = "k", .time = Seconds(1e-3)};
  k.counts.assign(m.chip->counters.size(), 0.0);
  return k;
}

std::string message(const std::string& text) {
  try {
    parse_model(text, "m.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the built-in model") {
  const Model m = find_model("gv100/hw");
  CHECK(m.chip->sms == 80);
  CHECK(m.chip->clock == Hertz(1447e6));
  CHECK(m.chip->constant == Watts(32.32522272));
  const std::set<std::string> has(m.chip->components.begin(), m.chip->components.end());
  for (const ComponentInfo& c : all_components().subspan(0, kDynamicComponents))
    CHECK(has.count(std::string(c.name)) == 1);
  CHECK(find_model("gv100").variant == "sass-sim");
  CHECK_THROWS_WITH(find_model("gv100/x"),
                    "model gv100 has no variant x; it has: sass-sim, hw, hybrid, ptx-sim, "
                    "sass-sim-ones, ptx-sim-ones");
  CHECK_THROWS_AS(find_model("g100"), Error);
  CHECK_THROWS_AS(find_model("absent.json"), Error);
}

TEST_CASE("a chip at rest takes constant and idle power") {
  const Model m = find_model("gv100");
  const PowerBreakdown p = power(m, quiet(m));
  CHECK(p.constant == m.chip->constant);
  CHECK(p.statics == Watts());
  CHECK(p.idle.value() == doctest::Approx(80 * 0.28279166));
}

TEST_CASE("equation 12: counts, lanes and SMs") {
  const Model m = find_model("gv100/sass-sim");
  KernelActivity k = quiet(m);
  const auto fp = static_cast<size_t>(m.chip->find_counter("FP_ACC"));
  const auto add = static_cast<size_t>(m.chip->find_counter("INT_ACC"));
  k.counts[fp] = 1e9;
  k.counts[add] = 2e9;
  k.mix = mix_of(*m.chip, k.counts);
  CHECK(k.mix == Mix::kIntFp);
  k.active_sms = 60;
  k.lanes = 32;
  const PowerBreakdown p = power(m, k);
  const auto watts = [&](const PowerBreakdown& b, const char* c) {
    return b.dynamic[static_cast<size_t>(m.chip->find_component(c))].value();
  };
  CHECK(watts(p, "FPUP") == doctest::Approx(1e9 * 18.8535e-12 * 0.529670751 / 1e-3));
  CHECK(watts(p, "INTP") == doctest::Approx(2e9 * 2 * 0.230936e-12 * 14.98768151 / 1e-3));
  CHECK(p.statics.value() == doctest::Approx((18.6179906 + 31 * 0.645228013) * 60 / 80));
  CHECK(p.idle.value() == doctest::Approx(20 * 0.28279166));

  SUBCASE("equation 2: V^2 for dynamic, V for static power, nothing for the board") {
    KernelActivity slow = k;
    slow.voltage = 0.8;
    const PowerBreakdown q = power(m, slow);
    CHECK(watts(q, "FPUP") == doctest::Approx(0.64 * watts(p, "FPUP")));
    CHECK(q.statics.value() == doctest::Approx(0.8 * p.statics.value()));
    CHECK(q.idle.value() == doctest::Approx(0.8 * p.idle.value()));
    CHECK(q.constant == p.constant);
    CHECK(power(m, slow, {.voltage_moves_constant = true}).constant.value() ==
          doctest::Approx(0.64 * p.constant.value()));
  }
  SUBCASE("16 nm as published for Pascal") {
    const PowerBreakdown q = power(m, k, {.technology = m.chip->technology(16)});
    CHECK(watts(q, "FPUP") == doctest::Approx(0.82 / 0.77 * watts(p, "FPUP")));
    CHECK(q.idle.value() == doctest::Approx(107.9 / 28 * p.idle.value()));
    CHECK(q.statics == p.statics);
    CHECK(q.constant == p.constant);
    CHECK(m.chip->technology(12).dynamic == 1);
    CHECK_THROWS_WITH(m.chip->technology(7),
                      "model gv100 has no scaling to 7 nm; it knows 12 nm (its own), 16 nm");
  }
  SUBCASE("temperature moves leakage only") {
    const double f = temperature_factor(85, 65, 20);
    CHECK(f == doctest::Approx(2));
    const PowerBreakdown q = power(m, k, {.temperature_factor = f});
    CHECK(q.statics.value() == doctest::Approx(2 * p.statics.value()));
    CHECK(q.idle.value() == doctest::Approx(2 * p.idle.value()));
    CHECK(watts(q, "FPUP") == watts(p, "FPUP"));
    CHECK_THROWS_AS(temperature_factor(85, 65, 0), Error);
  }
  SUBCASE("what cannot be") {
    KernelActivity bad = k;
    bad.time = Seconds();
    CHECK_THROWS_AS(power(m, bad), Error);
    bad = k;
    bad.counts[fp] = -1;
    CHECK_THROWS_WITH(power(m, bad), "kernel k: counter FP_ACC is -1");
    bad = k;
    bad.active_sms = 81;
    CHECK_THROWS_AS(power(m, bad), Error);
    bad = k;
    bad.lanes = 40;
    CHECK_THROWS_AS(power(m, bad), Error);
  }
}

TEST_CASE("model files that are wrong") {
  CHECK(message("{") == "m.json: not JSON, at line 1, column 2");
  CHECK(message("{}") == "m.json: \"schema\" is missing");
  CHECK(message("{\"schema\": \"other\"}") ==
        "m.json: \"schema\" is other; this version reads gpusim-accelwattch-1");
}
