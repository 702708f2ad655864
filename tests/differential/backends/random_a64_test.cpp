// Random A64 instructions through the real translator, on every backend; and with and without the
// translator's passes.
#include <doctest/doctest.h>

#include <map>

#include "tests/differential/backends/random_a64.h"
#include "tests/differential/backends/run_case.h"
#include "tests/unit/translator/test_elf.h"
#include "translator/common/translator.h"

namespace gpusim::difftest {
namespace {

std::string listing(uint64_t seed) {
  std::string text;
  const Module m = random_a64_case(seed, 1, false).module;
  const size_t words = random_a64_words(seed).size();
  for (size_t i = 0; i < words; ++i)
    text += "  " + describe_instruction(m, kTestText + 4 * i) + "\n";
  return text;
}

template <class F>
void for_programs(uint32_t usual, F f) {
  const uint64_t first_seed = seed_from_env_or_random();
  for (uint32_t i = 0; i < program_count(usual); ++i) {
    const uint64_t seed = first_seed + i;
    INFO("replay: GPUSIM_SEED=" << seed);
    f(seed);
  }
}

TEST_CASE("backends agree on random A64 instructions") {
  for_programs(200, [](uint64_t seed) {
    Rng rng(seed ^ 0xa64);
    const uint32_t cores = rng.pick({1u, 3u, 17u, 64u, 64u, 65u});
    const Case c = random_a64_case(seed, cores, rng.once_in(4) ? false : true);
    REQUIRE(c.exit_uop != 0);
    const Result expected = run_case(c, {});
    REQUIRE(expected.trouble == "");
    for (const RunConfig& run : random_runs(rng, 3)) {
      const std::string what = check_case(c, expected, run);
      REQUIRE_MESSAGE(what.empty(), what);
    }
  });
}

// What a guest can see, whatever its translation: registers by name, and faults by address.
std::map<std::string, uint64_t> visible_state(const Case& c, const Result& r, uint32_t core) {
  std::map<std::string, uint64_t> state;
  for (const SlotName& n : c.module.slot_names)
    if (n.name[0] == 'x' || n.name[0] == 'v' || n.name == "sp" || n.name == "fp_state")
      state[n.name] = r.slots[core * c.slots.size() + n.slot];
  for (const Event& e : r.events[core]) {
    state["status"] = static_cast<uint64_t>(e.status);
    state["fault"] = static_cast<uint64_t>(e.fault);
    state["pc"] = e.status == CoreStatus::kFault ? uop_pc(c.module, e.uop) : 0;
    state["address"] = e.address;
  }
  for (size_t k = 0; k < kInsnClassCount; ++k)
    state[kInsnClassNames[k]] = r.tallies[core].classes[k];
  return state;
}

TEST_CASE("the passes change nothing that a guest can see") {
  for_programs(300, [](uint64_t seed) {
    constexpr uint32_t kCores = 5;
    Case plain = random_a64_case(seed, kCores, false);
    Case optimised = random_a64_case(seed, kCores, true);
    plain.resumed_faults = optimised.resumed_faults = 0;  // micro-ops do not correspond
    const Result x = run_case(plain, {}), y = run_case(optimised, {});
    for (uint32_t core = 0; core < kCores; ++core) {
      const auto expected = visible_state(plain, x, core), actual = visible_state(optimised, y, core);
      for (const auto& [name, value] : actual) {
        const auto found = expected.find(name);
        if (found == expected.end() || found->second == value) continue;
        FAIL("core " << core << ", " << name << ": " << found->second << " without passes, " << value
                     << " with them\n" << listing(seed));
      }
      REQUIRE(x.memory[1 + core] == y.memory[1 + core]);
    }
  });
}

}  // namespace
}  // namespace gpusim::difftest
