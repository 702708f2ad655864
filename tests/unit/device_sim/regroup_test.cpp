// That cores which run alone in their groups are put together, that others are left alone, and that
// nobody can tell afterwards.
#include <doctest/doctest.h>

#include "device_sim/simd/simd_backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

constexpr uint32_t kCores = 1024, kRoles = 8;
enum Slots : Slot { kCore, kRole, kRounds, kSum, kSlots };

// Role r adds r + 1 and doubles, `rounds` times, in a loop of its own.
Module make_roles() {
  Module m;
  constexpr uint32_t kLoop = 5;  // micro-ops
  for (uint32_t r = 0; r < kRoles; ++r)
    add_block(m, {Uop{.op = Op::bri_eq64, .a = kRole}.with_imm16(static_cast<uint16_t>(r))},
              kRoles + 1 + r * kLoop);
  add_block(m, {{.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kUndefined)}});
  for (uint32_t r = 0; r < kRoles; ++r) {
    add_block(m,
              {{.op = Op::addi64, .d = kSum, .a = kSum, .imm = r + 1},
               {.op = Op::add64, .d = kSum, .a = kSum, .b = kSum},
               {.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
               {.op = Op::bri_ne64, .a = kRounds}},
              kRoles + 1 + r * kLoop);
    add_block(m, {{.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)}});
  }
  finish(m, kSlots);
  return m;
}

struct Run {
  std::vector<uint64_t> sums;
  std::vector<ClassCounts> tallies;
  size_t regroupings = 0;
};
template <class Role, class Rounds>
Run run(bool regroup, Role role, Rounds rounds) {
  const Module module = make_roles();
  MachineConfig config;
  config.cores = kCores;
  config.linear_size = config.window_base = 1 << 20;
  config.regroup = regroup;
  SimdBackend b;
  b.configure(module, config);
  for (uint32_t core = 0; core < kCores; ++core) {
    b.set_slot(core, kCore, core);
    b.set_slot(core, kRole, role(core));
    b.set_slot(core, kRounds, rounds(core));
    b.start(core, 0);
  }
  while (b.runnable() != 0)
    for (const Event& e : b.run_slice(500)) {
      CHECK(e.fault == Fault::kBreakpoint);
      b.stop(e.core);
    }
  Run r;
  for (uint32_t core = 0; core < kCores; ++core) {
    CHECK(b.slot(core, kCore) == core);
    r.sums.push_back(b.slot(core, kSum));
    r.tallies.push_back(b.tally(core).classes);
  }
  r.regroupings = b.regroupings();
  return r;
}

template <class Role, class Rounds>
size_t regroupings(Role role, Rounds rounds) {
  const Run apart = run(false, role, rounds), together = run(true, role, rounds);
  CHECK(apart.regroupings == 0);
  CHECK(together.sums == apart.sums);
  CHECK(together.tallies == apart.tallies);
  for (uint32_t core = 0; core < kCores; ++core) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < rounds(core); ++i) sum = (sum + role(core) + 1) * 2;
    CHECK(apart.sums[core] == sum);
  }
  return together.regroupings;
}

bool can_run() {
  std::string why_not;
  return SimdBackend::available(&why_not);
}

TEST_CASE("cores with different roles are put together") {
  if (!can_run()) return;
  CHECK(regroupings([](uint32_t core) { return core % kRoles; },
                    [](uint32_t) { return uint64_t{20000}; }) > 0);
}
TEST_CASE("the last cores that run are put together") {
  if (!can_run()) return;
  CHECK(regroupings([](uint32_t) { return 0u; },
                    [](uint32_t core) { return core % 37 == 5 ? uint64_t{30000} : 10; }) > 0);
}
TEST_CASE("cores that run together stay where they are") {
  if (!can_run()) return;
  CHECK(regroupings([](uint32_t core) { return core / 64 % kRoles; },
                    [](uint32_t) { return uint64_t{20000}; }) == 0);
}

}  // namespace
}  // namespace gpusim
