// What rows of uops.def say of their operations (uir/traits.h), on random operands. A trait that is
// not true would show elsewhere only where a backend or a pass happens to rely on it.
#include <doctest/doctest.h>

#include <array>

#include "device_sim/core/execute.h"
#include "device_sim/simd/narrow.h"
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

// A value of which that is known (simd/narrow.h).
uint64_t value_of(simd::Words known, Rng& rng) {
  const uint64_t x = interesting_integer(rng);
  switch (known) {
    case simd::kZeroAbove:
      return x & 0xffffffff;
    case simd::kSignAbove:
      return static_cast<uint64_t>(int64_t{static_cast<int32_t>(x)});
    case simd::kBothAbove:
      return x & 0x7fffffff;
    default:
      return x;
  }
}

TEST_CASE("32-bit lanes serve where they are said to") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  for (int n = 0; n < kOpCount; ++n) {
    const auto op = static_cast<Op>(n);
    const ShapeInfo shape = shape_info(op_info(op).shape);
    if (!simd::may_run_narrow(op)) continue;
    CAPTURE(std::string(op_info(op).name));
    int served = 0;
    for (int round = 0; round < 2000; ++round) {
      Uop u{.op = op, .d = kD, .a = kA, .b = kB, .c = kC};
      random_fields(u, kE, rng);
      if (shape.e.reads) u.e = kE;
      simd::Words known[4] = {};
      Registers registers;
      std::array<Slot, 4> slots{};
      int count = 0;
      const Slot names[] = {kA, kB, kC, kE};
      const OperandUse uses[] = {shape.a, shape.b, shape.c, shape.e};
      for (int field = 0; field < 4; ++field) {
        if (!uses[field].reads) continue;
        known[count] = rng.pick<simd::Words>({0, 4, 8, 12});
        slots[static_cast<size_t>(count)] = names[field];
        registers.set(names[field], value_of(known[count++], rng));
      }
      const simd::NarrowForm form = simd::narrow_form(u, known);
      if (form.result == 0) continue;
      ++served;
      CAPTURE(u.imm);
      CAPTURE(int{u.aux});
      const uint64_t result = result_of(u, registers);
      REQUIRE((simd::words_of(result) & form.result) == form.result);
      for (int k = 0; k < count; ++k) {
        REQUIRE((known[k] & form.need[k]) == form.need[k]);
        if (form.need[k] != 0) continue;
        const Slot s = slots[static_cast<size_t>(k)];
        registers.set(s, registers.get(s) ^ rng.next() << 32);
      }
      REQUIRE(static_cast<uint32_t>(result_of(u, registers)) == static_cast<uint32_t>(result));
    }
    CHECK(served > 20);
  }
}

template <Op op>
bool has_rule(const Uop& u, const std::array<simd::Compact, 3>& x, simd::Compact& d) {
  return simd::affine_rule<op>(u, 63, x[0], x[1], x[2], d);
}
bool has_rule(const Uop& u, const std::array<simd::Compact, 3>& x, simd::Compact& d) {
  switch (u.op) {
#define GPUSIM_UOP(name, shape, fields, traits) \
  case Op::name:                                \
    return has_rule<Op::name>(u, x, d);
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
  }
  return false;
}

TEST_CASE("rules for affine values are exact in every lane") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  const auto random_compact = [&] {
    simd::Compact x{interesting_integer(rng), 0};
    if (rng.coin()) x.base = rng.below(10000) - uint64_t{5000};
    if (rng.once_in(3)) return x;
    x.stride =
        rng.once_in(8) ? interesting_integer(rng) : (uint64_t{1} << rng.below(12)) + rng.below(2);
    if (rng.once_in(4)) x.stride = 0 - x.stride;
    return x;
  };
  for (int n = 0; n < kOpCount; ++n) {
    const auto op = static_cast<Op>(n);
    if (!has_trait(op, traits::kAffine)) continue;
    CAPTURE(std::string(op_info(op).name));
    int held = 0;
    for (int round = 0; round < 3000; ++round) {
      Uop u{.op = op, .d = kD, .a = kA, .b = kB, .c = kC};
      random_fields(u, kE, rng);
      const std::array<simd::Compact, 3> x{random_compact(), random_compact(), random_compact()};
      simd::Compact d;
      if (!has_rule(u, x, d)) continue;
      ++held;
      CAPTURE(u.imm);
      CAPTURE(int{u.aux});
      for (uint64_t lane = 0; lane < 64; ++lane) {
        Registers registers;
        for (size_t k = 0; k < 3; ++k) registers.slots[kA + k] = x[k].at(lane);
        REQUIRE(result_of(u, registers) == d.at(lane));
      }
    }
    CHECK(held > 20);
  }
}

}  // namespace
}  // namespace gpusim::difftest
