#include "energy/activity.h"

#include <nlohmann/json.hpp>

#include "energy/trace.h"
#include "helpers.h"

namespace gpusim::energy {
namespace {
using Json = nlohmann::ordered_json;

Json stats() {
  Json classes = Json::object();
  for (int c = 0; c < kInsnClassCount; ++c) classes[kInsnClassNames[c]] = c;
  return {{"isa", "aarch64"}, {"cores", 4}, {"guest_instructions", 105}, {"classes", classes}};
}

template <class F>
std::string refused(F change) {
  Json json = stats();
  change(json);
  return message_of([&] { parse_stats(json.dump(), "s.json"); });
}

TEST_CASE("statistics are read") {
  const Activity a = parse_stats(stats().dump(), "s.json");
  CHECK(a.cores == 4);
  CHECK(a.instructions() == 105);
  CHECK(a.classes[14] == 14);
  CHECK(!a.memory_is_placed);
}

TEST_CASE("bad statistics are refused with the reason") {
  CHECK(mentions(message_of([] { parse_stats("", "s.json"); }), "s.json: not JSON"));
  CHECK(mentions(refused([](Json& j) { j.erase("classes"); }), "\"classes\" is missing"));
  CHECK(mentions(refused([](Json& j) { j["classes"].erase("control_flow"); }),
                 "s.json.classes: \"control_flow\" is missing"));
  CHECK(mentions(refused([](Json& j) { j["classes"]["other"] = -1; }), "\"other\" is -1"));
  CHECK(mentions(refused([](Json& j) { j["classes"]["other"] = 1.5; }), "a count"));
  CHECK(mentions(refused([](Json& j) { j["classes"]["other"] = nullptr; }), "null; a count"));
  CHECK(mentions(refused([](Json& j) { j["classes"]["other"] = "NaN"; }), "a count"));
  CHECK(mentions(message_of([] { parse_stats("{\"classes\": {\"other\": NaN}}", "s.json"); }),
                 "not JSON"));
  CHECK(mentions(refused([](Json& j) { j["classes"]["tensor"] = 1; }),
                 "unknown instruction class \"tensor\""));
  CHECK(mentions(refused([](Json& j) { j["guest_instructions"] = 1; }), "add up to 105"));
  CHECK(mentions(refused([](Json& j) {
                   for (auto& count : j["classes"]) count = 0;
                   j["guest_instructions"] = 0;
                 }),
                 "the tallies are empty"));
  CHECK(mentions(refused([](Json& j) {
                   j["functions"] = {{{"function", "f"}, {"classes", {{"other", 1}}}}};
                 }),
                 "do not add up"));
  CHECK(mentions(refused([](Json& j) {
                   j["functions"] = {{{"name", "f"}}};
                 }),
                 "s.json.functions[0]: \"function\" is missing"));
  CHECK(refused([](Json&) {}).empty());
}

TEST_CASE("the longest cores are read, from their own list or from all cores") {
  Json json = stats();
  json["active_cores"] = 3;
  json["longest_cores"] = {{{"classes", {{"other", 9}}}}, {{"classes", {{"control_flow", 8}}}}};
  Activity a = parse_stats(json.dump(), "s.json");
  CHECK(a.longest_cores.active_cores() == 3);
  CHECK(a.longest_cores.list().size() == 2);
  CHECK(mentions(refused([&](Json& j) {
                   j = json;
                   j["active_cores"] = 1;
                 }),
                 "\"active_cores\" is 1, with 2 listed of 4"));
  CHECK(mentions(refused([&](Json& j) {
                   j = json;
                   j["active_cores"] = 5;
                 }),
                 "\"active_cores\" is 5"));
  CHECK(mentions(refused([&](Json& j) {
                   j = json;
                   j["longest_cores"][0]["classes"]["other"] = 99;
                 }),
                 "s.json.longest_cores[0]: a core cannot execute more than the run"));
  // All cores know better.
  json["per_core"] = {{{"core", 0}, {"classes", json["classes"]}}};
  a = parse_stats(json.dump(), "s.json");
  CHECK(a.longest_cores.active_cores() == 1);
  CHECK(a.longest_cores.list() == std::vector{a.classes});
}

constexpr const char* kThesisTrace =
    "Kernel name: _Z9transposeIjEvPT_jS1_j10NcvSize32u\n\n"
    "Integer_arithmetic: 9041472\n\nInteger_logical: 828432\n\nInteger_comparison: 1378080\n\n"
    "Memory_offchip: 526338\n\nMemory_onchip: 2724930\n\nControl: 1943793\n\n"
    "Parallelism: 278784\n";

TEST_CASE("the thesis's trace is read, and written again") {
  const auto kernels = parse_trace(kThesisTrace, "t");
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].name == "_Z9transposeIjEvPT_jS1_j10NcvSize32u");
  CHECK(kernels[0].classes[static_cast<size_t>(InsnClass::kIntegerArithmetic)] == 9041472);
  CHECK(kernels[0].classes[static_cast<size_t>(InsnClass::kOnChipMemory)] == 2724930);
  CHECK(kernels[0].classes[static_cast<size_t>(InsnClass::kFloatArithmetic)] == 0);
  CHECK(instructions_of(kernels[0].classes) ==
        9041472 + 828432 + 1378080 + 526338 + 2724930 + 1943793 + 278784);
  const auto again = parse_trace(trace_text(kernels), "t");
  REQUIRE(again.size() == 1);
  CHECK(again[0].classes == kernels[0].classes);
  CHECK(again[0].name == kernels[0].name);
  const Activity a =
      activity_of_trace(parse_trace(std::string(kThesisTrace) + kThesisTrace, "t"), "t");
  CHECK(a.functions.size() == 2);
  CHECK(a.memory_is_placed);
  CHECK(a.instructions() == 2 * instructions_of(kernels[0].classes));
}

TEST_CASE("every class survives a trace") {
  ActivityPart all{"k", {}};
  for (size_t c = 0; c < kInsnClassCount; ++c) all.classes[c] = c + 1;
  CHECK(parse_trace(trace_text({all}), "t").at(0).classes == all.classes);
}

TEST_CASE("a bad trace is refused with its line") {
  const auto refused_trace = [](const std::string& text) {
    return message_of([&] { activity_of_trace(parse_trace(text, "t"), "t"); });
  };
  CHECK(mentions(refused_trace("hello"), "t, line 1: neither"));
  CHECK(mentions(refused_trace("Control: 1\n"), "before the first"));
  CHECK(mentions(refused_trace("Kernel name:\n"), "no name"));
  CHECK(mentions(refused_trace("Kernel name: k\nControl 1\n"), "line 2"));
  CHECK(mentions(refused_trace("Kernel name: k\nControl: -1\n"), "\"-1\" is not a count"));
  CHECK(mentions(refused_trace("Kernel name: k\nControl: nan\n"), "not a count"));
  CHECK(mentions(refused_trace("Kernel name: k\nControl: 1e3\n"), "not a count"));
  CHECK(mentions(refused_trace("Kernel name: k\nControl:\n"), "not a count"));
  CHECK(mentions(refused_trace("Kernel name: k\nTensor: 1\n"), "unknown instruction class"));
  CHECK(mentions(refused_trace("Kernel name: k\nControl: 1\nControl: 1\n"), "twice"));
  CHECK(mentions(refused_trace("Kernel name: k\n"), "empty"));
  CHECK(mentions(refused_trace("\n"), "no kernel"));
}

}  // namespace
}  // namespace gpusim::energy
