// Random loops whose values change their forms, in the SIMD backend's native code made early and
// late: all must do what the scalar backend does.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/differential/backends/random_loop.h"
#include "tests/differential/backends/run_case.h"

namespace gpusim::difftest {
namespace {

uint64_t random_slice(Rng& rng) {
  if (rng.once_in(24)) return 1;  // slow
  return rng.pick<uint64_t>({20, 100, 200, 400, 1000, 5000});
}

// On the SIMD backend; the first three differ from `interpreted` only in when native code is made,
// and in which instruction set.
std::vector<RunConfig> simd_runs(const LoopCase& loop, const RunConfig& interpreted, Rng& rng) {
  std::vector<RunConfig> runs;
  for (const uint32_t native_after : {0u, 1u, 20u}) {
    RunConfig run = interpreted;
    run.native_after = native_after;
    run.groups_code = random_groups_code(rng);
    runs.push_back(run);
  }
  if (loop.order_matters) return runs;
  runs.push_back(interpreted);
  for (const uint32_t threads : {1u, 2u}) {
    RunConfig run = interpreted;
    run.threads = threads;
    run.slice = random_slice(rng);
    run.native_after = rng.pick({0u, 1u, 5u});
    run.groups_code = random_groups_code(rng);
    run.regroup = rng.coin();
    run.count_lanes = rng.coin();
    if (rng.once_in(8)) run.seed = 1 + rng.below(100);
    runs.push_back(run);
  }
  return runs;
}

TEST_CASE("backends agree on random loops whose values change their forms") {
  const std::vector<std::string> backends = backends_under_test();
  const bool has_simd = std::find(backends.begin(), backends.end(), "simd") != backends.end();
  if (!has_simd) MESSAGE("without the simd backend");
  const uint64_t first_seed = seed_from_env_or_random();
  for (uint32_t i = 0; i < program_count(400); ++i) {
    const uint64_t seed = first_seed + i;
    Rng rng(seed ^ 0x5eed);
    const LoopCase loop = random_loop(seed);
    if (loop.order_matters && !has_simd) continue;
    // Cores stay in their groups: where order matters it is that of groups.
    const RunConfig interpreted{
        .backend = "simd", .slice = random_slice(rng), .regroup = false};
    const RunConfig reference = loop.order_matters ? interpreted : RunConfig{.slice = 1000};
    INFO("replay: GPUSIM_SEED=" << seed);
    const Result expected = run_case(loop.c, reference);
    REQUIRE_MESSAGE(expected.trouble.empty(), expected.trouble << "\n" << print_case(loop.c));
    std::vector<RunConfig> runs;
    if (has_simd) runs = simd_runs(loop, interpreted, rng);
    for (const std::string& backend : backends)
      if (backend != "simd" && !loop.order_matters)
        runs.push_back({.backend = backend, .slice = 5000});
    for (const RunConfig& run : runs) {
      const std::string what = check_case(loop.c, expected, run, reference);
      REQUIRE_MESSAGE(what.empty(), what);
    }
  }
}

}  // namespace
}  // namespace gpusim::difftest
