// Instructions of different lengths, by an ISA made up for it: units of 2 bytes; whose lowest two
// bits are set begins an instruction of 4.
//   0x0004  adds one to r0
//   0x0008  returns
//   0x0nn3  with the next unit as distance: jumps there and back, a call if nn is not zero
#include <doctest/doctest.h>

#include <cstring>

#include "translator/a64/isa.h"
#include "translator/a64/registers.h"
#include "translator/common/discover.h"
#include "translator/common/draft.h"
#include "translator/common/link.h"
#include "translator/common/translator.h"

namespace gpusim {
namespace {

constexpr uint64_t kText = 0x10002;  // no multiple of 4

uint32_t length(std::span<const uint8_t> bytes) {
  if (bytes.size() < 2) return 0;
  const uint32_t n = (bytes[0] & 3) == 3 ? 4 : 2;
  return n <= bytes.size() ? n : 0;
}

InsnResult translate(const GuestInsn& insn, BlockBuilder& b) {
  b.begin_instruction();
  REQUIRE(insn.bytes.size() == length(insn.bytes));
  if (insn.bytes.size() == 4) {
    const uint64_t to = insn.pc + static_cast<uint64_t>(static_cast<int16_t>(insn.word() >> 16));
    if (insn.word() & 0xfff0)
      b.call(to);
    else
      b.jmp(to);
    return InsnResult::kEndsBlock;
  }
  switch (insn.word()) {
    case 4:
      b.set_class(InsnClass::kIntegerArithmetic);
      b.addi64(a64::kX0, a64::kX0, 1);
      return InsnResult::kNext;
    case 8:
      b.jmp_reg(a64::kLink, JumpHint::kReturn);
      return InsnResult::kEndsBlock;
    default:
      b.trap(Fault::kUndefined);
      return InsnResult::kUnknown;
  }
}

ControlFlow flow(const GuestInsn& insn, uint32_t) {
  BlockBuilder b = a64::kIsa.make_builder();
  b.begin_block(insn.pc);
  translate(insn, b);
  return control_flow_of(b.draft());
}

GuestIsa made_up_isa() {
  GuestIsa isa = a64::kIsa;
  isa.insn_align = 2;
  isa.longest_insn = 4;
  isa.insn_length = length;
  isa.translate = translate;
  isa.control_flow = flow;
  isa.roles.flags = kNoSlot;
  return isa;
}
const GuestIsa& made_up() {
  static const GuestIsa isa = made_up_isa();
  return isa;
}

ElfFile program(std::vector<uint16_t> units) {
  ElfFile elf;
  elf.isa = &made_up();
  elf.entry = kText;
  Segment s{.address = kText, .size_bytes = 2 * units.size(), .flags = kRead | kExecute, .bytes = {}};
  s.bytes.resize(s.size_bytes);
  std::memcpy(s.bytes.data(), units.data(), s.size_bytes);
  elf.code = {{kText, kText + s.size_bytes}};
  elf.segments = {s};
  return elf;
}

std::vector<uint64_t> leaders(const CodeImage& image) {
  std::vector<uint64_t> found;
  for (uint64_t pc = image.base; pc < image.end(); pc += image.step())
    if (image.flags_at(pc) & kLeader) found.push_back((pc - kText) / 2);
  return found;
}

TEST_CASE("blocks start where instructions of different lengths lead") {
  // 0: add; 1-2: call unit 5; 3: return; 4: no instruction; 5: add; 6: return
  const ElfFile elf = program({4, 0x13, 8, 8, 0, 4, 8});
  const CodeImage image = discover_code(elf);
  CHECK(leaders(image) == std::vector<uint64_t>{0, 3, 4, 5});
  CHECK((image.flags_at(kText + 2 * 2) & kReached) == 0);  // inside the call
}

TEST_CASE("nothing is read beyond the end of the code") {
  const ElfFile elf = program({4, 0x03});  // its second unit is missing
  const CodeImage image = discover_code(elf);
  CHECK(image.code_at(kText + 2).size() == 2);
  const CodeBlock block = form_block(
      made_up(), kText, [&](uint64_t pc) { return image.code_at(pc); },
      [](uint64_t) { return false; });
  CHECK(block.draft.classes.size() == 1);
  CHECK(block.next_pc == kText + 2);
}

TEST_CASE("what is reached is not hidden by what comes before it") {
  // 0-1: jump to unit 3; 2: data that looks like the first half of a long instruction; 3: return
  const CodeImage image = discover_code(program({0x03, 6, 0x03, 8}));
  CHECK((image.flags_at(kText + 6) & kReached) != 0);
  CHECK((image.flags_at(kText + 6) & kLeader) != 0);
}

TEST_CASE("each instruction of a block has its address") {
  const ElfFile elf = program({4, 4, 0x03, 0xfffc, 8});
  const CodeImage image = discover_code(elf);
  Module module;
  module.code.text_base = kText;
  module.code.pc_shift = made_up().pc_shift();
  module.code.uop_at.assign(5, kNoUop);
  module.code.insn_class.assign(5, static_cast<uint8_t>(InsnClass::kOther));
  std::vector<CodeBlock> blocks;
  for (const uint64_t pc : {kText, kText + 8})
    blocks.push_back(form_block(
        made_up(), pc, [&](uint64_t at) { return image.code_at(at); },
        [](uint64_t) { return false; }));
  link_blocks(std::move(blocks), module);
  REQUIRE(module.blocks.size() >= 2);
  const Block& first = module.blocks[0];
  REQUIRE(first.insn_count == 3);
  CHECK(insn_pc(module, first, 0) == kText);
  CHECK(insn_pc(module, first, 2) == kText + 4);
  CHECK(end_pc(module, first) == kText + 8);
  CHECK(end_pc(module, module.blocks[1]) == kText + 10);
  CHECK(uop_pc(module, first.first_uop + first.uop_count - 1) == kText + 4);
  // Classes stand at their instructions; the middle of a long one keeps what it had.
  CHECK(module.code.insn_class[1] == static_cast<uint8_t>(InsnClass::kIntegerArithmetic));
  CHECK(module.code.insn_class[2] == static_cast<uint8_t>(InsnClass::kOther));
}

}  // namespace
}  // namespace gpusim
