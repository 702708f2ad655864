// What rows of uops.def say of their operations (uir/traits.h), on random operands. A trait that is
// not true would show elsewhere only where a backend or a pass happens to rely on it.
#include <doctest/doctest.h>

#include <array>

#include "device_sim/core/execute.h"
#include "tests/differential/backends/run_case.h"
#include "tests/differential/backends/uop_fields.h"

namespace gpusim::difftest {
namespace {

constexpr Slot kD = 0, kA = 1, kB = 2, kC = 3, kE = 4;

struct Registers {
  std::array<uint64_t, 5> slots{};
  uint64_t get(Slot s) const { return slots[s]; }
  void set(Slot s, uint64_t value) { slots[s] = value; }
};

uint64_t result_of(const Uop& u, Registers registers) {
  StopInfo stop;
  REQUIRE(execute(u, registers, MemoryView{}, 0, stop) == Outcome::kNext);
  return registers.get(kD);
}

uint64_t random_value(Rng& rng) {
  const uint64_t x = interesting_integer(rng);
  return rng.coin() ? x : x & 0xffffffff;
}

// Whether one of the row's conditions for a result below 2^32 holds.
bool must_fit(Traits row, bool a, bool b, bool i) {
  const auto has = [&](Traits t) { return (row & t) != 0; };
  return has(traits::kFits) || (has(traits::kFitsA) && a) || (has(traits::kFitsB) && b) ||
         (has(traits::kFitsI) && i) || (has(traits::kFitsAB) && a && b) ||
         (has(traits::kFitsAI) && a && i) || (has(traits::kFitsBI) && b && i);
}

TEST_CASE("what rows say of their operations is true") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  for (int n = 0; n < kOpCount; ++n) {
    const auto op = static_cast<Op>(n);
    const OpInfo& row = op_info(op);
    if (!shape_info(row.shape).pure) continue;
    CAPTURE(std::string(row.name));
    for (int round = 0; round < 1000; ++round) {
      Uop u{.op = op, .d = kD, .a = kA, .b = kB, .c = kC};
      random_fields(u, kE, rng);
      if (shape_info(row.shape).e.reads) u.e = kE;
      Registers registers;
      for (uint64_t& s : registers.slots) s = random_value(rng);
      const uint64_t result = result_of(u, registers);
      CAPTURE(u.imm);
      const auto fits = [](uint64_t x) { return x >> 32 == 0; };
      if (must_fit(row.traits, fits(registers.get(kA)), fits(registers.get(kB)), fits(u.imm)))
        REQUIRE(fits(result));
      if (has_trait(op, traits::kCommutes)) {
        std::swap(u.a, u.b);
        REQUIRE(result_of(u, registers) == result);
        std::swap(u.a, u.b);
      }
      if (has_trait(op, traits::kNarrow)) {
        for (uint64_t& s : registers.slots) s ^= rng.next() << 32;
        REQUIRE(result_of(u, registers) == result);
        REQUIRE(fits(result));
      }
    }
  }
}

}  // namespace
}  // namespace gpusim::difftest
