// Random programs of warps and CTAs: the SIMD backend, interpreted and in native code, and the CUDA
// backend do what the scalar backend does, which runs warps in step.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/differential/backends/random_warps.h"
#include "tests/differential/backends/run_case.h"

namespace gpusim::difftest {
namespace {

std::vector<RunConfig> runs_of_warps(bool order_matters, Rng& rng) {
  std::vector<RunConfig> runs;
  for (const std::string& backend : backends_under_test()) {
    // Of a device only slices and seeds tell runs apart.
    for (int i = 0; i < (backend == "cuda" ? 2 : 4); ++i) {
      RunConfig run{.backend = backend};
      run.group_width = rng.pick({32u, 64u, 64u});
      run.threads = rng.pick({1u, 1u, 2u, 4u});
      run.slice = rng.pick<uint64_t>({1, 7, 100, 4000, uint64_t{1} << 40});
      run.native_after = rng.pick({0u, 0u, 1u, MachineConfig::kNeverNative});
      run.groups_code = random_groups_code(rng);
      run.count_lanes = rng.once_in(4);
      if (!order_matters && rng.once_in(4)) run.seed = 1 + rng.below(1000);
      runs.push_back(run);
    }
  }
  return runs;
}

TEST_CASE("backends agree on random programs of warps and CTAs") {
  const uint64_t first_seed = seed_from_env_or_random();
  // On the emulated device one takes as long as many of other kinds.
  const bool is_slow = backends_under_test() == std::vector<std::string>{"cuda"};
  const uint32_t programs = std::max(1u, program_count(300) / (is_slow ? 8 : 1));
  for (uint32_t i = 0; i < programs; ++i) {
    const uint64_t seed = first_seed + i;
    Rng rng(seed ^ 0x5eed);
    const WarpCase w = random_warps(seed);
    INFO("replay: GPUSIM_SEED=" << seed);
    const Result expected = run_case(w.c, {.slice = 1000});
    REQUIRE_MESSAGE(expected.trouble.empty(), expected.trouble << "\n" << print_case(w.c));
    std::vector<RunConfig> runs = runs_of_warps(w.order_matters, rng);
    runs.push_back({.slice = rng.pick<uint64_t>({1, 13, 200})});
    for (const RunConfig& run : runs) {
      const std::string what = check_case(w.c, expected, run, {.slice = 1000});
      REQUIRE_MESSAGE(what.empty(), what);
    }
  }
}

}  // namespace
}  // namespace gpusim::difftest
