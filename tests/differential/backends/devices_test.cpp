// Private cores on several devices do what they do on one: memory, registers, events, tallies.
#include <doctest/doctest.h>

#include <algorithm>

#include "device_sim/core/devices.h"
#include "tests/differential/backends/run_case.h"

namespace gpusim::difftest {
namespace {

// Cores share nothing: devices do not see each other's writes to the linear zone, which only holds
// what no private program may write.
Case private_case(uint64_t seed, uint32_t cores) {
  Case c = random_case(seed, cores, MemoryModel::kPrivate);
  for (Region& r : c.regions)
    if (r.address - c.config.linear_base < c.config.linear_size)
      r.flags &= static_cast<uint8_t>(~kWrite);
  return c;
}

TEST_CASE("private cores on several devices") {
  const auto count = static_cast<uint32_t>(devices_of("cuda").size());
  if (count < 2) return;  // a machine with several GPUs, or the emulated one, has this test
  const uint64_t first_seed = seed_from_env_or_random();
  const uint32_t programs = program_count(24);
  for (uint32_t i = 0; i < programs; ++i) {
    const uint64_t seed = first_seed + i;
    INFO("replay: GPUSIM_SEED=" << seed);
    Rng rng(seed ^ 0xdec1ce);
    const Case c = private_case(seed, rng.pick({1u, 64u, 65u, 130u, 200u, 321u}));
    const Result expected = run_case(c, {});
    REQUIRE_MESSAGE(expected.trouble.empty(), expected.trouble << "\n" << print_case(c));
    for (uint32_t used = 1; used <= std::min(count, 3u); ++used) {
      RunConfig run{.backend = "cuda"};
      for (uint32_t d = 0; d < used; ++d) run.devices.push_back((d + i) % count);
      run.slice = rng.pick<uint64_t>({100, uint64_t{1} << 40});
      const std::string what = check_case(c, expected, run);
      REQUIRE_MESSAGE(what.empty(), what);
    }
  }
}

TEST_CASE("shared cores are refused on several devices") {
  if (devices_of("cuda").size() < 2) return;
  const Case c = random_case(1, 130, MemoryModel::kShared);
  const auto on_two = make_backend_on("cuda", std::vector<uint32_t>{0, 1});
  CHECK_THROWS_WITH(on_two->configure(c.module, c.config),
                    "cores that share memory stay on one GPU; several are for --memory private");
}

}  // namespace
}  // namespace gpusim::difftest
