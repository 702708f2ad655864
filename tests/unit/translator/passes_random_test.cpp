// Random programs of micro-ops behave the same with and without the passes.
#include <doctest/doctest.h>

#include <random>

#include "device_sim/core/execute.h"
#include "tests/unit/translator/seed.h"
#include "translator/a64/registers.h"
#include "translator/common/isa_list.h"
#include "translator/common/link.h"
#include "translator/passes/dead_values.h"
#include "translator/passes/optimise.h"
#include "translator/passes/renumber_slots.h"
#include "translator/passes/zero_slots.h"

namespace gpusim {
namespace {

constexpr int kBlocks = 6;
constexpr uint64_t kText = 0x10000;
constexpr uint64_t kBlockStep = 0x1000;
constexpr int kRegisters = 6;
constexpr Slot kOnlyZero = a64::v_high(0), kMostlyZero = a64::v_high(1);

class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : rng_(seed) {}

  // At kText + i * kBlockStep; a block that goes on does so at the next one.
  std::vector<CodeBlock> make() {
    std::vector<CodeBlock> blocks;
    blocks.reserve(kBlocks);
    for (int i = 0; i < kBlocks; ++i) blocks.push_back(make_block(i));
    return blocks;
  }

 private:
  uint32_t below(uint32_t n) { return std::uniform_int_distribution<uint32_t>(0, n - 1)(rng_); }
  bool coin() { return below(2) != 0; }
  Slot reg() { return static_cast<Slot>(below(kRegisters)); }
  Slot source(bool temps) {
    const uint32_t n = below(12);
    if (n == 0) return a64::kZero;
    if (n == 10) return kOnlyZero;
    if (n == 11) return kMostlyZero;
    return temps && n < 5 ? static_cast<Slot>(a64::kFirstTemp + below(2)) : reg();
  }
  Slot destination() {
    const uint32_t n = below(10);
    if (n == 0) return a64::kSink;
    return n < 5 ? static_cast<Slot>(a64::kFirstTemp + below(2)) : reg();
  }
  uint64_t constant() {
    constexpr uint64_t kInteresting[] = {0,
                                         1,
                                         2,
                                         0x7fff,
                                         0x8000,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         uint64_t{1} << 40,
                                         ~uint64_t{0},
                                         uint64_t{1} << 63,
                                         ~uint64_t{0} >> 1};
    return coin() ? kInteresting[below(std::size(kInteresting))] : rng_();
  }

  CodeBlock make_block(int index) {
    BlockBuilder b = all_isas()[0]->make_builder();
    b.begin_block(pc_of(index));
    const uint32_t instructions = 1 + below(8);
    for (uint32_t i = 0; i < instructions; ++i) {
      b.begin_instruction();
      // Temporaries are written before they are read.
      b.konst(a64::kFirstTemp, constant());
      b.emit(Op::mov, a64::kFirstTemp + 1, reg());
      const uint32_t uops = 1 + below(3);
      for (uint32_t n = 0; n < uops; ++n) emit_value(b);
      if (below(4) == 0) b.mov(coin() ? kOnlyZero : kMostlyZero, coin() ? a64::kZero : kOnlyZero);
      if (below(40) == 0) b.mov(kMostlyZero, reg());
      if (below(8) == 0) b.ldu32(reg(), source(true), constant() & 0xfff);
    }
    if (below(4) != 0) emit_end(b);
    CodeBlock block;
    block.draft = b.take();
    block.next_pc = pc_of(index + 1);
    return block;
  }

  static uint64_t pc_of(int index) { return kText + static_cast<uint64_t>(index) * kBlockStep; }
  // Sometimes where no block is.
  uint64_t target() { return pc_of(static_cast<int>(below(kBlocks + 1))); }

