// The micro-ops and classes of typical instructions, and what the block former relies on. Whether
// they compute the right values is for ../insn_oracle to tell.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "translator/a64/translate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "device_sim/uir/check_fields.h"
#include "translator/a64/decode.h"
#include "translator/a64/isa.h"
#include "translator/common/limits.h"
#include "translator/passes/operands.h"

namespace gpusim::a64 {
namespace {

using MicroOp = gpusim::Op;
constexpr uint64_t kPc = 0x400100;

DraftBlock translate(std::initializer_list<uint32_t> words, InsnResult* last = nullptr) {
  BlockBuilder builder = make_block_builder();
  builder.begin_block(kPc);
  uint64_t pc = kPc;
  for (const uint32_t word : words) {
    const InsnResult result = translate_instruction(word, pc, builder);
    if (last) *last = result;
    pc += 4;
  }
  return builder.take();
}

std::string names(const DraftBlock& block) {
  std::string text;
  for (const Uop& u : block.uops)
    text += (text.empty() ? "" : " ") + std::string(op_info(u.op).name);
  return text;
}

// A sequence of words and the names of the micro-ops that they should become.
struct Example {
  std::initializer_list<uint32_t> words;
  const char* expected;
  InsnClass last_class;
};

TEST_CASE("typical instructions take the direct micro-op") {
  using enum InsnClass;
  const Example examples[] = {
      {{0x910043ff}, "addi64", kIntegerArithmetic},                   // add sp, sp, #16
      {{0xd10043ff}, "addi64", kIntegerArithmetic},                   // sub sp, sp, #16
      {{0x910003fd}, "mov", kIntegerArithmetic},                      // mov x29, sp
      {{0xaa0103e0}, "mov", kIntegerLogical},                         // mov x0, x1
      {{0x2a0103e0}, "mov32", kIntegerLogical},                       // mov w0, w1
      {{0xd2800540}, "konst", kIntegerLogical},                       // mov x0, #42
      {{0x92800000}, "konst", kIntegerLogical},                       // mov x0, #-1
      {{0x32000fe0}, "konst", kIntegerLogical},                       // mov w0, #15 (orr)
      {{0xd2824680, 0xf2a8ace0}, "konst konst", kIntegerLogical},     // movz, movk
      {{0xf2a8ace0}, "andi64 ori64", kIntegerLogical},                // movk x0, ...
      {{0x90000000, 0x91004000}, "konst konst", kIntegerArithmetic},  // adrp x0; add x0, x0, #16
      {{0x8b010c00}, "add_lsl64", kIntegerArithmetic},                // add x0, x0, x1, lsl #3
      {{0x8b21cc00}, "add_sxtw64", kIntegerArithmetic},               // add x0, x0, w1, sxtw #3
      {{0x8b010000}, "add64", kIntegerArithmetic},                    // add x0, x0, x1
      {{0x7100041f}, "konst fl_sub32", kIntegerComparison},           // cmp w0, #1
      {{0xf100001f}, "fl_sub64", kIntegerComparison},                 // cmp x0, #0
      {{0x3100041f}, "konst fl_sub32", kIntegerComparison},           // cmn w0, #1
      {{0x6b01001f}, "fl_sub32", kIntegerComparison},                 // cmp w0, w1
      {{0x71000400}, "konst fl_sub32 addi32", kIntegerArithmetic},    // subs w0, w0, #1
      {{0x7200001f}, "andi64 fl_nz32", kIntegerComparison},           // tst w0, #1
      {{0x6a00001f}, "fl_nz32", kIntegerComparison},                  // tst w0, w0
      {{0x1b017c00}, "mul32", kIntegerArithmetic},                    // mul w0, w0, w1
      {{0x1b010800}, "madd32", kIntegerArithmetic},                   // madd w0, w0, w1, w2
      {{0x9b217c00}, "smaddl", kIntegerArithmetic},                   // smull x0, w0, w1
      {{0x1ac10c00}, "sdiv32", kIntegerDivision},                     // sdiv w0, w0, w1
      {{0x53001c00}, "andi64", kIntegerLogical},                      // uxtb w0, w0
      {{0x93407c00}, "sbf64", kIntegerLogical},                       // sxtw x0, w0
      {{0x531d7000}, "lsli32", kIntegerLogical},                      // lsl w0, w0, #3
      {{0xd343fc00}, "lsri64", kIntegerLogical},                      // lsr x0, x0, #3
      {{0x2a2003e0}, "xori32", kIntegerLogical},                      // mvn w0, w0
      {{0x1a9f17e0}, "cset", kIntegerLogical},                        // cset w0, eq
      {{0x1a811000}, "csel32", kIntegerLogical},                      // csel w0, w0, w1, ne
      {{0xb9400400}, "ldu32", kOffChipMemory},                        // ldr w0, [x0, #4]
      {{0xb8617800}, "ldu32_x", kOffChipMemory},                      // ldr w0, [x0, x1, lsl #2]
      {{0xb861d800}, "ldu32_w", kOffChipMemory},                      // ldr w0, [x0, w1, sxtw #2]
      {{0x39800000}, "lds8x", kOffChipMemory},                        // ldrsb x0, [x0]
      {{0xf8008401}, "st64 addi64", kOffChipMemory},                  // str x1, [x0], #8
      {{0xa9bf7bfd}, "st64 st64 addi64", kOffChipMemory},             // stp x29, x30, [sp, #-16]!
      {{0xa9400400}, "ld64 ld64", kOffChipMemory},                    // ldp x0, x1, [x0]
      {{0x58000040}, "ld64", kOffChipMemory},                         // ldr x0, pc + 8
      {{0xfd400000}, "ld64 konst", kOffChipMemory},                   // ldr d0, [x0]
      {{0x3dc00000}, "ld64 ld64", kOffChipMemory},                    // ldr q0, [x0]
      {{0xb820001f}, "amo_add", kParallelism},                        // stadd w0, [x0]
      {{0xd503201f}, "", kOther},                                     // nop
      {{0x14000002}, "jmp", kControlFlow},                            // b
      {{0x94000002}, "konst jmp", kControlFlow},                      // bl
      {{0x54000040}, "br_cond", kControlFlow},                        // b.eq
      {{0x34000040}, "bri_eq32", kControlFlow},                       // cbz w0
      {{0x37000040}, "br_bit1", kControlFlow},                        // tbnz w0, #0
      {{0xd65f03c0}, "jmp_reg", kControlFlow},                        // ret
      {{0xd4000001}, "service", kOther},                              // svc
  };
  for (const Example& e : examples) {
    const DraftBlock block = translate(e.words);
    CAPTURE(*e.words.begin());
    CHECK(names(block) == e.expected);
    CHECK(block.classes.back() == e.last_class);
    CHECK(block.classes.size() == e.words.size());
  }
}

TEST_CASE("no load-acquire passes a release") {
  using enum InsnClass;
  const Example examples[] = {
      {{0xc89ffc41}, "check_align fence st64 fence", kParallelism},  // stlr x1, [x2]
      {{0xf8608041}, "fence amo_swp fence", kParallelism},           // swpl x0, x1, [x2]
      {{0xb8600041}, "fence amo_add fence", kParallelism},           // ldaddl w0, w1, [x2]
      {{0xc8a0fc41}, "fence cas fence", kParallelism},               // casl x0, x1, [x2]
      {{0x4820fc82}, "fence cas128 fence", kParallelism},            // caspl x0, x1, x2, x3, [x4]
      {{0xc800fc41}, "fence stx fence", kParallelism},               // stlxr w0, x1, [x2]
      {{0xc8208c41}, "fence mov mov stx128 fence", kParallelism},    // stlxp w0, x1, x3, [x2]
      {{0xb8a00041}, "amo_add fence", kParallelism},                 // ldadda w0, w1, [x2]
      {{0xf8208041}, "amo_swp", kParallelism},                       // swp x0, x1, [x2]
  };
  for (const Example& e : examples) {
    CAPTURE(*e.words.begin());
    CHECK(names(translate(e.words)) == e.expected);
  }
}

TEST_CASE("a load pair keeps its base until the second load") {
  const DraftBlock block = translate({0xa9400400});  // ldp x0, x1, [x0]
  CHECK(block.uops[0].d == 1);
  CHECK(block.uops[0].imm == 8);
  CHECK(block.uops[1].d == 0);
}

TEST_CASE("instructions without a result write no architectural register") {
  // adds, movz, ldr into xzr
  for (const uint32_t word : {0xab01001fu, 0xd280055fu, 0xf940001fu})
    for (const Uop& u : translate({word}).uops) CHECK((u.d == kNzcv || u.d == kSink));
}

TEST_CASE("unknown and undefined instructions") {
  InsnResult result{};
  DraftBlock block = translate({0x00000000}, &result);  // udf #0
  CHECK(result == InsnResult::kEndsBlock);
  CHECK(names(block) == "trap");
  CHECK(block.uops[0].aux == static_cast<uint8_t>(Fault::kUndefined));
  block = translate({0xd4200000}, &result);  // brk #0
  CHECK(result == InsnResult::kEndsBlock);
  CHECK(block.uops[0].aux == static_cast<uint8_t>(Fault::kBreakpoint));
  block = translate({0xffffffff}, &result);
  CHECK(result == InsnResult::kUnknown);
  CHECK(names(block) == "trap");
  CHECK(block.end.present);
}

TEST_CASE("control flow") {
  const auto flow = [](uint32_t word) { return control_flow(word, kPc); };
  CHECK_FALSE(flow(0x8b010000).ends_block);
  CHECK(flow(0x14000002).target == kPc + 8);
  CHECK_FALSE(flow(0x14000002).falls_through);
  CHECK(flow(0x97ffffff).target == kPc - 4);
  CHECK(flow(0x97ffffff).is_call);
  CHECK_FALSE(flow(0x97ffffff).falls_through);
  CHECK(flow(0x54000040).falls_through);
  CHECK(flow(0x54000040).target == kPc + 8);
  CHECK_FALSE(flow(0x5400004e).falls_through);  // b.al
  CHECK(flow(0xd63f0000).is_call);              // blr x0
  CHECK_FALSE(flow(0xd63f0000).target.has_value());
  CHECK_FALSE(flow(0xd65f03c0).falls_through);  // ret
  CHECK(flow(0xd4000001).falls_through);        // svc
  CHECK_FALSE(flow(0x00000000).falls_through);  // udf
}

TEST_CASE("every word of every row translates into well-formed micro-ops") {
  std::mt19937_64 rng(1);
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    for (int i = 0; i < 100; ++i) {
      const uint32_t word = random_word(row, rng);
      CAPTURE(word);
      InsnResult result{};
      const DraftBlock block = translate({word}, &result);
      REQUIRE(block.classes.size() == 1);
      CHECK(block.end.present == (result != InsnResult::kNext));
      CHECK(control_flow(word, kPc).ends_block == block.end.present);
      // What translation on demand takes from the word alone.
      CHECK(branch_target(word, kPc) == control_flow(word, kPc).target);
      for (const Uop& u : block.uops)
        for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
          for (int k = 0; k < std::max(reads, writes); ++k)
            if (std::ranges::count(kIsa.rare_slots.slots, static_cast<Slot>(s + k)) != 0)
              CHECK(kIsa.rare_slots.may_use(word));
        });
      // What a module's reader takes for granted of what it accepts.
      CHECK(block.uops.size() <= kMaxInsnUops);
      for (const Uop& u : block.uops) {
        CAPTURE(op_info(u.op).name);
        CHECK(has_valid_fields(u));
      }
      for (size_t u = 0; u < block.uops.size(); ++u) {
        const ShapeInfo shape = shape_info(op_info(block.uops[u].op).shape);
        CHECK(shape.ends_block == (block.end.present && u + 1 == block.uops.size()));
        const OperandUse d = shape.d;
        if (d.writes) CHECK(block.uops[u].d != kZero);
        if (d.reads) CHECK(block.uops[u].d != kSink);
        if (shape.a.reads) CHECK(block.uops[u].a != kSink);
        if (shape.b.reads) CHECK(block.uops[u].b != kSink);
      }
    }
  }
}

}  // namespace
}  // namespace gpusim::a64
