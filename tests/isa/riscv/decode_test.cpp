// The decode table by itself: nested rows, both register widths, fields that reach visitors.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "translator/riscv/decode.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "translator/passes/operands.h"
#include "translator/riscv/compressed.h"
#include "translator/riscv/dispatch.h"
#include "translator/riscv/isa.h"
#include "translator/riscv/translate.h"

namespace gpusim::riscv {
namespace {

using Pair = std::pair<Op, Op>;

// Rows that lie inside another one and own its words (inner, outer). Declared here so that a new
// overlap is a decision.
const std::set<Pair> kNested = {{Op::PAUSE, Op::FENCE}};

TEST_CASE("rows that share words are nested, and declared") {
  std::set<Pair> found;
  for (const Row& a : rows(64)) {  // those of RV32 have the same patterns
    for (const Row& b : rows(64)) {
      if (&a == &b || !a.pattern.overlaps(b.pattern)) continue;
      INFO(a.name << " and " << b.name);
      CHECK((a.pattern.strictly_inside(b.pattern) != b.pattern.strictly_inside(a.pattern)));
      if (a.pattern.strictly_inside(b.pattern)) found.insert({a.op, b.op});
    }
  }
  CHECK(found == kNested);
}

TEST_CASE("the bucket look-up finds what a search of all rows finds") {
  std::mt19937 rng(20260101);
  for (const int xlen : {32, 64}) {
    for (int i = 0; i < 1'000'000; ++i) {
      const uint32_t word = static_cast<uint32_t>(rng()) | 3;
      const Row* owner = nullptr;
      for (const Row& row : rows(xlen))
        if (row.pattern.matches(word) &&
            (!owner || row.pattern.fixed_bits() > owner->pattern.fixed_bits()))
          owner = &row;
      if (owner && owner->allowed && !owner->allowed(word)) owner = nullptr;
      if (decode(word, xlen) != owner) FAIL_CHECK(xlen << " " << word);
    }
  }
}

TEST_CASE("what belongs to one register width") {
  struct Example {
    uint32_t word;
    bool in_32, in_64;
  };
  static constexpr Example kExamples[] = {
      {0x00053503, false, true},  // ld a0,0(a0)
      {0x02051513, false, true},  // slli a0,a0,32
      {0x01f51513, true, true},   // slli a0,a0,31
      {0x00b5053b, false, true},  // addw a0,a0,a1
      {0x00b5352f, false, true},  // amoadd.d a0,a1,(a0)
      {0x0805453b, false, true},  // zext.h of RV64
      {0x08054533, true, false},  // zext.h of RV32
      {0x6b855513, false, true},  // rev8 of RV64
      {0x69855513, true, false},  // rev8 of RV32
      {0xe2050553, false, true},  // fmv.x.d a0,fa0
      {0xe2150553, true, false},  // fmvh.x.d a0,fa0
      {0xc2251553, false, true},  // fcvt.l.d
      {0x28b5252f, true, true},   // amocas.w a0,a1,(a0)
      {0x28b5352f, false, true},  // amocas.d a0,a1,(a0)
      {0x28c5452f, false, true},  // amocas.q a0,a2,(a0)
      {0x28b5452f, false, false},  // the same with a1, an odd register
      {0x28c545af, false, false},  // to a1
  };
  for (const Example& e : kExamples) {
    CAPTURE(e.word);
    CHECK((decode(e.word, 32) != nullptr) == e.in_32);
    CHECK((decode(e.word, 64) != nullptr) == e.in_64);
  }
  CHECK(compressed_row(0x2001, 32) == "C_JAL");
  CHECK(compressed_row(0x2005, 64) == "");  // C.ADDIW to x0
  CHECK(compressed_row(0x2505, 64) == "C_ADDIW");
  CHECK(compressed_row(0x6100, 32) == "C_FLW");
  CHECK(compressed_row(0x6100, 64) == "C_LD");
  CHECK(expand(0x0000, 64) == 0);
  CHECK(instruction_bytes(0x4501) == 2);
  CHECK(instruction_bytes(0x0513) == 4);
}

TEST_CASE("a row belongs to a register width if some of its words are allocated there") {
  std::mt19937 rng(1);
  for (const int xlen : {32, 64}) {
    for (const Row& row : rows(xlen)) {
      bool found = false;
      for (int i = 0; i < 10000 && !found; ++i) {
        const uint32_t word =
            row.pattern.value | (static_cast<uint32_t>(rng()) & ~row.pattern.mask);
        const Row* const owner = decode(word, xlen);
        found = owner != nullptr && owner->op == row.op;
      }
      CAPTURE(xlen);
      CAPTURE(row.name);
      CHECK(belongs(row.op, xlen) == found);
    }
  }
}

TEST_CASE("every row has a translation") {
  for (const Row& row : rows(64)) {
    CAPTURE(row.name);
    CHECK(is_translated(row.op));
  }
}

gpusim::DraftBlock translate_alone(uint32_t word, int xlen, uint64_t pc) {
  BlockBuilder builder = make_block_builder();
  builder.begin_block(pc);
  translate_instruction(decode_any(word, xlen), pc, builder);
  return builder.take();
}

struct OneMicroOp {
  uint32_t word;
  gpusim::Op expected;
};
void check_one_micro_op(const OneMicroOp& e, int xlen) {
  CAPTURE(e.word);
  const gpusim::DraftBlock block = translate_alone(e.word, xlen, 0x10000);
  REQUIRE(block.uops.size() == 1);
  CHECK(block.uops[0].op == e.expected);
}

TEST_CASE("instructions on words, and on addresses made of words, are one micro-op each") {
  static constexpr OneMicroOp kExamples[] = {
      {0x00c5853b, gpusim::Op::addw},        // addw a0,a1,a2
      {0x40c5853b, gpusim::Op::subw},        // subw a0,a1,a2
      {0x02c5853b, gpusim::Op::mulw},        // mulw a0,a1,a2
      {0x00c5953b, gpusim::Op::sllw},        // sllw a0,a1,a2
      {0x00c5d53b, gpusim::Op::srlw},        // srlw a0,a1,a2
      {0x40c5d53b, gpusim::Op::sraw},        // sraw a0,a1,a2
      {0x0035851b, gpusim::Op::addiw},       // addiw a0,a1,3
      {0x0005851b, gpusim::Op::sbf64},       // sext.w a0,a1
      {0x0035951b, gpusim::Op::sbf64},       // slliw a0,a1,3
      {0x0035d51b, gpusim::Op::lsri32},      // srliw a0,a1,3
      {0x4035d51b, gpusim::Op::sbf64},       // sraiw a0,a1,3
      {0x08c5853b, gpusim::Op::add_uxtw64},  // add.uw a0,a1,a2
      {0x20c5c53b, gpusim::Op::add_uxtw64},  // sh2add.uw a0,a1,a2
  };
  for (const OneMicroOp& e : kExamples) check_one_micro_op(e, 64);
}

TEST_CASE("instructions of RV32 are one micro-op each, on 32 bits") {
  static constexpr OneMicroOp kExamples[] = {
      {0x00c58533, gpusim::Op::add32},      // add a0,a1,a2
      {0x40c58533, gpusim::Op::sub32},      // sub a0,a1,a2
      {0x02c58533, gpusim::Op::mul32},      // mul a0,a1,a2
      {0x00c59533, gpusim::Op::lsl32},      // sll a0,a1,a2
      {0x00c5d533, gpusim::Op::lsr32},      // srl a0,a1,a2
      {0x40c5d533, gpusim::Op::asr32},      // sra a0,a1,a2
      {0x00358513, gpusim::Op::addi32},     // addi a0,a1,3
      {0xfff58513, gpusim::Op::addi32},     // addi a0,a1,-1
      {0xfff5c513, gpusim::Op::xori64},     // not a0,a1: the immediate has 32 bits
      {0x00359513, gpusim::Op::lsli32},     // slli a0,a1,3
      {0x4035d513, gpusim::Op::asri32},     // srai a0,a1,3
      {0x0045a503, gpusim::Op::ldu32},      // lw a0,4(a1)
      {0x00458503, gpusim::Op::lds8w},      // lb a0,4(a1)
      {0x20c5c533, gpusim::Op::add_lsl32},  // sh2add a0,a1,a2
      {0x00b50463, gpusim::Op::br_eq32},    // beq a0,a1,.+8
      {0x0604d063, gpusim::Op::bri_ge32},   // bgez s1,.+96
  };
  for (const OneMicroOp& e : kExamples) check_one_micro_op(e, 32);
}

TEST_CASE("addresses of RV32 have 32 bits") {
  const auto last = [](uint32_t word, uint64_t pc) { return translate_alone(word, 32, pc); };
  CHECK(last(0xfffff517, 0x800).uops.back().imm == 0xfffff800);  // auipc a0,0xfffff
  CHECK(last(0x80000537, 0).uops.back().imm == 0x80000000);      // lui a0,0x80000
  CHECK(last(0xffc02503, 0).uops.back().imm == 0xfffffffc);      // lw a0,-4(zero)
  CHECK(last(0xfe000ee3, 0x0).end.taken_pc == 0xfffffffc);       // beqz zero,.-4
}

// docs/instruction_classes.md
TEST_CASE("instructions count in the class of what they are executed for") {
  using enum InsnClass;
  struct Example {
    uint32_t word;
    InsnClass expected;
  };
  static constexpr Example kExamples[] = {
      {0x00c58533, kIntegerArithmetic},  // add a0,a1,a2
      {0x0005851b, kIntegerArithmetic},  // addiw a0,a1,0
      {0x00001517, kIntegerArithmetic},  // auipc a0,1
      {0x02c5b533, kIntegerArithmetic},  // mulhu a0,a1,a2
      {0x20c5c533, kIntegerArithmetic},  // sh2add a0,a1,a2
      {0x0505, kIntegerArithmetic},      // c.addi a0,1
      {0x02c5c53b, kIntegerDivision},    // divw a0,a1,a2
      {0x02c5f533, kIntegerDivision},    // remu a0,a1,a2
      {0x6505, kIntegerLogical},         // c.lui a0,1
      {0x451d, kIntegerLogical},         // c.li a0,7
      {0x852e, kIntegerLogical},         // c.mv a0,a1
      {0x00058533, kIntegerLogical},     // add a0,a1,zero
      {0x0015f513, kIntegerLogical},     // andi a0,a1,1
      {0x4035d51b, kIntegerLogical},     // sraiw a0,a1,3
      {0x60259513, kIntegerLogical},     // cpop a0,a1
      {0x4855d513, kIntegerLogical},     // bexti a0,a1,5
      {0x0ac5e533, kIntegerLogical},     // max a0,a1,a2
      {0x22b58553, kIntegerLogical},     // fmv.d fa0,fa1
      {0x20b58553, kIntegerLogical},     // fmv.s fa0,fa1
      {0xe0050553, kIntegerLogical},     // fmv.x.w a0,fa0
      {0xf2050553, kIntegerLogical},     // fmv.d.x fa0,a0
      {0xf0178553, kIntegerLogical},     // fli.s fa0,0x1p-3
      {0x00c5a533, kIntegerComparison},  // slt a0,a1,a2
      {0x0015b513, kIntegerComparison},  // sltiu a0,a1,1
      {0x00c5f553, kFloatArithmetic},    // fadd.s fa0,fa1,fa2
      {0x20c58553, kFloatArithmetic},    // fsgnj.s fa0,fa1,fa2
      {0x20b5a553, kFloatArithmetic},    // fabs.s fa0,fa1
      {0x28c58553, kFloatArithmetic},    // fmin.s fa0,fa1,fa2
      {0xc0057553, kFloatArithmetic},    // fcvt.w.s a0,fa0
      {0x18c5f553, kFloatDivision},      // fdiv.s fa0,fa1,fa2
      {0xa2b51553, kFloatComparison},    // flt.d a0,fa0,fa1
      {0xe0051553, kFloatComparison},    // fclass.s a0,fa0
      {0x6ac5f543, kDoubleArithmetic},   // fmadd.d fa0,fa1,fa2,fa3
      {0x22b59553, kDoubleArithmetic},   // fneg.d fa0,fa1
      {0x4015f553, kDoubleArithmetic},   // fcvt.s.d fa0,fa1
      {0x1ac5f553, kDoubleDivision},     // fdiv.d fa0,fa1,fa2
      {0x5805f553, kSpecialFunction},    // fsqrt.s fa0,fa1
      {0x6588, kOffChipMemory},          // c.ld a0,8(a1)
      {0x00a5a427, kOffChipMemory},      // fsw fa0,8(a1)
      {0x4512, kOffChipMemory},          // c.lwsp a0,4(sp)
      {0x00b50463, kControlFlow},        // beq a0,a1,.+8
      {0xa011, kControlFlow},            // c.j .+4
      {0x9502, kControlFlow},            // c.jalr a0
      {0x1005a52f, kParallelism},        // lr.w a0,(a1)
      {0x00b6352f, kParallelism},        // amoadd.d a0,a1,(a2)
      {0x0ff0000f, kParallelism},        // fence
      {0x0000100f, kParallelism},        // fence.i
      {0x0100000f, kParallelism},        // pause
      {0x6c102013, kParallelism},        // our hint to wait
      {0x00000073, kOther},              // ecall
      {0x00302573, kOther},              // csrr a0,fcsr
      {0x0001, kOther},                  // c.nop
      {0x00000013, kOther},              // nop
      {0x6c052013, kOther},              // our hint for the core's number
  };
  for (const Example& e : kExamples) {
    const Insn insn = decode_any(e.word, 64);
    CAPTURE(e.word);
    REQUIRE(insn);
    BlockBuilder builder = make_block_builder();
    builder.begin_block(0x10000);
    translate_instruction(insn, 0x10000, builder);
    REQUIRE(builder.draft().classes.size() == 1);
    CHECK(kInsnClassNames[static_cast<int>(builder.draft().classes[0])] ==
          std::string(kInsnClassNames[static_cast<int>(e.expected)]));
  }
}

TEST_CASE("no acquire passes a release") {
  struct Example {
    uint32_t word;
    const char* expected;
  };
  static constexpr Example kExamples[] = {
      {0x0ab6352f, "fence amo_swp fence"},  // amoswap.d.rl a0,a1,(a2)
      {0x1ab6352f, "fence stx fence"},      // sc.d.rl a0,a1,(a2)
      {0x04b6352f, "amo_add fence"},        // amoadd.d.aq a0,a1,(a2)
      {0x00b6352f, "amo_add"},              // amoadd.d a0,a1,(a2)
  };
  for (const Example& e : kExamples) {
    CAPTURE(e.word);
    const gpusim::DraftBlock block = translate_alone(e.word, 64, 0x10000);
    std::string names;
    for (const Uop& u : block.uops)
      names += (names.empty() ? "" : " ") + std::string(op_info(u.op).name);
    CHECK(names == e.expected);
  }
}

TEST_CASE("links and targets know the instruction's length") {
  for (const auto& [word, bytes] : {std::pair{0x9502u, 2u}, std::pair{0x000500e7u, 4u}}) {
    BlockBuilder builder = make_block_builder();
    builder.begin_block(0x10000);
    const Insn insn = decode_any(word, 64);  // c.jalr a0, jalr ra,0(a0)
    REQUIRE(insn);
    CHECK(insn.bytes == bytes);
    CHECK(translate_instruction(insn, 0x10000, builder) == InsnResult::kEndsBlock);
    bool links = false;
    for (const Uop& u : builder.draft().uops)
      links |= u.op == gpusim::Op::konst && u.d == kRa && u.imm == 0x10000 + bytes;
    CHECK(links);
  }
  const ControlFlow flow = control_flow(decode_any(0xbfed, 64), 0x10010);  // c.j .-6
  CHECK(flow.target == 0x1000a);
  CHECK_FALSE(flow.falls_through);
}

TEST_CASE("what translation on demand takes from words alone is what translation says") {
  const auto check = [](const GuestIsa& isa, uint32_t word) {
    const Insn insn = decode_any(word, static_cast<int>(isa.register_bits));
    if (!insn) return;
    CAPTURE(isa.name);
    CAPTURE(word);
    constexpr uint64_t kPc = 0x10000;
    BlockBuilder builder = make_block_builder();
    builder.begin_block(kPc);
    translate_instruction(insn, kPc, builder);
    for (const Uop& u : builder.draft().uops)
      for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
        for (int k = 0; k < std::max(reads, writes); ++k)
          if (std::ranges::count(isa.rare_slots.slots, static_cast<Slot>(s + k)) != 0)
            CHECK(isa.rare_slots.may_use(word));
      });
    const auto* bytes = reinterpret_cast<const uint8_t*>(&word);
    std::vector<uint64_t> targets;
    isa.find_targets(kPc, {bytes, insn.bytes}, targets);
    const auto target = control_flow(insn, kPc).target;
    CHECK(targets == (target ? std::vector{*target} : std::vector<uint64_t>{}));
  };
  std::mt19937_64 rng(1);
  for (const GuestIsa* isa : {&kIsa, &kIsa32}) {
    const int xlen = static_cast<int>(isa->register_bits);
    for (uint32_t half = 0; half < 0x10000; ++half)
      if ((half & 3) != 3) check(*isa, half);
    for (const Row& row : rows(xlen))
      for (int i = 0; belongs(row.op, xlen) && i < 300; ++i)
        check(*isa, random_word(row, xlen, rng));
  }
}

}  // namespace
}  // namespace gpusim::riscv
