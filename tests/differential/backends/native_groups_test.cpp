// Native code of whole groups and of parts of them, in each instruction set that the processor has:
// every micro-op that computes a value, loads and stores of every size, and accesses that fault.
#include <doctest/doctest.h>

#include "device_sim/simd/simd_backend.h"
#include "device_sim/uir/softfloat/format.h"
#include "tests/differential/backends/run_case.h"
#include "tests/differential/backends/uop_fields.h"

namespace gpusim::difftest {
namespace {

constexpr uint32_t kCores = 64;
constexpr uint64_t kLinearBytes = 1 << 20, kReadable = kLinearBytes / 2, kOut = kReadable - 4096;
enum Slots : Slot { kA, kB, kC, kE, kResult, kSum, kRounds, kFrom, kTo, kStep, kFp, kSlots };

// How lanes read and write: neighbouring elements, or scattered ones.
struct Form {
  uint32_t size_bytes = 8;
  bool scattered = false;
  bool partial = false;  // some cores end early
  bool walks = true;     // what is read goes on; of lanes under a mask that leaves no pattern
  // Scattered: each so many lanes read one element, or neighbours, and write neighbours; 0: each
  // has one of its own.
  uint32_t together = 0;
  bool one = false;
  bool sums_last = false;  // only the last result is added up

  uint64_t from(uint32_t core) const {
    if (together == 0) return to(core);
    return to(core) - (one ? core % together * size_bytes : 0);
  }
  uint64_t to(uint32_t core) const {
    if (together == 0) return core * 37 % kCores * size_bytes;
    const uint32_t lines = kCores / together;
    return uint64_t{core / together * 3 % lines * together + core % together} * size_bytes;
  }
};

struct Machine {
  const Module& module;
  Form form;
  std::vector<uint8_t> memory;
  uint64_t step = 0;          // by which what is read goes on, each round
  uint32_t culprit = kCores;  // the core whose step leads out of what it may read
  uint64_t fp_state = softfloat::kFpsrIxc;
};

struct Outcome {
  std::vector<uint64_t> slots;
  std::vector<uint8_t> memory;
  std::vector<Fault> faults;
  bool operator==(const Outcome&) const = default;
};

Outcome run_machine(Backend& b, const Machine& m) {
  MachineConfig config;
  config.cores = kCores;
  config.linear_size = config.window_base = kLinearBytes;
  config.native_after = 0;
  config.regroup = false;  // what is tested is code for groups
  b.configure(m.module, config);
  b.set_permissions_all(0, kReadable, kRead | kWrite);
  b.write_memory(0, 0, m.memory);
  b.set_slots(kFrom, {0, m.form.size_bytes});
  b.set_slots(kTo, {kOut, m.form.size_bytes});
  b.set_slots(kStep, {m.step, 0});
  b.set_slots(kFp, {m.fp_state, 0});
  for (uint32_t core = 0; core < kCores; ++core) {
    if (m.form.scattered) {
      b.set_slot(core, kFrom, m.form.from(core));
      b.set_slot(core, kTo, kOut + m.form.to(core));
    }
    b.set_slot(core, kRounds, m.form.partial && core % 3 == 0 ? 10 : 30);
    // Rows of lanes from the start: code for the forms of the first round serves the others.
    b.set_slot(core, kSum, core * core * 0x123456789abcdef);
    b.set_slot(core, kResult, core * core * 0xfedcba987654321);
    if (core == m.culprit) b.set_slot(core, kStep, kReadable / 16);
  }
  b.start_all(0);
  Outcome r;
  r.faults.resize(kCores);
  while (b.runnable() != 0)
    for_each_core(b.run_slice(1000), [&](const Event& e) {
      r.faults[e.core] = e.fault;
      b.stop(e.core);
    });
  for (uint32_t core = 0; core < kCores; ++core)
    for (Slot s = 0; s < kSlots; ++s) r.slots.push_back(b.slot(core, s));
  r.memory.resize(kReadable);
  b.read_memory(0, 0, r.memory);
  return r;
}

void check_machine(const Machine& m) {
  const Outcome expected = run_machine(*make_backend("scalar"), m);
  for (const simd::VectorCode code : {simd::VectorCode::kAvx2, simd::VectorCode::kAvx512}) {
    if (code > simd::TraceCompiler::best()) break;
    CAPTURE(static_cast<int>(code));
    SimdBackend b;
    b.limit_groups_code(code);
    const Outcome actual = run_machine(b, m);
    CHECK(b.native_variants() > 0);
    CHECK(actual.faults == expected.faults);
    CHECK(actual.memory == expected.memory);
    for (uint32_t core = 0; core < kCores; ++core)
      for (Slot s = 0; s < kSlots; ++s) {
        const size_t i = core * kSlots + s;
        if (actual.slots[i] == expected.slots[i]) continue;
        FAIL_CHECK("core " << core << ", slot " << int(s) << ": " << std::hex << actual.slots[i]
                           << ", not " << expected.slots[i]);
        return;
      }
  }
}

// Rounds of: load four operands, compute, store what comes out.
Module make_module(const std::vector<Uop>& computing, Form form) {
  const Op load = form.size_bytes == 8   ? Op::ld64
                  : form.size_bytes == 4 ? Op::ldu32
                  : form.size_bytes == 2 ? Op::lds16w
                                         : Op::ldu8;
  const Op store = form.size_bytes == 8   ? Op::st64
                   : form.size_bytes == 4 ? Op::st32
                   : form.size_bytes == 2 ? Op::st16
                                          : Op::st8;
  Module m;
  std::vector<Uop>& uops = m.uops;
  for (const Slot s : {kA, kB, kC, kE})
    uops.push_back({.op = load, .d = s, .a = kFrom, .imm = uint64_t{s} * kCores * form.size_bytes});
  for (const Uop& u : computing) {
    uops.push_back(u);
    if (form.sums_last && &u != &computing.back()) continue;
    uops.push_back({.op = Op::rori64, .d = kSum, .a = kSum, .imm = 7});
    uops.push_back({.op = Op::add64, .d = kSum, .a = kSum, .b = kResult});
  }
  uops.push_back({.op = store, .d = kResult, .a = kTo});
  if (form.walks) uops.push_back({.op = Op::add64, .d = kFrom, .a = kFrom, .b = kStep});
  uops.push_back({.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}});
  uops.push_back({.op = Op::bri_ne32, .a = kRounds, .imm = Uop::pack_target(0, 0)});
  Block loop;
  loop.insn_count = loop.uop_count = static_cast<uint32_t>(uops.size());
  loop.classes[0] = static_cast<uint16_t>(uops.size());
  Block end;
  end.first_uop = loop.uop_count;
  end.insn_count = end.uop_count = end.classes[0] = 1;
  uops.push_back({.op = Op::trap,
                  .aux = static_cast<uint8_t>(Fault::kBreakpoint),
                  .imm = Uop::pack_target(1, 0)});
  m.blocks = {loop, end};
  m.slot_count = kSlots;
  m.uop_block.assign(uops.size(), 0);
  m.uop_insn.assign(uops.size(), 0);
  m.abi.fp_state = kFp;
  return m;
}

std::vector<uint8_t> operands(uint64_t (*one)(Rng&), Rng& rng) {
  std::vector<uint8_t> bytes(kReadable);
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = one(rng);
    std::memcpy(&bytes[i], &word, 8);
  }
  return bytes;
}
// Numbers in the middle of the range, which native code computes by itself.
uint64_t usual_double(Rng& rng) {
  return (rng.next() & 0x800fffffffffffff) | uint64_t{1015 + rng.below(16)} << 52;
}
uint64_t usual_floats(Rng& rng) {
  const auto one = [&] { return (rng.next() & 0x807fffff) | uint64_t{120 + rng.below(14)} << 23; };
  return one() | one() << 32;
}

