#include "energy/accelwattch/tuning.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "device_sim/base/error.h"

using namespace gpusim;
using namespace gpusim::accelwattch;

namespace {

uint64_t seed_from_env_or_random() {
  const char* text = std::getenv("GPUSIM_SEED");
  return text ? std::strtoull(text, nullptr, 0) : std::random_device{}();
}

// Kernels whose measured power is 30 W and the components times their true factors.
Sheet made_up(const std::vector<std::string>& components, const std::vector<double>& truth,
              size_t kernels, double noise, std::mt19937_64& random) {
  std::uniform_real_distribution<double> watts(0, 20);
  std::normal_distribution<double> error(1, noise);
  Sheet s;
  s.source = "s.csv";
  s.components = components;
  s.components.emplace_back("CONSTP");
  for (size_t k = 0; k < kernels; ++k) {
    SheetKernel row{"", fmt::format("k{}", k), k + 2, {}, {}, {}};
    double sum = 30;
    for (const double x : truth) {
      row.component.emplace_back(watts(random));
      sum += x * row.component.back().value();
    }
    row.component.emplace_back(30);
    row.measured = Watts(sum * (noise > 0 ? error(random) : 1));
    row.model = row.component_sum();
    s.kernels.push_back(row);
  }
  return s;
}

double factor(const TuneResult& r, const std::string& component) {
  for (const TunedFactor& f : r.factors)
    if (f.component == component) return f.factor;
  return NAN;
}

FactorState state(const TuneResult& r, const std::string& component) {
  for (const TunedFactor& f : r.factors)
    if (f.component == component) return f.state;
  return FactorState::kUnused;
}

}  // namespace

TEST_CASE("true factors are found again, in either objective") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 random(seed);
  const std::vector<double> truth = {0.5, 2, 7, 0.05};
  const Sheet s = made_up({"INTP", "FPUP", "RFP", "DRAMP"}, truth, 40, 0, random);
  for (const bool relative : {true, false}) {
    const TuneResult r = tune(s, {.relative = relative});
    for (size_t c = 0; c < truth.size(); ++c)
      CHECK(r.factors[c].factor == doctest::Approx(truth[c]).epsilon(1e-5));
    CHECK(r.after_accuracy.mape < 1e-3);
    CHECK(r.solution.kkt.worst() < 1e-9);
    CHECK(r.inseparable.empty());
  }
}

TEST_CASE("bounds and orders hold, and are reported") {
  std::mt19937_64 random(1);
  const Sheet s = made_up({"INTP", "FPUP", "DPUP", "TEXP"}, {3, 1, 5, 0.01}, 60, 0.01, random);
  TuneOptions o{.lower = 0.1, .orders = paper_orders(s)};
  REQUIRE(o.orders.size() == 2);
  const TuneResult r = tune(s, o);
  CHECK(factor(r, "INTP") == doctest::Approx(factor(r, "FPUP")));
  CHECK(state(r, "INTP") == FactorState::kHeld);
  CHECK(r.factors[0].held_by == std::vector<std::string>{"INTP <= FPUP"});
  CHECK(factor(r, "TEXP") == doctest::Approx(0.1));
  CHECK(state(r, "TEXP") == FactorState::kAtLower);
  CHECK(state(r, "DPUP") == FactorState::kFree);
  CHECK(r.solution.kkt.worst() < 1e-9);
  o.orders = {parse_order("DPUP <= 2")};
  CHECK(factor(tune(s, o), "DPUP") == doctest::Approx(2));
}

TEST_CASE("columns of zeros keep their start, equal columns are named") {
  std::mt19937_64 random(2);
  Sheet s = made_up({"A", "B", "C"}, {2, 3, 1}, 30, 0.001, random);
  for (SheetKernel& k : s.kernels) {
    k.component[2] = Watts(0);
    k.component[1] = k.component[0] * 2;
  }
  const TuneResult r = tune(s, {.start = {{"C", 4.5}}});
  CHECK(factor(r, "C") == doctest::Approx(4.5));
  CHECK(state(r, "C") == FactorState::kUnused);
  REQUIRE(r.inseparable.size() == 1);
  CHECK(r.inseparable[0] == std::vector<std::string>{"A", "B"});
  CHECK(r.solution.kkt.worst() < 1e-9);
}

TEST_CASE("fewer kernels than components") {
  std::mt19937_64 random(3);
  const Sheet s = made_up({"A", "B", "C", "D"}, {1, 2, 1, 1}, 2, 0, random);
  const TuneResult r = tune(s, {});
  CHECK(r.inseparable.size() == 2);
  CHECK(r.after_accuracy.mape < 1e-3);
  CHECK(std::isinf(r.condition));
}

