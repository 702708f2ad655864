// That a core alone in its group runs hot loops in native code, and is counted as in the interpreter.
#include <doctest/doctest.h>

#include "device_sim/simd/simd_backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

constexpr Uop kEnd = {.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)};
enum Slots : Slot { kCore, kSquare, kSum, kRounds, kStack, kSlots };
constexpr uint64_t kLinearBytes = 1 << 20;
constexpr uint64_t kWindow = uint64_t{1} << MachineConfig{}.window_shift;

bool can_run_alone() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

// What one core did, natively or not.
struct AloneRun {
  uint64_t sum = 0, natively = 0;
  std::vector<uint64_t> block_counts;
  ClassCounts classes{};
};
AloneRun run_alone(uint32_t native_after, const Module& module, uint64_t rounds,
                   uint64_t slice = 1000) {
  SimdBackend b;
  MachineConfig config;
  config.linear_size = config.window_base = kLinearBytes;
  config.native_after = native_after;
  b.configure(module, config);
  b.set_permissions(0, 0, kLinearBytes, kRead | kWrite);
  b.set_permissions(0, kLinearBytes, kWindow, kRead | kWrite);
  b.set_slot(0, kCore, 3);
  b.set_slot(0, kRounds, rounds);
  b.set_slot(0, kStack, kLinearBytes + 64);
  b.start(0, 0);
  std::span<const Event> events;
  while (events.empty()) events = b.run_slice(slice);
  return {b.slot(0, kSum), b.native_instructions(), b.block_counts(), b.tally(0).classes};
}

Module make_loop() {
  // The sum is kept on the stack.
  Module m;
  add_block(m, {{.op = Op::mul32, .d = kSquare, .a = kCore, .b = kCore}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::ldu32, .d = kSum, .a = kStack, .imm = 8},
             {.op = Op::add32, .d = kSum, .a = kSum, .b = kSquare},
             {.op = Op::xor32, .d = kSum, .a = kSum, .b = kRounds},
             {.op = Op::st32, .d = kSum, .a = kStack, .imm = 8},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            2);
  add_block(m, {kEnd}, 9);
  finish(m, kSlots);
  return m;
}

TEST_CASE("a core alone in its group runs hot loops natively, and counts as the interpreter") {
  const Module m = make_loop();
  constexpr uint64_t kRoundsOfLoop = 20000;
  const AloneRun expected = run_alone(MachineConfig::kNeverNative, m, kRoundsOfLoop);
  CHECK(expected.natively == 0);
  for (const uint32_t native_after : {0u, 1u, 64u}) {
    const AloneRun actual = run_alone(native_after, m, kRoundsOfLoop);
    CHECK(actual.sum == expected.sum);
    CHECK(actual.block_counts == expected.block_counts);
    CHECK(actual.classes == expected.classes);
    if (!can_run_alone()) continue;
    CHECK(actual.natively > 5 * kRoundsOfLoop);
  }
}

TEST_CASE("code for a core alone is generated and run within one slice") {
  const Module m = make_loop();
  constexpr uint64_t kRoundsOfLoop = 100000, kSlice = 1 << 20;
  const AloneRun expected = run_alone(MachineConfig::kNeverNative, m, kRoundsOfLoop, kSlice);
  const AloneRun actual = run_alone(64, m, kRoundsOfLoop, kSlice);
  CHECK(actual.sum == expected.sum);
  CHECK(actual.block_counts == expected.block_counts);
  if (can_run_alone()) CHECK(actual.natively > 4 * kRoundsOfLoop);
}

// A small loop, then one of more blocks than are counted behind the frame: code for the first is
// made anew.
TEST_CASE("very many hot blocks are counted as in the interpreter") {
  constexpr uint32_t kBlocks = 9000, kTurns = 200;
  Module m;
  add_block(m, {{.op = Op::konst, .d = kSquare, .imm = kTurns}, {.op = Op::jmp}}, 2);
  add_block(m,
            {{.op = Op::add32, .d = kSum, .a = kSum, .b = kRounds},
             {.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kRounds}},
            2);
  const auto first = static_cast<uint32_t>(m.uops.size());
  for (uint32_t i = 0; i < kBlocks; ++i)
    add_block(m, {{.op = Op::addi32, .d = kSum, .a = kSum, .imm = i}, {.op = Op::jmp}},
              first + 2 * (i + 1));
  add_block(m,
            {{.op = Op::addi32, .d = kSquare, .a = kSquare, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne32, .a = kSquare}},
            first);
  add_block(m, {kEnd}, 0);
  finish(m, kSlots);
  const AloneRun expected = run_alone(MachineConfig::kNeverNative, m, 20000);
  for (const uint32_t native_after : {0u, 64u}) {
    const AloneRun actual = run_alone(native_after, m, 20000);
    CHECK(actual.sum == expected.sum);
    CHECK(actual.block_counts == expected.block_counts);
    CHECK(actual.classes == expected.classes);
    if (can_run_alone()) CHECK(actual.natively > uint64_t{kBlocks} * kTurns);
  }
}

}  // namespace
}  // namespace gpusim
