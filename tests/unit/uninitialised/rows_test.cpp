// What rules say of undefined bits, compared with the micro-op on every setting of these bits.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <string>
#include <vector>

#include "device_sim/core/execute.h"
#include "host/uninitialised/rows.h"
#include "tests/differential/backends/uop_fields.h"

namespace gpusim::host::uninitialised {
namespace {

using difftest::Rng;

constexpr Slot kD = 0, kA = 1, kB = 2, kC = 3, kE = 4;

struct Registers {
  std::array<uint64_t, 256> slots{};
  uint64_t get(Slot s) const { return slots[s]; }
  void set(Slot s, uint64_t value) { slots[s] = value; }
};

uint64_t result_of(const Uop& u, Registers registers) {
  StopInfo stop;
  const Outcome outcome = execute(u, registers, MemoryView{}, 0, stop);
  if (outcome == Outcome::kTaken) return 1;
  if (outcome == Outcome::kNotTaken) return 0;
  REQUIRE(outcome == Outcome::kNext);
  return registers.get(kD);
}

// Operands of a row with a few undefined bits, anywhere or next to each other.
struct Operand {
  Slot slot;
  uint64_t undefined = 0;
};
struct Case {
  Uop u;
  Registers registers;
  std::vector<Operand> operands;
  std::array<uint64_t, 256> undefined{};

