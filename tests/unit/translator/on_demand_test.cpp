// Programs that grow: what is translated in advance, and where cores are stopped.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "test_elf.h"
#include "translator/common/link.h"
#include "translator/common/translator.h"

namespace gpusim {
namespace {

constexpr uint32_t kNop = 0xd503201f, kRet = 0xd65f03c0, kBl2 = 0x94000002, kBlr = 0xd63f0000;

struct Function {
  const char* name;
  uint32_t first_word, words;
};

// With a symbol for each function.
std::vector<uint8_t> program(std::vector<uint32_t> words, const std::vector<Function>& functions) {
  TestElf elf(std::move(words));
  std::string names(1, '\0');
  std::vector<Elf64_Sym> symbols(1);
  for (const Function& f : functions) {
    Elf64_Sym s{};
    s.st_name = static_cast<Elf64_Word>(names.size());
    s.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    s.st_shndx = 1;
    s.st_value = kTestText + 4 * f.first_word;
    s.st_size = uint64_t{4} * f.words;
    symbols.push_back(s);
    names += std::string(f.name) + '\0';
  }
  std::vector<uint8_t> out = elf.bytes();
  const auto append = [&](const void* data, size_t size) {
    out.resize((out.size() + 7) / 8 * 8);
    const uint64_t at = out.size();
    out.resize(at + size);
    std::memcpy(out.data() + at, data, size);
    return at;
  };
  Elf64_Shdr sections[4]{};
  sections[1].sh_type = SHT_PROGBITS;
  sections[1].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  sections[1].sh_addr = kTestText;
  sections[1].sh_offset = kTestOffset;
  sections[1].sh_size = elf.words.size() * sizeof elf.words[0];
  sections[2].sh_type = SHT_SYMTAB;
  sections[2].sh_link = 3;
  sections[2].sh_entsize = sizeof(Elf64_Sym);
  sections[2].sh_size = symbols.size() * sizeof(Elf64_Sym);
  sections[2].sh_offset = append(symbols.data(), sections[2].sh_size);
  sections[3].sh_type = SHT_STRTAB;
  sections[3].sh_size = names.size();
  sections[3].sh_offset = append(names.data(), names.size());
  elf.header.e_shoff = append(sections, sizeof sections);
  elf.header.e_shentsize = sizeof(Elf64_Shdr);
  elf.header.e_shnum = 4;
  std::memcpy(out.data(), &elf.header, sizeof elf.header);
  return out;
}

Translator open(const std::vector<uint8_t>& bytes) {
  return open_program(bytes, "test", {}, Translated::kOnDemand);
}

bool has(const Translator& t, uint32_t word) {
  return find_block(t.module().code, kTestText + 4 * word) != kNoUop;
}

// main: 0 to 1. f: 2 to 6, calls g and goes on. g: 7 to 8. h, which only a pointer finds: 9 to 10.
const std::vector<uint8_t>& sample() {
  static const std::vector<uint8_t> bytes =
      program({kNop, kRet, kNop, 0x94000004, kNop, kBlr, kRet, kNop, kRet, kNop, kRet},
              {{"main", 0, 2}, {"f", 2, 5}, {"g", 7, 2}, {"h", 9, 2}});
  return bytes;
}

TEST_CASE("a function is translated with what it calls, and nothing else is") {
  Translator t = open(sample());
  CHECK(has(t, 0));
  CHECK_FALSE(has(t, 2));
  t.translate_function(kTestText + 8, 1000);
  for (const uint32_t word : {2, 4, 6, 7}) CHECK_MESSAGE(has(t, word), word);
  CHECK_FALSE(has(t, 9));
  // Another one that grows the same way is the same.
  Translator again = open(sample());
  again.grow_again(t.growth());
  CHECK(again.module().uops == t.module().uops);
}

TEST_CASE("functions are translated up to a number of instructions") {
  Translator t = open(sample());
  t.translate_function(kTestText + 8, 1);
  CHECK(has(t, 2));
  CHECK_FALSE(has(t, 7));
  t.translate_function(~uint64_t{0}, 1000);  // there is none
  t.translate_function(kTestText + 1, 1000);
}

TEST_CASE("breakpoints stand in front of blocks, wherever they are") {
  Translator t = open(sample());
  const uint32_t before = find_block(t.module().code, kTestText);
  t.set_breakpoints({kTestText + 4, kTestText + 4 * 7});
  CHECK_FALSE(has(t, 0));  // forgotten
  const uint32_t first = t.block_at(kTestText).uop;
  CHECK(first != before);
  CHECK_FALSE(t.is_breakpoint(first));
  const Block& block = t.module().blocks[t.module().uop_block[first]];
  CHECK(block.insn_count == 1);  // up to the breakpoint
  const Uop& end = t.module().uops[first + block.uop_count - 1];
  CHECK(t.is_breakpoint(end.target()));
  for (const uint32_t word : {1u, 7u}) {
    const uint64_t pc = kTestText + 4 * word;
    const uint32_t trap = t.block_at(pc).uop, behind = t.behind_breakpoint(pc);
    CHECK(t.is_breakpoint(trap));
    CHECK(uop_pc(t.module(), trap) == pc);
    REQUIRE(behind != kNoUop);
    CHECK_FALSE(t.is_breakpoint(behind));
    CHECK(place_pc(t.module(), behind) == pc);
    CHECK(t.module().blocks[t.module().uop_block[behind]].insn_count > 0);
  }
  CHECK(t.behind_breakpoint(kTestText) == kNoUop);
  t.set_breakpoints({});
  CHECK_FALSE(t.is_breakpoint(t.block_at(kTestText + 4).uop));
}

TEST_CASE("one instruction is translated by itself") {
  Translator t = open(sample());
  const size_t uops = t.module().uops.size();
  const auto nop = t.instruction(kTestText + 8);
  REQUIRE(nop);
  CHECK(nop->next_pc == kTestText + 12);
  CHECK_FALSE(t.instruction(kTestText + 1));
  CHECK_FALSE(t.instruction(~uint64_t{0} - 3));
  CHECK(t.module().uops.size() == uops);
}

TEST_CASE("traps stand where blocks come later, and can be removed") {
  Translator t = open(sample());
  t.set_traps({kTestText, kTestText + 4 * 7, kTestText + 4 * 9});
  const auto is_trap = [](const Translator& of, uint32_t word) {
    const uint32_t uop = find_block(of.module().code, kTestText + 4 * word);
    REQUIRE(uop != kNoUop);
    return of.module().uops[uop].op == Op::trap;
  };
  CHECK(is_trap(t, 0));
  t.translate_function(kTestText + 8, 1000);
  CHECK(is_trap(t, 7));
  CHECK_FALSE(is_trap(t, 2));
  t.make_flags_exact();  // translates everything again
  CHECK(is_trap(t, 7));

  Translator copy(t);
  copy.remove_traps();
  CHECK_FALSE(is_trap(copy, 0));
  CHECK_FALSE(is_trap(copy, 7));
  CHECK(is_trap(t, 7));
  copy.block_at(kTestText + 4 * 9);
  CHECK_FALSE(is_trap(copy, 9));
  CHECK_FALSE(has(t, 9));  // a copy grows on its own
  t.block_at(kTestText + 4 * 9);
  CHECK(is_trap(t, 9));
}

TEST_CASE("branches are seen by their words") {
  const Translator t = open(program({kBl2, kRet, kNop, kRet}, {{"main", 0, 2}, {"f", 2, 2}}));
  CHECK(branch_targets(t.module(), kTestText, 8) == std::vector<uint64_t>{kTestText + 8});
  CHECK(branch_targets(t.module(), kTestText + 4, ~uint64_t{0}).empty());
  CHECK(branch_targets(t.module(), 0, 8).empty());
}

// RISC-V. main: 0 to 3. f, which nothing calls: 4 to 5.
Translator open_riscv(uint32_t first_word, uint32_t second_word) {
  constexpr uint32_t kRiscvNop = 0x00000013, kRiscvRet = 0x00008067;
  std::vector<uint8_t> bytes =
      program({first_word, second_word, kRiscvNop, kRiscvRet, kRiscvNop, kRiscvRet},
              {{"main", 0, 4}, {"f", 4, 2}});
  const Elf64_Half machine = EM_RISCV;
  std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
  return open(bytes);
}

// addi a0, a5, 13; from its upper half on, before a NOP: vadd.vv v1, v1, v6, v0.t
constexpr uint32_t kHidesVector = 0x00d78513;
constexpr uint32_t kSetsThreadPointer = 0x00050213;   // mv tp, a0
constexpr uint32_t kReadsCore = 0x6c052013;           // slti zero, a0, 0x6c0: libgpusim's hint
constexpr uint32_t kHidesThreadPointer = 0x42010537;  // lui a0, 0x42010; half of it: c.li tp, 0

TEST_CASE("halves of long instructions that look like vector code hinder nobody") {
  Translator t = open_riscv(kHidesVector, kSetsThreadPointer);
  CHECK(has(t, 0));
  CHECK_FALSE(has(t, 4));
  // A core that jumps there finds its registers.
  const Translator::Place inside = t.block_at(kTestText + 2);
  REQUIRE(inside.uop != kNoUop);
  CHECK(t.module().uops[inside.uop].op == Op::vector);
}

TEST_CASE("who a program is for must not hang on halves") {
  CHECK(has(open_riscv(kHidesVector, kHidesThreadPointer), 4));
  CHECK_FALSE(has(open_riscv(kReadsCore, kHidesVector), 4));
}

}  // namespace
}  // namespace gpusim
