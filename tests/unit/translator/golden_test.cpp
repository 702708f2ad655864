// Small pieces of code and the micro-ops they become.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/translator/test_elf.h"
#include "translator/common/link.h"
#include "translator/common/listing.h"
#include "translator/common/translator.h"

namespace gpusim {
namespace {

std::string uops_of(const Module& module) {
  std::string text;
  for (const Uop& u : module.uops) text += uop_text(module, u) + "\n";
  return text;
}

std::string translate(std::vector<uint32_t> words, bool optimise = true) {
  return uops_of(translate_elf(TestElf(std::move(words)).bytes(), "test",
                               TranslateOptions{.optimise = optimise}));
}

TEST_CASE("without passes, micro-ops are what the visitors emit") {
  CHECK(translate(
            {
                0x11000421,  // add w1, w1, #1
                0x6b00003f,  // cmp w1, w0
                0x54ffffc1,  // b.ne -8
                0xd65f03c0,  // ret
            },
            false) ==
        "addi32 x1, x1, 1\n"
        "fl_sub32 nzcv, x1, x0\n"
        "br_cond nzcv, 0x0f0f -> 4000b0\n"
        "jmp_reg x30, aux=2\n");
}

TEST_CASE("conditions reach their micro-ops whole") {
  CHECK(translate(
            {
                0x9a82d020,  // csel x0, x1, x2, le
                0x9a9fd7e0,  // cset x0, gt
                0xd65f03c0,  // ret
            },
            false) ==
        "csel64 x0, x1, x2, nzcv, imm16=0xf5fa\n"
        "cset x0, nzcv, 0, imm16=0xa05\n"
        "jmp_reg x30, aux=2\n");
}

TEST_CASE("flags that only the way out of a loop may read are computed there") {
  CHECK(translate({
            0x11000421,  // add w1, w1, #1
            0x6b00003f,  // cmp w1, w0
            0x54ffffc1,  // b.ne -8
            0xd65f03c0,  // ret
        }) ==
        "addi32 x1, x1, 1\n"
        "br_ne32 x1, x0 -> 4000b0\n"
        "fl_sub32 nzcv, x1, x0\n"
        "link -> 4000bc\n"
        "jmp_reg x30, aux=2\n");
}

TEST_CASE("compare and branch become one micro-op") {
  CHECK(translate({
            0x7102fc1f,  // cmp w0, #191
            0x54ffffe8,  // b.hi -4
            0xf27c001f,  // tst x0, #0x10
            0x54ffffa0,  // b.eq -12
            0xeb01001f,  // cmp x0, x1
            0x54ffff6c,  // b.gt -20
            0xf1000400,  // subs x0, x0, #1
            0x54ffff24,  // b.mi -28
            0xf27c001f,  // tst x0, #0x10
            0xd4200000,  // brk #0
        }) ==
        "bri_geu32 x0, 192 -> 4000b0\n"
        "br_bit0 x0, 4 -> 4000b0\n"
        "br_lt64 x1, x0 -> 4000b0\n"
        "addi64 x0, x0, 0xffffffffffffffff\n"
        "bri_lt64 x0, 0 -> 4000b0\n"
        "trap aux=2\n");
}

TEST_CASE("flags of a counted loop come back behind it") {
  CHECK(translate({
            0xf1000400,  // subs x0, x0, #1
            0x54ffffe1,  // b.ne -4
            0xd65f03c0,  // ret
        }) ==
        "addi64 x0, x0, 0xffffffffffffffff\n"
        "bri_ne64 x0, 0 -> 4000b0\n"
        "addi64 x0, x0, 1\n"
        "konst t0, 1\n"
        "fl_sub64 nzcv, x0, t0\n"
        "addi64 x0, x0, 0xffffffffffffffff\n"
        "link -> 4000b8\n"
        "jmp_reg x30, aux=2\n");
}

TEST_CASE("constants are folded") {
  CHECK(translate({
            0xd2824680,  // mov x0, #0x1234
            0xf2aacf00,  // movk x0, #0x5678, lsl #16
            0x90000001,  // adrp x1, .
            0x91004021,  // add x1, x1, #0x10
            0xd4200000,  // brk #0
        }) ==
        "konst x0, 0x56781234\n"
        "konst x1, 0x400010\n"
        "trap aux=2\n");
}

TEST_CASE("values below 2^32 are not extended again") {
  const Module module = translate_elf(TestElf({
                                                  0x52800001,  // mov w1, #0
                                                  0xb8615802,  // ldr w2, [x0, w1, uxtw #2]
                                                  0x11000421,  // add w1, w1, #1
                                                  0x7101903f,  // cmp w1, #100
                                                  0x54ffffab,  // b.lt -12
                                                  0xd4200000,  // brk #0
                                              })
                                          .bytes(),
                                      "test");
  CHECK(uops_of(module) ==
        "konst x1, 0\n"
        "jmp -> 4000b4\n"
        "ldu32_x x2, x0, x1, 2\n"
        "addi32 x1, x1, 1\n"
        "bri_lt32 x1, 100 -> 4000b4\n"
        "trap aux=2\n");
  // Who jumps to the loop from elsewhere may bring an x1 above that.
  Translator translator(module);
  const size_t before = module.uops.size();
  const Translator::Place place = translator.block_at(kTestText + 4);
  REQUIRE(place.fault == Fault::kNone);
  CHECK(place.is_new);
  CHECK(place.uop >= before);
  CHECK(uop_text(translator.module(), translator.module().uops[place.uop]) == "mov32 t0, x1");
}

TEST_CASE("registers that are always zero need no slot") {
  CHECK(translate({
            0x1e622820,  // fadd d0, d1, d2
            0xfd000000,  // str d0, [x0]
            0xd4200000,  // brk #0
        }) ==
        "fadd64 v0.lo, v1.lo, v2.lo, fp_state\n"
        "st64 v0.lo, x0, 0\n"
        "trap aux=2\n");
}

TEST_CASE("a multiplication needs no addend") {
  CHECK(translate({
            0x9b027c20,  // mul x0, x1, x2
            0xd4200000,  // brk #0
        }) ==
        "mul64 x0, x1, x2\n"
        "trap aux=2\n");
}

TEST_CASE("an overwritten value stays where a fault could show it") {
  CHECK(translate({
            0xd2800020,  // mov x0, #1
            0xf9400021,  // ldr x1, [x1]
            0xd2800040,  // mov x0, #2
            0xd2800060,  // mov x0, #3
            0xd4200000,  // brk #0
        }) ==
        "konst x0, 1\n"
        "ld64 x1, x1, 0\n"
        "konst x0, 3\n"
        "trap aux=2\n");
}

TEST_CASE("an unknown instruction is listed and traps where it is") {
  const Module module = translate_elf(TestElf({
                                                  0x91000400,  // add x0, x0, #1
                                                  0x04e0e3e0,  // cntd x0 (SVE)
                                              })
                                          .bytes(),
                                      "test");
  REQUIRE(module.unknown.size() == 1);
  CHECK(module.unknown[0] == kTestText + 4);
  CHECK(instruction_at(module, module.unknown[0]).word() == 0x04e0e3e0);
  CHECK(uop_pc(module, static_cast<uint32_t>(module.uops.size() - 1)) == kTestText + 4);
  CHECK(module.uops.back().op == Op::trap);
}

TEST_CASE("targets outside of code trap at their address") {
  const Module module = translate_elf(TestElf({
                                                  0x14000400,  // b +0x1000
                                              })
                                          .bytes(),
                                      "test");
  REQUIRE(module.uops.size() == 2);
  CHECK(module.uops[0].target() == 1);
  CHECK(module.uops[1].op == Op::trap);
  CHECK(static_cast<Fault>(module.uops[1].aux) == Fault::kFetchAccess);
  CHECK(uop_pc(module, 1) == kTestText + 0x1000);
}

TEST_CASE("running off the end of the code traps behind it") {
  const Module module = translate_elf(TestElf({
                                                  0xb4000000,  // cbz x0, .
                                              })
                                          .bytes(),
                                      "test");
  CHECK(uops_of(module) ==
        "bri_eq64 x0, 0 -> 4000b0\n"
        "link -> 4000b4\n"
        "trap aux=6\n");
}

TEST_CASE("long straight code is cut into blocks") {
  std::vector<uint32_t> words(1000, 0x91000400);  // add x0, x0, #1
  words.push_back(0xd4200000);                    // brk #0
  const Module module = translate_elf(TestElf(words).bytes(), "test");
  uint32_t total = 0;
  for (const Block& b : module.blocks) {
    CHECK(b.insn_count <= 256);
    total += b.insn_count;
  }
  CHECK(total == 1001);
}

TEST_CASE("blocks are made while the program runs") {
  Translator translator(translate_elf(TestElf({
                                                  0x91000400,  // add x0, x0, #1
                                                  0x91000800,  // add x0, x0, #2
                                                  0xd4200000,  // brk #0
                                              })
                                          .bytes(),
                                      "test"));
  const Module before = translator.module();
  CHECK(translator.block_at(kTestText).uop == 0);
  CHECK(translator.block_at(kTestText + 2).fault == Fault::kFetchAlignment);
  CHECK(translator.block_at(kTestText + 12).fault == Fault::kFetchAccess);
  CHECK(translator.block_at(0x600000).fault == Fault::kFetchAccess);
  CHECK(translator.block_at(~uint64_t{3}).fault == Fault::kFetchAccess);
  const Translator::Place middle = translator.block_at(kTestText + 4);
  CHECK(middle.is_new);
  const Module& after = translator.module();
  CHECK(middle.uop == before.uops.size());
  CHECK(std::equal(before.uops.begin(), before.uops.end(), after.uops.begin()));
  CHECK(after.blocks.back().pc == kTestText + 4);
  CHECK_FALSE(translator.block_at(kTestText + 4).is_new);
}

}  // namespace
}  // namespace gpusim