TEST_CASE("the linear term as printed halves what dynamic power explains") {
  std::mt19937_64 random(4);
  Sheet s = made_up({"A"}, {2}, 20, 0, random);
  for (SheetKernel& k : s.kernels) {  // without constant power
    k.measured = k.component[0] * 2 + Watts(1e-9);
    k.component[1] = Watts();
  }
  CHECK(factor(tune(s, {}), "A") == doctest::Approx(2));
  CHECK(factor(tune(s, {.linear_term_as_printed = true}), "A") == doctest::Approx(1));
}

TEST_CASE("contradictions are named, nonsense is refused") {
  std::mt19937_64 random(5);
  const Sheet s = made_up({"A", "B"}, {2, 1}, 20, 0, random);
  const auto error = [&](const TuneOptions& o) -> std::string {
    try {
      tune(s, o);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(error({.orders = {parse_order("A <= 0.5 B"), parse_order("A >= 3"),
                          parse_order("B <= 5")}}) ==
        "no factors satisfy all constraints; these contradict each other: A <= 0.5 B, A >= 3, B <= "
        "5");
  CHECK(error({.orders = {parse_order("A <= X")}}) ==
        "s.csv: order A <= X: there is no dynamic component X");
  CHECK(error({.lower = 2, .upper = 1}) ==
        "factors between 2 and 1: the bounds must be ordered and not negative");
  for (const char* text : {"", "A", "A <=", "<= B", "A < B", "A <= -2 B", "A <= 2 3 B", "A >= -1"})
    CHECK_THROWS_AS(parse_order(text), Error);
  CHECK(parse_order("A >= 2 B").text() == "B <= 0.5 A");
  CHECK(parse_order("TEXP>=0.2").text() == "TEXP >= 0.2");
}

TEST_CASE("the code's orders compare energies per access") {
  Sheet s;
  s.components = {"INTP", "FPUP", "FP_MULP", "TENSORP"};
  const auto orders = code_orders(s, {{"INTP", 2}, {"FPUP", 3}, {"FP_MULP", 4}, {"TENSORP", 60}});
  REQUIRE(orders.size() == 2);
  CHECK(orders[0].text() == "INTP <= 1.5 FPUP");
  CHECK(orders[1].text() == "FP_MULP <= 15 TENSORP");
}

TEST_CASE("leaving out shows what tuning on few kernels is worth") {
  std::mt19937_64 random(6);
  const Sheet s = made_up({"A", "B"}, {2, 1}, 12, 0.05, random);
  const TuneResult r = tune(s, {});
  CHECK(leave_one_out(s, {}).mape > r.after_accuracy.mape);
}

TEST_CASE("constant, static and idle power from files") {
  std::string frequencies = "workload,frequency_MHz,power_W\n",
              lanes = "mix,lanes,frequency_GHz,power_W\n";
  for (double f = 0.4; f < 1.5; f += 0.2) {
    frequencies += fmt::format("a,{},{}\n", f * 1000, 40 * f * f * f + 20 * f + 32.5);
    frequencies += fmt::format("b,{},{}\n", f * 1000, 10 * f * f * f + 8 * f + 32.5);
    for (const double y : {1.0, 8.0, 16.0, 24.0, 32.0})
      lanes +=
          fmt::format("int_mul,{},{},{}\n", y, f,
                      y * f * f * f + f * (10 + (y <= 16 ? y - 1 : 7.5 + 0.5 * (y - 17))) + 32.5);
  }
  const ConstantFit fit =
      fit_constant_power(read_frequency_curves(parse_csv(frequencies, "f.csv")));
  CHECK(fit.constant.value() == doctest::Approx(32.5));
  const auto mixes = fit_static_power(parse_csv(lanes, "l.csv"), fit.constant, Hertz(1e9));
  REQUIRE(mixes.size() == 1);
  CHECK(mixes[0].lanes.category.form == LaneForm::kHalfWarp);
  CHECK(mixes[0].lanes.category.first_lane.value() == doctest::Approx(10));
  CHECK(mixes[0].lanes.category.added_lane.value() == doctest::Approx(1));
  const IdleFit idle = fit_idle_power(
      parse_csv("workload,active_sms,power_W\nx,80,110\nx,40,80\n", "i.csv"), 80, Watts(30));
  CHECK(idle.per_sm.value() == doctest::Approx(0.25));
  CHECK_THROWS_AS(read_frequency_curves(parse_csv("workload,frequency_MHz,power_mW\na,1,1\n", "f")),
                  Error);
  CHECK_THROWS_AS(
      read_frequency_curves(parse_csv("workload,frequency_MHz,power_W\na,1.4e9,1\n", "f")), Error);
  CHECK_THROWS_AS(fit_static_power(parse_csv("mix,lanes,frequency_GHz,power_W\nx,33,1,1\n", "l"),
                                   Watts(30), {}),
                  Error);
}