  void emit_value(BlockBuilder& b) {
    constexpr Op kBinary[] = {Op::add64, Op::add32, Op::sub64, Op::sub32, Op::and64, Op::and32,
                              Op::or64,  Op::or32,  Op::xor64, Op::xor32, Op::bic64, Op::orn64,
                              Op::eon64, Op::lsl64, Op::lsl32, Op::lsr64, Op::lsr32, Op::asr64,
                              Op::asr32, Op::ror64, Op::ror32, Op::mul64, Op::mul32, Op::udiv32};
    constexpr Op kShifted[] = {Op::add_lsl64, Op::add_lsl32, Op::sub_lsl64, Op::sub_lsl32,
                               Op::add_sxtw64};
    constexpr Op kImmediate[] = {Op::addi64, Op::addi32, Op::andi64, Op::ori64,
                                 Op::ori32,  Op::xori64, Op::xori32};
    constexpr Op kShift[] = {Op::lsli64, Op::lsri64, Op::asri64, Op::rori64};
    constexpr Op kShift32[] = {Op::lsli32, Op::lsri32, Op::asri32, Op::rori32};
    constexpr Op kTernary[] = {Op::madd64, Op::madd32, Op::msub64, Op::umaddl};
    constexpr Op kSelect[] = {Op::csel64,  Op::csel32,  Op::csinc64, Op::csinc32,
                              Op::csinv64, Op::csinv32, Op::csneg64, Op::csneg32};
    constexpr Op kCompare[] = {Op::fl_sub64, Op::fl_sub32, Op::fl_add64, Op::fl_add32,
                               Op::fl_nz64, Op::fl_nz32};
    constexpr Op kUnary[] = {Op::mov, Op::mov32, Op::clz32, Op::rev64, Op::rev16};
    const auto pick = [&](const auto& list) { return list[below(std::size(list))]; };
    const Slot a = source(true), c = source(true);
    switch (below(14)) {
      case 0:
      case 1:
        b.emit(pick(kBinary), destination(), a, c);
        break;
      case 2:
        b.emit(pick(kShifted), destination(), a, c, 0, below(5));
        break;
      case 3:
        b.emit(pick(kImmediate), destination(), a, 0, 0, constant());
        break;
      case 4:
        b.emit(pick(kShift), destination(), a, 0, 0, below(64));
        break;
      case 5:
        b.emit(pick(kShift32), destination(), a, 0, 0, below(32));
        break;
      case 6:
        b.emit(pick(kTernary), destination(), a, c, source(true));
        break;
      case 7:
        b.emit(pick(kSelect), destination(), a, c, a64::kNzcv).set_imm16(random_condition());
        break;
      case 8:
        b.emit(pick(kCompare), a64::kNzcv, a, c);
        break;
      case 9:
        b.emit(Op::andi64, a64::kFirstTemp, a, 0, 0,
               coin() ? uint64_t{1} << below(64) : constant());
        b.emit(coin() ? Op::fl_nz64 : Op::fl_nz32, a64::kNzcv, a64::kFirstTemp);
        break;
      case 10:
        b.set_if(destination(), a64::kNzcv, random_condition());
        break;
      case 11:
      case 12: {
        // Flags, perhaps with the value that they describe, and a select or two.
        const Op compare = pick(kCompare);
        b.emit(compare, a64::kNzcv, a, c);
        if (compare == Op::fl_sub32 && coin()) b.emit(Op::sub32, destination(), a, c);
        if (compare == Op::fl_add64 && coin()) b.emit(Op::add64, destination(), a, c);
        for (int n = coin() ? 2 : 1; n > 0; --n)
          b.emit(pick(kSelect), destination(), source(true), coin() ? a : c, a64::kNzcv)
              .set_imm16(random_condition());
        break;
      }
      default:
        b.emit(pick(kUnary), destination(), a);
        break;
    }
  }

  uint16_t random_condition() { return a64::condition_mask(below(15)); }

  void emit_end(BlockBuilder& b) {
    switch (below(12)) {
      case 0:
        b.jmp(target());
        break;
      case 1:
        b.jmp_reg(reg(), JumpHint::kNone);
        break;
      case 2:
        b.branch(Op::br_lt32, reg(), reg(), target());
        break;
      case 3:
        b.branch_imm(Op::bri_ne64, reg(), static_cast<uint16_t>(below(3)), target());
        break;
      case 4:
      case 5: {
        // As SUBS with one register for source and destination.
        const bool wide = coin();
        const Slot r = reg();
        if (coin()) {
          const uint64_t c = coin() ? below(4) : constant();
          b.konst(a64::kFirstTemp, c);
          b.emit(wide ? Op::fl_sub64 : Op::fl_sub32, a64::kNzcv, r, a64::kFirstTemp);
          b.emit(wide ? Op::addi64 : Op::addi32, r, r, 0, 0, 0 - c);
        } else {
          const Slot other = reg();
          b.emit(wide ? Op::fl_sub64 : Op::fl_sub32, a64::kNzcv, r, other);
          b.emit(wide ? Op::sub64 : Op::sub32, r, r, other);
        }
        if (below(4) == 0) b.emit(Op::mov, reg(), reg());
        b.branch_imm(Op::br_cond, a64::kNzcv, random_condition(), target());
        break;
      }
      default:
        if (coin())
          b.emit(coin() ? Op::fl_sub64 : Op::fl_sub32, a64::kNzcv, source(true), source(true));
        b.branch_imm(Op::br_cond, a64::kNzcv, random_condition(), target());
        break;
    }
  }