TEST_CASE("native code of groups computes every micro-op as the scalar backend does") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  const std::vector<std::vector<uint8_t>> data = {
      operands(interesting_integer, rng), operands([](Rng& r) { return r.next(); }, rng),
      operands(interesting_float, rng), operands(usual_double, rng), operands(usual_floats, rng)};
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    const Shape shape = op_info(op).shape;
    if (shape > Shape::kGABC) continue;
    CAPTURE(std::string(op_info(op).name));
    const bool is_float = shape_info(shape).fp_state;
    for (size_t d = is_float ? 2 : 0; d < data.size(); ++d) {
      std::vector<Uop> computing;
      for (int n = 0; n < 4; ++n) {
        Uop u{.op = op, .d = kResult, .a = kA, .b = kB, .c = kC};
        random_fields(u, kFp, rng);
        if (shape == Shape::kSelCmp) u.aux = kE;
        computing.push_back(u);
      }
      const Form form{.size_bytes = rng.pick({4u, 8u, 8u}), .partial = rng.coin()};
      CAPTURE(form.size_bytes);
      CAPTURE(form.partial);
      CAPTURE(d);
      check_machine({make_module(computing, form), form, data[d], 4 * kCores * form.size_bytes});
    }
  }
}

// Their products and quotients are next to the least normal number, on both sides.
uint64_t floats_of_small_products(Rng& rng) {
  const auto one = [&] {
    const uint32_t fraction = rng.pick({0u, 1u, 2u, 0x7ffffeu, 0x7fffffu});
    return uint64_t{rng.pick({1u, 63u, 64u, 127u}) << 23 | fraction | rng.below(2) << 31};
  };
  return one() | one() << 32;
}

