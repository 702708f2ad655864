// That hot loops do run as native code, where there can be any, with all lanes and with some.
#include <doctest/doctest.h>

#include "device_sim/simd/simd_backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

constexpr uint32_t kCores = 64;
constexpr Uop kEnd = {.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)};
enum Slots : Slot { kCore, kSquare, kSum, kRounds, kSlots };

// sum = (sum + core * core) ^ core, `rounds` times.
Module make_loop() {
  Module m;
  add_block(m, {{.op = Op::mul32, .d = kSquare, .a = kCore, .b = kCore}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::add32, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::xor32, .d = kSum, .a = kSum, .b = kCore},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            2);
  add_block(m, {kEnd}, 7);
  finish(m, kSlots);
  return m;
}

struct Run {
  std::vector<uint64_t> sums;
  uint64_t instructions = 0;
  size_t native_variants = 0;
};
template <class Rounds>
Run run(uint32_t native_after, Rounds rounds, const Module& module = make_loop()) {
  MachineConfig config;
  config.cores = kCores;
  config.linear_size = config.window_base = 1 << 20;
  config.native_after = native_after;
  SimdBackend b;
  b.configure(module, config);
  for (uint32_t core = 0; core < kCores; ++core) {
    b.set_slot(core, kCore, core);
    b.set_slot(core, kRounds, rounds(core));
    b.start(core, 0);
  }
  while (b.runnable() != 0)
    for (const Event& e : b.run_slice(1000)) b.stop(e.core);
  Run r;
  for (uint32_t core = 0; core < kCores; ++core) r.sums.push_back(b.slot(core, kSum));
  const std::vector<uint64_t> counts = b.block_counts();
  for (size_t i = 0; i < counts.size(); ++i)
    r.instructions += counts[i] * module.blocks[i].insn_count;
  r.native_variants = b.native_variants();
  return r;
}

// In one block the row of kSquare grows from 32-bit to 64-bit words and that of kSum shrinks, which
// wants the lanes in opposite orders; the next block turns both back.
Module make_growing_and_shrinking() {
  Module m;
  add_block(m, {{.op = Op::mul64, .d = kSum, .a = kCore, .b = kCore}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::add64, .d = kSquare, .a = kSquare, .b = kCore},
             {.op = Op::add32, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::bri_ne32, .a = kRounds, .imm16 = 1}},
            6);
  add_block(m, {kEnd}, 5);
  add_block(m,
            {{.op = Op::xor32, .d = kSquare, .a = kSquare, .b = kSum},
             {.op = Op::mul64, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::jmp}},
            2);
  finish(m, kSlots);
  return m;
}

uint64_t expected_sum(uint32_t core, uint64_t rounds) {
  uint32_t sum = 0;
  for (uint64_t i = 0; i < rounds; ++i) sum = (sum + core * core) ^ core;
  return sum;
}

template <class Rounds>
void check(Rounds rounds, size_t least_variants) {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const Run interpreted = run(MachineConfig::kNeverNative, rounds);
  const Run native = run(1, rounds);
  for (uint32_t core = 0; core < kCores; ++core) {
    CHECK(interpreted.sums[core] == expected_sum(core, rounds(core)));
    CHECK(native.sums[core] == interpreted.sums[core]);
  }
  CHECK(native.instructions == interpreted.instructions);
  CHECK(interpreted.native_variants == 0);
  if (simd::TraceCompiler::available()) CHECK(native.native_variants >= least_variants);
}

TEST_CASE("a hot loop of a whole group becomes native code") {
  check([](uint32_t) { return uint64_t{5000}; }, 1);
}
TEST_CASE("a hot loop that lanes leave one after the other becomes native code twice") {
  check([](uint32_t core) { return uint64_t{3000} + 200 * core; }, 2);
}
TEST_CASE("rows that grow and rows that shrink in one block") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const Module module = make_growing_and_shrinking();
  const auto rounds = [](uint32_t) { return uint64_t{1000}; };
  const Run interpreted = run(MachineConfig::kNeverNative, rounds, module);
  const Run native = run(1, rounds, module);
  CHECK(native.sums == interpreted.sums);
  for (uint32_t core = 0; core < kCores; ++core) {
    uint64_t square = 0, sum = uint64_t{core} * core;
    for (uint64_t i = 1000;; --i) {
      square += core;
      sum = static_cast<uint32_t>(sum + square);
      if (i == 1) break;
      square = static_cast<uint32_t>(square ^ sum);
      sum *= square;
    }
    CHECK(interpreted.sums[core] == sum);
  }
}

}  // namespace
}  // namespace gpusim