  Operands in() const { return {registers.slots.data(), undefined.data()}; }
  // The bits of the result that differ among all settings.
  uint64_t depends() const {
    const uint64_t result = result_of(u, registers);
    uint64_t differ = 0;
    std::vector<std::pair<Slot, int>> bits;
    for (const Operand& o : operands)
      for (int bit = 0; bit < 64; ++bit)
        if (o.undefined >> bit & 1) bits.emplace_back(o.slot, bit);
    for (uint32_t setting = 0; setting < 1u << bits.size(); ++setting) {
      Registers other = registers;
      for (size_t i = 0; i < bits.size(); ++i) {
        uint64_t& x = other.slots[bits[i].first];
        const uint64_t mask = uint64_t{1} << bits[i].second;
        x = setting >> i & 1 ? x | mask : x & ~mask;
      }
      differ |= result_of(u, other) ^ result;
    }
    return differ;
  }
};

Case random_case(Op op, Rng& rng) {
  constexpr uint32_t kMostBits = 6;
  const ShapeInfo shape = shape_info(op_info(op).shape);
  Case c{.u = {.op = op, .d = kD, .a = kA, .b = kB, .c = kC}, .registers = {}, .operands = {}};
  difftest::random_fields(c.u, kE, rng);
  if (shape.e.reads) c.u.e = kE;
  if (shape.fp_state) c.registers.set(kE, 0);
  const auto add = [&](Slot slot) {
    c.registers.set(slot, rng.coin() || !shape.fp_state ? difftest::interesting_integer(rng)
                                                        : difftest::interesting_float(rng));
    Operand o{slot};
    const uint32_t first = rng.below(60);
    for (uint32_t n = rng.below(kMostBits + 1); n != 0; --n)
      o.undefined |= uint64_t{1} << (rng.coin() ? rng.below(64) : first + rng.below(4));
    if (rng.once_in(3)) o.undefined |= uint64_t{1} << (rng.coin() ? 63 : 31);  // signs decide flags
    if (rng.once_in(3)) o.undefined = 0;
    c.undefined[slot] = o.undefined;
    c.operands.push_back(o);
  };
  if (op_info(op).shape == Shape::kBrAI)
    c.u.set_imm16(
        static_cast<uint16_t>(op_info(op).fields == Fields::kBit ? rng.below(64) : rng.next()));
  if (shape.a.reads) add(kA);
  if (shape.b.reads) add(kB);
  if (shape.c.reads && !shape.fp_state) add(kC);
  if (shape.c.reads && shape.fp_state) add(kC);
  if (shape.e.reads) add(kE);
  // Branches are decided by few bits.
  const Shape kind = op_info(op).shape;
  if (kind == Shape::kBrAB && rng.coin()) c.registers.set(kB, c.registers.get(kA) ^ rng.below(4));
  if (kind == Shape::kBrAI && rng.coin()) {
    c.registers.set(
        kA, static_cast<uint64_t>(int64_t{static_cast<int16_t>(c.u.imm16())}) ^ rng.below(4));
    if (op_info(op).fields == Fields::kBit || op_info(op).fields == Fields::kTruthTable) {
      c.operands[0].undefined =
          op == Op::br_cond ? 1 + rng.below(15) : uint64_t{1} << (c.u.imm16() & 63);
      c.undefined[kA] = c.operands[0].undefined;
    }
  }
  // Too many together take too long to set in all ways.
  uint32_t bits = 0;
  for (Operand& o : c.operands) {
    while (bits + static_cast<uint32_t>(std::popcount(o.undefined)) > 9)
      o.undefined &= o.undefined - 1;
    bits += static_cast<uint32_t>(std::popcount(o.undefined));
    c.undefined[o.slot] = o.undefined;
  }
  return c;
}

// Rows whose results the domain asks by trying.
bool is_tried(Op op) {
  switch (op) {
    case Op::udiv64:
    case Op::udiv32:
    case Op::sdiv64:
    case Op::sdiv32:
    case Op::help1:
    case Op::help2:
    case Op::help3:
      return true;
    default:
      return shape_info(op_info(op).shape).fp_state && op != Op::fcmp;
  }
}
bool is_comparison_flags(Op op) { return op == Op::fl_sub64 || op == Op::fl_sub32; }
// One primitive each, which is exact.
bool is_exact(Op op) {
  switch (op) {
    case Op::mov:
    case Op::mov32:
    case Op::and64:
    case Op::or64:
    case Op::xor64:
    case Op::bic64:
    case Op::andi64:
    case Op::ori64:
    case Op::ubfx:
    case Op::bfi64:
    case Op::extr64:
    case Op::lsli64:
    case Op::lsri32:
    case Op::asri64:
    case Op::lsr64:
    case Op::asr64:
    case Op::cset:
    case Op::rbit64:
    case Op::vdup:
    case Op::vzip1:
    case Op::vcmeq:
    case Op::vcmhi:
    case Op::vcmgt:
    case Op::br_eq64:
    case Op::br_ne32:
    case Op::br_lt64:
    case Op::br_geu32:
    case Op::bri_eq64:
    case Op::br_bit1:
    case Op::br_cond:
      return true;
    default:
      return false;
  }
}

TEST_CASE("rules miss no bit that depends on undefined ones, and trying adds none") {
  const uint64_t seed = difftest::seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  uint64_t tried = 0, seen = 0;
  for (int n = 0; n < kOpCount; ++n) {
    const auto op = static_cast<Op>(n);
    const Shape shape = op_info(op).shape;
    const bool is_value = shape_info(shape).pure || shape_info(shape).fp_state;
    const bool is_branch = shape == Shape::kBrAB || shape == Shape::kBrAI;
    if (!(is_value || is_branch) || is_comparison_flags(op)) continue;
    CAPTURE(std::string(op_info(op).name));
    uint64_t undefined_bits = 0;
    for (int round = 0; round < 150; ++round) {
      const Case c = random_case(op, rng);
      CAPTURE(c.u.imm);
      CAPTURE(int{c.u.aux});
      for (const Operand& o : c.operands) CAPTURE(o.undefined);
      const uint64_t depends = c.depends();
      Bits rule;
      if (is_branch) {
        const Truth truth = branch_of(c.u, c.in());
        rule = {truth.value, truth.undefined};
      } else {
        rule = value_of(c.u, c.in());
      }
      REQUIRE(rule.value == result_of(c.u, c.registers));
      if (is_tried(op)) {
        REQUIRE((rule.undefined & ~depends) == 0);
        tried += static_cast<uint64_t>(std::popcount(depends));
        seen += static_cast<uint64_t>(std::popcount(rule.undefined));
      } else {
        REQUIRE((depends & ~rule.undefined) == 0);
      }
      if (is_exact(op)) REQUIRE(rule.undefined == depends);
      undefined_bits += static_cast<uint64_t>(std::popcount(depends));
    }
    if (shape != Shape::kDI && op != Op::help1 && op != Op::help2) CHECK(undefined_bits != 0);
  }
  CHECK(seen * 10 >= tried * 7);  // most are
}

// N, Z, C and V of a comparison are one question each for two of them: what conditions make of
// them.
TEST_CASE("conditions behind comparisons are exact") {
  const uint64_t seed = difftest::seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  // EQ, NE, CS, CC, GE and LT of flags N << 3 | Z << 2 | C << 1 | V.
  const auto table = [](auto holds) {
    uint16_t bits = 0;
    for (unsigned f = 0; f < 16; ++f)
      if (holds(f >> 3 & 1, f >> 2 & 1, f >> 1 & 1, f & 1))
        bits = static_cast<uint16_t>(bits | 1u << f);
    return bits;
  };
  const uint16_t equal = table([](unsigned, unsigned z, unsigned, unsigned) { return z != 0; });
  const uint16_t carry = table([](unsigned, unsigned, unsigned c, unsigned) { return c != 0; });
  const uint16_t less = table([](unsigned n, unsigned, unsigned, unsigned v) { return n != v; });
  const uint16_t conditions[] = {equal,
                                 carry,
                                 less,
                                 static_cast<uint16_t>(~equal),
                                 static_cast<uint16_t>(~carry),
                                 static_cast<uint16_t>(~less)};
  for (int round = 0; round < 6000; ++round) {
    Case c = random_case(rng.coin() ? Op::fl_sub64 : Op::fl_sub32, rng);
    const Bits flags = value_of(c.u, c.in());
    const Uop branch = Uop{.op = Op::br_cond, .a = kD}.with_imm16(rng.of(conditions));
    Registers of_flags;
    std::array<uint64_t, 256> undefined{};
    of_flags.set(kD, flags.value);
    undefined[kD] = flags.undefined;
    const Truth taken = branch_of(branch, {of_flags.slots.data(), undefined.data()});
    // All settings, through the micro-ops as they are.
    bool differ = false;
    const Registers before = c.registers;
    std::vector<std::pair<Slot, int>> bits;
    for (const Operand& o : c.operands)
      for (int bit = 0; bit < 64; ++bit)
        if (o.undefined >> bit & 1) bits.emplace_back(o.slot, bit);
    for (uint32_t setting = 0; setting < 1u << bits.size(); ++setting) {
      Registers other = before;
      for (size_t i = 0; i < bits.size(); ++i) {
        uint64_t& x = other.slots[bits[i].first];
        const uint64_t mask = uint64_t{1} << bits[i].second;
        x = setting >> i & 1 ? x | mask : x & ~mask;
      }
      Registers result;
      result.set(kD, result_of(c.u, other));
      differ |= (result_of(branch, result) != 0) != taken.value;
    }
    CAPTURE(std::string(op_info(c.u.op).name));
    CAPTURE(branch.imm16());
    REQUIRE(taken.undefined == differ);
  }
}

}  // namespace
}  // namespace gpusim::host::uninitialised