TEST_CASE("native code of groups computes floats in the states of PTX as the scalar backend does") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  constexpr uint64_t kQuiet = softfloat::kFpFullNan | 0xffffffff;
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    if (!shape_info(op_info(op).shape).fp_state) continue;
    CAPTURE(std::string(op_info(op).name));
    for (const uint64_t state : {kQuiet, kQuiet | softfloat::kFpcrFz | softfloat::kFpcrFz16}) {
      CAPTURE(state);
      for (const auto one : {interesting_float, floats_of_small_products}) {
        std::vector<Uop> computing;
        for (int n = 0; n < 6; ++n) {
          Uop u{.op = op, .d = kResult, .a = kA, .b = kB, .c = kC};
          random_fields(u, kFp, rng);
          computing.push_back(u);
        }
        const Form form{.size_bytes = rng.pick({4u, 8u}), .partial = rng.coin()};
        check_machine({.module = make_module(computing, form),
                       .form = form,
                       .memory = operands(one, rng),
                       .step = 4 * kCores * form.size_bytes,
                       .fp_state = state});
      }
    }
  }
}

uint64_t floats_with_nans(Rng& rng) {
  const auto one = [&]() -> uint64_t {
    if (rng.coin()) return usual_floats(rng) & 0xffffffff;
    return rng.pick({0x7f800000u, 0xff800000u, 0x7fffffffu, 0xffc00001u, 0x7f800001u, 0x7f000000u,
                     0u, 0x80000000u});
  };
  return one() | one() << 32;
}

// Results that are replaced, and from which others are computed: native code does not say which NaN
// they are.
TEST_CASE("native code of groups computes floats from floats in the states of PTX") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  constexpr uint64_t kQuiet = softfloat::kFpFullNan | 0xffffffff;
  const std::vector<uint8_t> data = operands(floats_with_nans, rng);
  for (int n = 0; n < 100; ++n) {
    std::vector<Uop> computing;
    while (computing.size() < 12) {
      const Op op = rng.pick({Op::fadd32, Op::fsub32, Op::fmul32, Op::fma32, Op::fma32, Op::fdiv32,
                              Op::fcmp, Op::fminmax, Op::fsqrt32, Op::add32, Op::fma64});
      Uop u{.op = op};
      random_fields(u, kFp, rng);
      u.d = rng.pick({kResult, kResult, kA});
      for (Slot* const s : {&u.a, &u.b, &u.c}) *s = rng.pick({kResult, kResult, kA, kB, kC});
      computing.push_back(u);
    }
    const Form form{.size_bytes = 4, .partial = rng.below(4) == 0, .sums_last = true};
    const uint64_t state = rng.coin() ? kQuiet : kQuiet | softfloat::kFpcrFz;
    check_machine({.module = make_module(computing, form),
                   .form = form,
                   .memory = data,
                   .step = 4 * kCores * form.size_bytes,
                   .fp_state = state});
  }
}

TEST_CASE("native code of groups loads and stores what the scalar backend does") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  const std::vector<uint8_t> data = operands([](Rng& r) { return r.next(); }, rng);
  const std::vector<Uop> computing = {{.op = Op::add64, .d = kResult, .a = kA, .b = kB},
                                      {.op = Op::xor64, .d = kResult, .a = kResult, .b = kC},
                                      {.op = Op::sub64, .d = kResult, .a = kResult, .b = kRounds}};
  for (const uint32_t size_bytes : {1, 2, 4, 8})
    for (const bool scattered : {false, true})
      for (const bool partial : {false, true}) {
        const Form form{size_bytes, scattered, partial, scattered || !partial};
        CAPTURE(size_bytes);
        CAPTURE(scattered);
        CAPTURE(partial);
        const Module module = make_module(computing, form);
        check_machine({module, form, data, 4 * kCores * size_bytes});
        // What one core may not read is found wherever its lane is.
        if (scattered)
          for (uint32_t culprit = 0; culprit < kCores; ++culprit)
            check_machine({module, form, data, 4 * kCores * size_bytes, culprit});
      }
}

// As threads of CTAs do, of which several rows make a group. A culprit is together with the others
// in the first round only.
TEST_CASE("native code of groups accesses elements of lanes that are together") {
  std::string why_not;
  if (!SimdBackend::available(&why_not)) return;
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  const std::vector<uint8_t> data = operands([](Rng& r) { return r.next(); }, rng);
  const std::vector<Uop> computing = {{.op = Op::add64, .d = kResult, .a = kA, .b = kB},
                                      {.op = Op::xor64, .d = kResult, .a = kResult, .b = kC},
                                      {.op = Op::sub64, .d = kResult, .a = kResult, .b = kE}};
  for (const uint32_t size_bytes : {1, 4, 8})
    for (const uint32_t together : {4, 8, 16, 32})
      for (const bool one : {false, true})
        for (const bool walks : {false, true}) {
          const Form form{.size_bytes = size_bytes,
                          .scattered = true,
                          .walks = walks,
                          .together = together,
                          .one = one};
          CAPTURE(size_bytes);
          CAPTURE(together);
          CAPTURE(one);
          const Module module = make_module(computing, form);
          check_machine({module, form, data, 4 * kCores * size_bytes});
          for (const uint32_t culprit : {0u, 7u, 15u, 16u, kCores - 1})
            check_machine({module, form, data, 4 * kCores * size_bytes, culprit});
        }
}

}  // namespace
}  // namespace gpusim::difftest
