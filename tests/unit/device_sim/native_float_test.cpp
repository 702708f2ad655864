// That floating-point micro-ops which native code computes by instructions of the machine give the
// softfloat's results and flags, for values of every kind.
#include <doctest/doctest.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <random>

#include "device_sim/simd/simd_backend.h"
#include "device_sim/uir/fp_aux.h"
#include "device_sim/uir/softfloat/format.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

enum Slots : Slot { kA, kB, kC, kResult, kSum, kPointer, kRounds, kFp, kNone, kSlots };
constexpr uint64_t kLinearBytes = 1 << 20, kRows = 6000;

// Each row of three words is computed with; the results are mixed into one. `resets`: so is the
// state after each, which then begins anew.
Module make_loop(Uop u, bool resets) {
  Module m;
  u.d = kResult;
  u.a = kA;
  u.b = kB;
  u.c = kC;
  u.e = kFp;
  const Slot state = resets ? kFp : kNone;
  add_block(m, {{.op = Op::ld64, .d = kA, .a = kPointer},
                {.op = Op::ld64, .d = kB, .a = kPointer, .imm = 8},
                {.op = Op::ld64, .d = kC, .a = kPointer, .imm = 16},
                u,
                {.op = Op::add64, .d = kSum, .a = kSum, .b = kResult},
                {.op = Op::add64, .d = kSum, .a = kSum, .b = state},
                {.op = Op::konst, .d = state},
                {.op = Op::mul64, .d = kSum, .a = kSum, .b = kPointer},
                {.op = Op::addi64, .d = kPointer, .a = kPointer, .imm = 24},
                {.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
                {.op = Op::bri_ne64, .a = kRounds}});
  add_block(m, {{.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)}});
  finish(m, kSlots);
  m.abi.fp_state = kFp;
  return m;
}

struct Result {
  uint64_t result = 0, sum = 0, fp = 0, natively = 0;
};
Result run(const Module& module, std::span<const uint64_t> values, uint32_t native_after,
           uint64_t fp) {
  SimdBackend b;
  MachineConfig config;
  config.linear_size = config.window_base = kLinearBytes;
  config.native_after = native_after;
  b.configure(module, config);
  b.set_permissions(0, 0, kLinearBytes, kRead | kWrite);
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  REQUIRE(b.write_memory(0, 8, {bytes, 8 * values.size()}));
  b.set_slot(0, kPointer, 8);
  b.set_slot(0, kRounds, values.size() / 3);
  b.set_slot(0, kFp, fp);
  b.start(0, 0);
  std::span<const Event> events;
  while (events.empty()) events = b.run_slice(1000);
  return {b.slot(0, kResult), b.slot(0, kSum), b.slot(0, kFp), b.native_instructions()};
}

// The same by all lanes of a group, each from a row of its own on: what all have in the end.
struct GroupResult {
  std::vector<uint64_t> sums, states;
  size_t variants = 0;
};
GroupResult run_group(const Module& module, std::span<const uint64_t> values,
                      simd::VectorCode code, uint64_t fp) {
  SimdBackend b;
  b.limit_groups_code(code);
  MachineConfig config;
  config.cores = 64;
  config.keeps_groups = true;
  config.linear_size = config.window_base = kLinearBytes;
  config.native_after = code == simd::VectorCode::kNone ? MachineConfig::kNeverNative : 0;
  b.configure(module, config);
  b.set_permissions(0, 0, kLinearBytes, kRead | kWrite);
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  REQUIRE(b.write_memory(0, 8, {bytes, 8 * values.size()}));
  for (uint32_t core = 0; core < config.cores; ++core) {
    b.set_slot(core, kPointer, 8 + 24 * core);
    b.set_slot(core, kRounds, values.size() / 3 - config.cores);
    b.set_slot(core, kFp, fp);
    b.start(core, 0);
  }
  while (b.runnable() != 0)
    for (const Event& e : b.run_slice(1000)) {
      REQUIRE(e.fault == Fault::kBreakpoint);
      b.stop(e.core);
    }
  GroupResult r{.variants = b.native_variants()};
  for (uint32_t core = 0; core < config.cores; ++core) {
    r.sums.push_back(b.slot(core, kSum));
    r.states.push_back(b.slot(core, kFp));
  }
  return r;
}

