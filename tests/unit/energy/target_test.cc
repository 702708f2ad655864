#include <nlohmann/json.hpp>

#include "energy/builtin_targets.h"
#include "energy/estimate.h"
#include "energy/model.h"
#include "helpers.h"

namespace gpusim::energy {
namespace {
using Json = nlohmann::ordered_json;

std::string builtin(const std::string& name) {
  for (const EmbeddedFile& file : builtin_target_files())
    if (file.name == name + ".json") return file.text;
  FAIL("no target file ", name);
  return {};
}

// The message about the template after `change`.
template <class F>
std::string refused(F change) {
  Json json = Json::parse(builtin("template"));
  change(json);
  return message_of([&] { parse_target(json.dump(), "mine.json"); });
}

TEST_CASE("all files of targets are built in, named after themselves and unharmed") {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : builtin_target_files()) {
    names.push_back(file.name);
    const auto targets = parse_target(file.text, file.name);
    REQUIRE(!targets.empty());
    const std::string base = targets[0].name.substr(0, targets[0].name.find('/'));
    CHECK(base + ".json" == file.name);
    for (const Target& t : targets) {
      CHECK(!t.conditions.empty());
      for (const ClassCost& cost : t.classes) {
        CHECK(cost.energy.value > Joules(0));
        CHECK(cost.energy.low <= cost.energy.value);
        CHECK(cost.energy.value <= cost.energy.high);
        CHECK(cost.is_substitute == !cost.reason.empty());
      }
    }
  }
  CHECK(names.size() == 8);
}

TEST_CASE("targets are found by name, variant, list, and all at once") {
  CHECK(find_targets("fermi").size() == 1);
  CHECK(one_target("ptx-volta").name == "ptx-volta/mtsm-o3");
  CHECK(one_target("ptx-volta/papi-o0").name == "ptx-volta/papi-o0");
  CHECK(find_targets("ptx-volta/all").size() == 4);
  const auto three = find_targets("fermi,ptx-pascal,et-soc1");
  REQUIRE(three.size() == 3);
  CHECK(three[1].name == "ptx-pascal/mtsm-o3");
  CHECK(three[2].name == "et-soc1");
  CHECK(find_targets("all").size() == 3 + 16);
  const std::string unknown = message_of([] { find_targets("fermi,kepler"); });
  CHECK(mentions(unknown, "unknown energy target kepler"));
  CHECK(mentions(unknown, "et-soc1"));
  CHECK(mentions(message_of([] { find_targets("fermi,,et-soc1"); }), "empty name"));
  CHECK(mentions(message_of([] { find_targets(""); }), "no name"));
  CHECK(mentions(message_of([] { find_targets("./none.json"); }), "No such file"));
}

TEST_CASE("a bad target file is refused with the place of what is wrong") {
  CHECK(mentions(message_of([] { parse_target("{", "mine.json"); }), "mine.json: not JSON"));
  CHECK(mentions(message_of([] { parse_target("[]", "mine.json"); }), "a list of 0 targets"));
  CHECK(mentions(refused([](Json& j) { j["schema"] = "other"; }), "not an energy target"));
  CHECK(mentions(refused([](Json& j) { j["classes"].erase("other"); }), "class other is missing"));
  CHECK(mentions(refused([](Json& j) { j["measurements"]["one"]["unit"] = "W"; }),
                 "mine.json.measurements.one: W is a unit of power, but energy is wanted"));
  CHECK(mentions(refused([](Json& j) { j["measurements"]["one"]["unit"] = "eV"; }),
                 "unknown unit eV"));
  CHECK(mentions(refused([](Json& j) { j["measurements"]["one"]["value"] = -1; }),
                 "finite and not negative"));
  CHECK(mentions(refused([](Json& j) { j["measurements"]["one"]["value"] = "1"; }),
                 "must be a number"));
  CHECK(mentions(refused([](Json& j) { j["measurements"]["one"]["source"] = "x"; }),
                 "source \"x\" is not among"));
  CHECK(mentions(refused([](Json& j) { j["measurements"]["one"]["high"] = 0.5; }), "must not be"));
  CHECK(mentions(refused([](Json& j) { j["measurements"]["one"]["vaule"] = 1; }),
                 "unknown key \"vaule\""));
  CHECK(mentions(refused([](Json& j) { j["clases"] = 1; }), "unknown key \"clases\""));
  CHECK(mentions(refused([](Json& j) { j["classes"]["other"].erase("reason"); }),
                 "\"reason\" is missing"));
  CHECK(mentions(refused([](Json& j) { j["classes"]["other"]["substitute"] = "two"; }),
                 "there is no measurement \"two\""));
  CHECK(mentions(refused([](Json& j) { j["timing"]["clock"]["unit"] = "ms"; }),
                 "frequency is wanted"));
  CHECK(mentions(refused([](Json& j) { j["timing"]["cycles_per_instruction"].erase("other"); }),
                 "\"other\" is missing"));
  CHECK(mentions(refused([](Json& j) { j["operating_states"][0].erase("hold"); }),
                 "\"hold\" is missing"));
  CHECK(mentions(refused([](Json& j) { j["transfer"]["bandwidth"]["value"] = 0; }), "above zero"));
  CHECK(mentions(refused([](Json& j) { j["uncertainty"]["relative"] = 5; }), "below 1"));
  CHECK(mentions(refused([](Json& j) { j["name"] = "a/b"; }), "without slash"));
  CHECK(refused([](Json&) {}).empty());
}

TEST_CASE("a missing class names its substitute and the reason") {
  const Target& t = one_target("ptx-volta");
  const ClassCost& memory = t.cost(InsnClass::kOffChipMemory);
  CHECK(memory.is_substitute);
  CHECK(memory.measurement == "int_add");
  CHECK(mentions(memory.reason, "no memory instructions"));
  CHECK(!t.cost(InsnClass::kFloatDivision).is_substitute);
}

TEST_CASE("a class of several rows takes their mean, and bounds that hold all of them") {
  const ClassCost& cost = one_target("et-soc1").cost(InsnClass::kIntegerArithmetic);
  CHECK(cost.energy.value.value() == doctest::Approx((9.2e-12 + 10.2e-12) / 2));
  CHECK(cost.energy.low.value() == doctest::Approx(5.7e-12));
  CHECK(cost.energy.high.value() == doctest::Approx(46.9e-12));  // a multiplication
}

TEST_CASE("the C table has the same energies for every target and variant") {
  for (const Target& t : builtin_targets()) {
    ClassCounts counts{};
    uint64_t classes[kInsnClassCount];
    for (size_t c = 0; c < kInsnClassCount; ++c) classes[c] = counts[c] = 1000 + 7 * c;
    double joules = 0;
    REQUIRE(gpusim_energy_joules(t.name.c_str(), classes, &joules) == 0);
    CHECK(joules == doctest::Approx(dynamic_energy(t, counts, false).value.value()).epsilon(1e-12));
    CHECK(mentions(gpusim_energy_target_names(), t.name));
  }
  uint64_t none[kInsnClassCount] = {};
  double joules = 1;
  CHECK(gpusim_energy_joules("ptx-volta", none, &joules) == 0);
  CHECK(joules == 0);
  CHECK(gpusim_energy_joules("kepler", none, &joules) == -1);
}

}  // namespace
}  // namespace gpusim::energy