  std::mt19937_64 rng_;
};

// What a guest can see of a run: registers where a block begins or the core stops.
struct Trace {
  std::vector<uint64_t> values;
  bool operator==(const Trace&) const = default;
};

struct Registers {
  std::array<uint64_t, 256> slots{};
  uint64_t get(Slot s) const { return slots[s]; }
  void set(Slot s, uint64_t v) { slots[s] = v; }
};

Module build(std::vector<CodeBlock> blocks, bool optimise) {
  const GuestIsa& isa = *all_isas()[0];
  for (CodeBlock& b : blocks) remove_sink_writes(isa, b.draft);
  if (optimise) {
    const SlotSet zero_slots = find_zero_slots(isa, blocks);
    for (CodeBlock& b : blocks) replace_zero_slots(isa, zero_slots, b.draft);
  }
  const SlotMap map = make_slot_map(isa, used_slots(blocks), false);
  Module module;
  module.code.text_base = kText;
  module.code.uop_at.assign(kBlocks * kBlockStep / 4, kNoUop);
  module.code.insn_class.assign(kBlocks * kBlockStep / 4, 0);
  if (optimise)
    optimise_blocks(isa,
                    {.whole_program = true, .is_function = [](uint64_t pc) { return pc == kText; }},
                    blocks);
  for (CodeBlock& b : blocks) REQUIRE(renumber_slots(map, b));
  describe_slots(isa, map, module);
  link_blocks(std::move(blocks), module);
  return module;
}

Trace run(const Module& module, uint64_t seed) {
  const GuestIsa& isa = *all_isas()[0];
  const SlotMap map = recover_slot_map(isa, module);
  std::mt19937_64 rng(seed);
  Registers registers;
  for (int r = 0; r < kRegisters; ++r) {
    const uint64_t value = rng() >> (rng() % 64);
    if (map[static_cast<size_t>(r)] != kNoSlot)
      registers.set(static_cast<Slot>(map[static_cast<size_t>(r)]), value);
  }
  Trace trace;
  const auto note = [&](uint64_t what, bool flags) {
    trace.values.push_back(what);
    for (int s = 0; s < isa.slot_count; ++s) {
      const int to = map[static_cast<size_t>(s)];
      const auto slot = static_cast<Slot>(s);
      const bool hidden =
          isa.roles.is_temp(slot) || slot == isa.roles.sink || (slot == isa.roles.flags && !flags);
      if (hidden) continue;
      trace.values.push_back(to == kNoSlot ? 0 : registers.get(static_cast<Slot>(to)));
    }
  };
  const MemoryView no_memory;
  uint32_t at = 0;
  int completed = 0;
  while (completed < 40) {
    const Uop& u = module.uops[at];
    StopInfo stop{};
    const Outcome outcome = execute(u, registers, no_memory, 0, stop);
    const auto complete = [&](uint32_t next) {
      ++completed;
      note(module.blocks[u.block()].pc, false);
      at = next;
    };
    switch (outcome) {
      case Outcome::kNext:
        ++at;
        break;
      case Outcome::kLink:
        at = u.target();
        break;
      case Outcome::kTaken:
        complete(u.target());
        break;
      case Outcome::kNotTaken:
        complete(at + 1);
        break;
      case Outcome::kJumpReg:
        note(registers.get(u.a), true);
        return trace;
      default:
        note(static_cast<uint64_t>(stop.fault), false);
        note(module.blocks[module.uop_block[at]].pc, false);
        note(module.uop_insn[at], false);
        return trace;
    }
  }
  return trace;
}

TEST_CASE("optimised random programs do what the unoptimised ones do") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  size_t before = 0, after = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    const std::vector<CodeBlock> blocks = RandomProgram(seed + i).make();
    const Module plain = build(blocks, false), optimised = build(blocks, true);
    before += plain.uops.size();
    after += optimised.uops.size();
    for (uint64_t start = 0; start < 4; ++start) {
      INFO("program " << i << ", start " << start);
      REQUIRE(run(optimised, start) == run(plain, start));
    }
  }
  CHECK(after < before);
}

}  // namespace
}  // namespace gpusim