// The first row that goes wrong after those before it.
void show_first(const Module& module, std::span<const uint64_t> list, uint64_t fp) {
  size_t good = 0, bad = list.size() / 3;
  while (bad - good > 1) {
    const size_t middle = (good + bad) / 2;
    const auto rows = list.first(3 * middle);
    const Result expected = run(module, rows, MachineConfig::kNeverNative, fp);
    const Result actual = run(module, rows, 0, fp);
    (actual.sum == expected.sum && actual.fp == expected.fp ? good : bad) = middle;
  }
  const auto rows = list.first(3 * bad);
  const Result expected = run(module, rows, MachineConfig::kNeverNative, fp);
  const Result actual = run(module, rows, 0, fp);
  char text[200];
  std::snprintf(text, sizeof text, "row %zu: %lx %lx %lx: %lx, state %lx, not %lx, %lx", bad - 1,
                rows[3 * bad - 3], rows[3 * bad - 2], rows[3 * bad - 1], actual.result, actual.fp,
                expected.result, expected.fp);
  MESSAGE(std::string(text));
}

// Zeros, least and greatest values, NaNs, integers, halves, and neighbours in magnitude, so that
// differences cancel and results leave the range.
template <class T>
std::vector<uint64_t> values(std::mt19937_64& random) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kFraction = sizeof(T) == 4 ? 23 : 52;
  constexpr Bits kTop = sizeof(T) == 4 ? 255 : 2047;
  std::vector<uint64_t> list;
  const auto one = [&]() -> Bits {
    const Bits sign = static_cast<Bits>(random() & 1) << (8 * sizeof(T) - 1);
    const Bits fraction = static_cast<Bits>(random()) & ((Bits{1} << kFraction) - 1);
    switch (random() % 10) {
      case 0:
        return sign;
      case 1:
        return sign | kTop << kFraction | (random() % 3 != 0 ? 0 : fraction);  // infinity, NaN
      case 2:
        return sign | fraction;  // subnormal
      case 3:
        return sign | (1 + random() % 4) << kFraction | fraction;
      case 4:
        return sign | (kTop - 1 - random() % 4) << kFraction | fraction;
      case 5:  // around the limits of integers
        return sign | (kTop / 2 + 22 + random() % 45) << kFraction | fraction;
      case 6:
        return std::bit_cast<Bits>(static_cast<T>(static_cast<int>(random() % 64) - 32) / 2);
      default:
        return sign | (kTop / 2 - 3 + random() % 6) << kFraction | (random() % 2 ? fraction : 0);
    }
  };
  for (uint64_t row = 0; row < kRows; ++row) {
    const Bits a = one(), b = random() % 8 == 0 ? a : one();
    Bits c = one();
    if (random() % 4 == 0) {  // what a * b cancels
      const T product = std::bit_cast<T>(a) * std::bit_cast<T>(b);
      c = std::bit_cast<Bits>(-product);
    }
    for (const Bits word : {a, b, c}) list.push_back(word);
  }
  return list;
}

