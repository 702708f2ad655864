#include "energy/model.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "helpers.h"

namespace gpusim::energy {
namespace {

ClassCounts counts_of(std::initializer_list<std::pair<InsnClass, uint64_t>> list) {
  ClassCounts counts{};
  for (const auto& [c, n] : list) counts[static_cast<size_t>(c)] = n;
  return counts;
}

Activity activity_of(const ClassCounts& counts, uint32_t cores = 1) {
  Activity a;
  a.name = "test";
  a.cores = cores;
  a.classes = counts;
  return a;
}

uint64_t seed_from_env_or_random() {
  const char* given = std::getenv("GPUSIM_SEED");
  return given ? std::stoull(given) : std::random_device{}();
}

TEST_CASE("MaxPower x AccessRate (6.7 - 6.9) and count x energy are the same") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (const char* name : {"fermi", "et-soc1", "cortex-a7", "template"}) {
    const Target& t = one_target(name);
    for (int i = 0; i < 100; ++i) {
      ClassCounts counts{};
      for (size_t c = 0; c < kInsnClassCount; ++c)
        counts[c] = random() % 3 == 0 ? 0 : random() % 1'000'000'000;
      const double units = 1 + static_cast<double>(random() % 2000);
      const PowerByAccessRate p = power_by_access_rate(t, counts, true, units);
      double rates = 0;
      for (const ComponentPower& c : p.components) rates += c.access_rate;
      if (p.total_cycles > 0) CHECK(rates == doctest::Approx(1));
      CHECK((p.power * p.time).value() ==
            doctest::Approx(dynamic_energy(t, counts, true).value.value()).epsilon(1e-9));
    }
  }
  const auto p = power_by_access_rate(one_target("fermi"), ClassCounts{}, true, 8);
  CHECK(p.power == Watts(0));
  CHECK(mentions(
      message_of([] { power_by_access_rate(one_target("ptx-volta"), ClassCounts{}, true, 1); }),
      "no timing"));
}

TEST_CASE("no component of the Fermi board alone takes more than its power limit leaves") {
  const Target& t = one_target("fermi");
  for (size_t c = 0; c < kInsnClassCount; ++c) {
    INFO(kInsnClassNames[c]);
    ClassCounts counts{};
    counts[c] = 1;
    const auto p = power_by_access_rate(t, counts, true, t.timing->units);
    CHECK(p.components[c].access_rate == doctest::Approx(1));
    CHECK(p.power < Watts(131));
    CHECK(p.power > Watts(30));
  }
}

TEST_CASE("transfers take latency and size over bandwidth (6.10)") {
  const Transfer t{.power = Watts(40), .latency = Seconds(1e-5), .bandwidth = BytesPerSecond(6e9)};
  CHECK(transfer_time(t, Bytes(0)).value() == doctest::Approx(1e-5));
  CHECK(transfer_time(t, Bytes(6e9)).value() == doctest::Approx(1.00001));
  CHECK(transfer_energy(t, Bytes(6e9), 2).value() == doctest::Approx(80.0008));
}

TEST_CASE("time follows the cores that work, and the longest of them") {
  const Target& t = one_target("template");  // 1 GHz, a cycle each, 64 cores
  Activity a = activity_of(counts_of({{InsnClass::kIntegerArithmetic, 6400}}), 64);
  CHECK(estimate(t, a, {}).time->value() == doctest::Approx(100e-9));
  a.cores = 16;
  CHECK(estimate(t, a, {}).time->value() == doctest::Approx(400e-9));
  a.cores = 1000;  // take turns on the 64
  CHECK(estimate(t, a, {}).time->value() == doctest::Approx(100e-9));
  a.cores = 3;
  a.per_core = {{"0", counts_of({{InsnClass::kIntegerArithmetic, 6300}})},
                {"1", counts_of({{InsnClass::kIntegerArithmetic, 100}})},
                {"2", {}}};
  for (const ActivityPart& core : a.per_core) a.longest_cores.add(core.classes);
  const Estimate e = estimate(t, a, {});
  CHECK(e.time->value() == doctest::Approx(6300e-9));
  CHECK(e.active_cores == 2);
  CHECK(e.idle_cores == 1);
  CHECK(e.per_core[0].energy.value.value() == doctest::Approx(6300e-9));
  CHECK(e.per_core[2].energy.value == Joules(0));
}

TEST_CASE("of all cores those are kept that may take longest, whatever a class takes") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    const int classes = 1 + static_cast<int>(random() % 4);
    std::vector<ClassCounts> cores(1 + random() % 200);
    LongestCores longest;
    uint32_t active = 0;
    for (ClassCounts& core : cores) {
      for (int c = 0; c < classes; ++c) core[c] = random() % 20;
      active += instructions_of(core) > 0;
      longest.add(core);
    }
    CHECK(longest.active_cores() == active);
    CHECK(longest.list().size() <= cores.size());
    for (int trial = 0; trial < 20; ++trial) {
      std::array<double, 4> cycles{};
      for (double& c : cycles) c = static_cast<double>(random() % 1000);
      const auto most = [&](const std::vector<ClassCounts>& list) {
        double result = 0;
        for (const ClassCounts& core : list)
          result =
              std::max(result, std::inner_product(cycles.begin(), cycles.end(), core.begin(), 0.0));
        return result;
      };
      CHECK(most(longest.list()) == most(cores));
    }
  }
}

