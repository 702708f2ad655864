// Random programs in micro-ops, on every backend and in many configurations: all must do what the
// scalar backend does.
#include <doctest/doctest.h>

#include "device_sim/uir/check_fields.h"
#include "tests/differential/backends/run_case.h"
#include "tests/differential/backends/uop_fields.h"

namespace gpusim::difftest {
namespace {

uint32_t random_cores(Rng& rng, uint32_t index) {
  if (index % 64 == 63) return 1000;
  return rng.pick({1u, 2u, 7u, 31u, 64u, 64u, 65u, 130u});
}

void check_programs(MemoryModel model, uint32_t usual_count) {
  const uint64_t first_seed = seed_from_env_or_random();
  const char* cores_text = env("GPUSIM_CORES");
  for (uint32_t i = 0; i < program_count(usual_count); ++i) {
    const uint64_t seed = first_seed + i;
    Rng rng(seed ^ 0x5eed);
    const uint32_t cores = cores_text ? static_cast<uint32_t>(std::atoi(cores_text))
                                      : random_cores(rng, static_cast<uint32_t>(seed));
    const Case c = random_case(seed, cores, model);
    INFO("replay: GPUSIM_SEED=" << seed);
    const Result expected = run_case(c, {});
    REQUIRE_MESSAGE(expected.trouble.empty(), expected.trouble << "\n" << print_case(c));
    for (const RunConfig& run : random_runs(rng, 4)) {
      const std::string what = check_case(c, expected, run);
      REQUIRE_MESSAGE(what.empty(), what);
    }
  }
}

// What is compared here is what modules may hold.
TEST_CASE("random fields are as their rows allow") {
  Rng rng(1);
  for (int i = 0; i < kOpCount; ++i) {
    Uop u{.op = static_cast<Op>(i)};
    if (op_info(u.op).shape > Shape::kGABC) continue;
    CAPTURE(std::string(op_info(u.op).name));
    for (int n = 0; n < 500; ++n) {
      Uop drawn = u;
      random_fields(drawn, 0, rng);
      REQUIRE_MESSAGE(has_valid_fields(drawn), "e ", int(drawn.e), ", aux ", int(drawn.aux),
                      ", imm ", drawn.imm);
    }
  }
}

TEST_CASE("backends agree on random micro-ops, shared memory") {
  check_programs(MemoryModel::kShared, 400);
}

TEST_CASE("backends agree on random micro-ops, private memory") {
  check_programs(MemoryModel::kPrivate, 400);
}

}  // namespace
}  // namespace gpusim::difftest