template <class T>
void check(std::initializer_list<Uop> uops, FpFormat format, std::mt19937_64& random,
           bool pairs = false) {
  for (Uop u : uops) {
    CAPTURE(op_info(u.op).name);
    CAPTURE(static_cast<int>(u.aux));
    u.aux |= static_cast<uint8_t>(format);
    std::vector<uint64_t> list = values<T>(random);
    if (pairs) {
      const std::vector<uint64_t> high = values<T>(random);
      for (size_t i = 0; i < list.size(); ++i) list[i] |= high[i] << 32;
    }
    for (const bool resets : {false, true}) {
      CAPTURE(resets);
      const Module m = make_loop(u, resets);
      const uint64_t fp = resets ? 0 : softfloat::kFpsrIxc;
      const Result expected = run(m, list, MachineConfig::kNeverNative, fp);
      const Result actual = run(m, list, 0, fp);
      CHECK(actual.sum == expected.sum);
      CHECK(actual.fp == expected.fp);
      if (actual.sum != expected.sum || actual.fp != expected.fp) show_first(m, list, fp);
      CHECK(expected.natively == 0);
      if (native::Engine::make(m, MemoryView{}, 1)) CHECK(actual.natively > 5 * kRows);
      if (resets) continue;  // lanes have states of their own then, which are interpreted
      const GroupResult lanes = run_group(m, list, simd::VectorCode::kNone, fp);
      for (const auto code : {simd::VectorCode::kAvx2, simd::VectorCode::kAvx512}) {
        if (code > simd::TraceCompiler::best()) continue;
        const GroupResult natively = run_group(m, list, code, fp);
        CHECK(natively.sums == lanes.sums);
        CHECK(natively.states == lanes.states);
        CHECK(natively.variants != 0);
      }
    }
  }
}

TEST_CASE("native floating point gives the softfloat's results and flags") {
  const uint64_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto to = [](FpFormat f) { return static_cast<uint8_t>(static_cast<int>(f) << 2); };
  check<float>({{.op = Op::fadd32}, {.op = Op::fsub32}, {.op = Op::fmul32}, {.op = Op::fdiv32},
                {.op = Op::fsqrt32}, {.op = Op::fma32}},
               FpFormat{}, random);
  check<double>({{.op = Op::fadd64}, {.op = Op::fsub64}, {.op = Op::fmul64}, {.op = Op::fdiv64},
                 {.op = Op::fsqrt64}, {.op = Op::fma64}},
                FpFormat{}, random);
  check<float>({{.op = Op::vfadd32}, {.op = Op::vfsub32}, {.op = Op::vfmul32}, {.op = Op::vfdiv32},
                {.op = Op::vfma32}},
               FpFormat{}, random, /*pairs=*/true);
  for (const int aux : {0, 32, 64, 96}) {
    const Uop u{.op = Op::i2f, .aux = static_cast<uint8_t>(aux)};
    check<float>({u}, FpFormat::kF32, random, /*pairs=*/true);
    check<double>({u}, FpFormat::kF32, random);
    check<double>({u}, FpFormat::kF64, random);
  }
  const std::initializer_list<Uop> comparisons = {
      {.op = Op::fcmp}, {.op = Op::fcmp, .aux = 4}, {.op = Op::fminmax}, {.op = Op::fminmax, .aux = 4}};
  check<float>(comparisons, FpFormat::kF32, random);
  check<double>(comparisons, FpFormat::kF64, random);
  check<float>({{.op = Op::fconvert, .aux = to(FpFormat::kF64)},
                {.op = Op::fconvert, .aux = to(FpFormat::kF16)}},
               FpFormat::kF32, random);
  check<double>({{.op = Op::fconvert, .aux = to(FpFormat::kF32)},
                 {.op = Op::fconvert, .aux = static_cast<uint8_t>(to(FpFormat::kF32) | 16)}},
                FpFormat::kF64, random);
  for (int rounding = 0; rounding <= static_cast<int>(FpRounding::kFpcrExact); ++rounding) {
    const auto aux = static_cast<uint8_t>(rounding << 2);
    check<float>({{.op = Op::fround, .aux = aux}}, FpFormat::kF32, random);
    check<double>({{.op = Op::fround, .aux = aux}}, FpFormat::kF64, random);
    if (rounding > static_cast<int>(FpRounding::kNearestAway)) continue;
    for (const bool is_signed : {false, true})
      for (const bool is_64 : {false, true}) {
        const Uop u{.op = Op::f2i,
                    .aux = f2i_aux(FpFormat{}, static_cast<FpRounding>(rounding), is_signed, is_64)};
        check<float>({u}, FpFormat::kF32, random);
        check<double>({u}, FpFormat::kF64, random);
      }
  }
}

}  // namespace
}  // namespace gpusim