TEST_CASE(
    "cores that differ in every way are kept up to a limit, the ones with most instructions") {
  LongestCores longest;
  for (uint64_t i = 1; i <= 3000; ++i)
    longest.add(counts_of({{InsnClass::kIntegerArithmetic, i}, {InsnClass::kOther, 6000 - 2 * i}}));
  CHECK(longest.active_cores() == 3000);
  REQUIRE(longest.list().size() == LongestCores::kMost);
  CHECK(instructions_of(longest.list().front()) == 5999);
}

TEST_CASE("a GPU is full only with enough threads") {
  const Target& t = one_target("fermi");  // 8 multiprocessors, warps of 32, 22 cycles, 1645 MHz
  const auto time = [&](uint64_t each, uint32_t threads) {
    const ClassCounts counts = counts_of({{InsnClass::kIntegerArithmetic, each * threads}});
    return estimate(t, activity_of(counts, threads), {}).time->value() * 1.645e9;
  };
  CHECK(time(1000, 1) == doctest::Approx(22000));
  CHECK(time(1000, 8 * 32) == doctest::Approx(22000));
  // 0.0208 cycles each on 8 multiprocessors: 22 cycles hide behind 8,462 threads.
  CHECK(time(1000, 8000) == doctest::Approx(22000));
  CHECK(time(1000, 16000) == doctest::Approx(16000 * 1000 * 0.0208 / 8));

  // A warp keeps one multiprocessor busy: 32 divisions of 2 cycles each are more than 22.
  const ClassCounts divisions = counts_of({{InsnClass::kDoubleDivision, 3200}});
  CHECK(estimate(t, activity_of(divisions, 32), {}).time->value() * 1.645e9 ==
        doctest::Approx(6400));
  // The longest thread counts, not the mean.
  Activity a = activity_of(counts_of({{InsnClass::kIntegerArithmetic, 1064}}), 65);
  a.longest_cores.add(counts_of({{InsnClass::kIntegerArithmetic, 1000}}));
  a.longest_cores.add_covered(64);
  const Estimate e = estimate(t, a, {});
  CHECK(e.time->value() * 1.645e9 == doctest::Approx(22000));
  REQUIRE(e.remarks.size() == 1);
  CHECK(mentions(e.remarks[0], "65 threads do not fill the target"));
}

TEST_CASE("more cores than the target has are remarked upon") {
  const Target& t = one_target("template");  // 64 cores
  const ClassCounts counts = counts_of({{InsnClass::kOther, 6500}});
  CHECK(estimate(t, activity_of(counts, 64), {}).remarks.empty());
  const Estimate e = estimate(t, activity_of(counts, 65), {});
  REQUIRE(e.remarks.size() == 1);
  CHECK(mentions(e.remarks[0], "65 simulated cores, 64 of the target"));
}

TEST_CASE("the estimate adds dynamic, idle and transfer energy, with bounds") {
  const Target& t = one_target("template");  // 1 nJ +- 10 %, 10 W idle
  const Activity a = activity_of(counts_of({{InsnClass::kOther, 1'000'000'000}}), 1);
  const Estimate e =
      estimate(t, a, {.time = Seconds(2), .transfers = {{.size = Bytes(1e9), .count = 1}}});
  CHECK(e.dynamic.value.value() == doctest::Approx(1));
  CHECK(e.dynamic.low.value() == doctest::Approx(0.9));
  CHECK(e.dynamic.high.value() == doctest::Approx(1.1));
  CHECK(e.dynamic_power->value() == doctest::Approx(0.5));
  CHECK(e.transfer_energy->value() == doctest::Approx(5 * 1.00001));
  CHECK(e.idle_energy->value() == doctest::Approx(10 * 3.00001));
  CHECK(e.total.value.value() == doctest::Approx(1 + 5 * 1.00001 + 30.0001));
  CHECK(mentions(message_of([&] {
                   estimate(one_target("et-soc1"), a, {.time = {}, .transfers = {{Bytes(1), 1}}});
                 }),
                 "knows nothing of transfers"));
  CHECK(mentions(message_of([&] { estimate(t, Activity{}, {}); }), "empty"));
}

TEST_CASE("accesses that no cache model placed cost what the target says of them") {
  const Target& t = one_target("et-soc1");
  Activity a = activity_of(counts_of({{InsnClass::kOffChipMemory, 1000}}));
  CHECK(estimate(t, a, {}).dynamic.value.value() == doctest::Approx(13.0e-9));
  constexpr auto kOffChip = static_cast<size_t>(InsnClass::kOffChipMemory);
  CHECK(std::string(estimate(t, a, {}).classes[kOffChip].priced_as) == "unplaced_memory");
  a.memory_is_placed = true;
  CHECK(estimate(t, a, {}).dynamic.value.value() == doctest::Approx(1033e-9));
  CHECK(std::string(estimate(t, a, {}).classes[kOffChip].priced_as) == "off_chip_memory");
}

TEST_CASE("functions and lines are sorted by energy and add up to the run") {
  const Target& t = one_target("fermi");
  Activity a = activity_of(
      counts_of({{InsnClass::kIntegerArithmetic, 300}, {InsnClass::kDoubleDivision, 5}}));
  a.functions = {{"adds", counts_of({{InsnClass::kIntegerArithmetic, 300}})},
                 {"divides", counts_of({{InsnClass::kDoubleDivision, 5}})}};
  const Estimate e = estimate(t, a, {});
  REQUIRE(e.functions.size() == 2);
  CHECK(e.functions[0].name == "divides");
  CHECK((e.functions[0].energy.value + e.functions[1].energy.value).value() ==
        doctest::Approx(e.dynamic.value.value()));
}

}  // namespace
}  // namespace gpusim::energy
