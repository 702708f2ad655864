// Our decoder against GNU objdump: all 16-bit instructions, random words, words of every row and
// their one-bit neighbours, and the code of libc.a. Texts are compared whole.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "tests/isa/code_bytes.h"
#include "tests/isa/riscv/objdump.h"
#include "translator/riscv/compressed.h"
#include "translator/riscv/decode.h"
#include "translator/riscv/text.h"

namespace gpusim::riscv {
namespace {

constexpr unsigned kWordsPerRow = 200, kNeighboursPerRow = 10;

unsigned seed() {
  const char* text = std::getenv("GPUSIM_SEED");
  return text == nullptr ? std::random_device{}()
                         : static_cast<unsigned>(std::strtoul(text, nullptr, 0));
}
size_t random_words() { return std::getenv("GPUSIM_LONG") ? 10'000'000 : 1'000'000; }

// 32-bit instructions, but for the first words of longer ones, whose length objdump tells.
bool is_32bit(uint32_t word) { return (word & 3) == 3 && (word & 0x1c) != 0x1c; }

struct Differences {
  std::map<std::string, std::pair<size_t, std::string>> kinds;
  void add(const std::string& kind, uint32_t word, const std::string& ours,
           const std::string& theirs) {
    auto& [count, example] = kinds[kind];
    char head[32];
    std::snprintf(head, sizeof head, "%08x", word);
    if (count++ == 0) example = std::string(head) + "  ours: " + ours + "  objdump: " + theirs;
  }
  void check() const {
    for (const auto& [kind, what] : kinds)
      FAIL_CHECK(kind << " (" << what.first << "): " << what.second);
  }
};

std::string name_of(const std::string& text) { return text.substr(0, text.find(' ')); }

// Of RV64, by 32 or more: objdump prints these for RV32, too.
bool is_long_shift(uint32_t word) {
  const Row* const row = decode(word, 64);
  return row != nullptr && row->pattern.field('i').width == 6 && row->field('i', word) >= 32;
}

// What Debian 12's objdump does not know, or prints in its own way; null where it has to agree.
const char* excuse(const Row* row, uint32_t word, int xlen, const std::string& objdump) {
  if (row == nullptr) {
    if (xlen == 32 && is_long_shift(word)) return "a shift by more bits than registers have";
    static const std::set<std::string> kPrivileged = {
        "uret",       "sret",        "hret",        "mret",           "dret",
        "wfi",        "sfence.vm",   "sfence.vma",  "sfence.w.inval", "sfence.inval.ir",
        "sinval.vma", "hfence.vvma", "hfence.gvma", "hinval.vvma",    "hinval.gvma",
        "hlv.b",      "hlv.bu",      "hlv.h",       "hlv.hu",         "hlv.w",
        "hlv.wu",     "hlv.d",       "hlvx.hu",     "hlvx.wu",        "hsv.b",
        "hsv.h",      "hsv.w",       "hsv.d"};
    if (kPrivileged.contains(name_of(objdump))) return "not for user code";
    if (objdump.ends_with(",unknown") && name_of(objdump).starts_with("f"))
      return "a reserved rounding mode";
    return nullptr;
  }
  if (row->extension == Extension::kZfa || row->extension == Extension::kZicond ||
      row->extension == Extension::kZacas)
    return "binutils 2.40 does not have it";
  if ((row->op == Op::FCVT_F || row->op == Op::FCVT_FROM_X) && objdump.empty() &&
      row->field('r', word) != 0)
    return "a conversion that never rounds, whose rounding mode is not 0";
  if ((row->op == Op::FENCE || row->op == Op::FENCE_I) && objdump.empty())
    return "reserved fields are ignored, says the manual";
  if (row->pattern.field('c').width != 0 && name_of(objdump) == mnemonic(*row, word))
    return "names of registers that user code does not have";
  return nullptr;
}

void compare(std::span<const Encoding> code, int xlen, Differences& differences) {
  const std::vector<std::string> theirs = objdump(code, false, xlen);
  for (size_t i = 0; i < code.size(); ++i) {
    const Insn insn = decode_any(code[i].word, xlen);
    const std::string ours = instruction_text(insn);
    if (ours == theirs[i] || excuse(insn.row, insn.word, xlen, theirs[i]) != nullptr) continue;
    differences.add(insn ? std::string(insn.row->name) : "unallocated, " + name_of(theirs[i]),
                    code[i].word, ours, theirs[i]);
  }
}

// To x0, or a shift by 0 in place: C has these as hints.
bool does_nothing(uint32_t word) {
  const uint32_t rd = word >> 7 & 31, rs1 = word >> 15 & 31;
  return rd == 0 || (rd == rs1 && (word & 0x7f) == 0x13 && (word >> 20 & 63) == 0);
}

void check_16_bit_instructions(int xlen) {
  std::vector<Encoding> shorts, expansions;
  std::vector<uint32_t> refused;
  for (uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 3) == 3) continue;
    const uint32_t word = expand(static_cast<uint16_t>(half), xlen);
    shorts.push_back({half, 2});
    // NOP stands for unallocated: both lists keep in step.
    expansions.push_back({word == 0 ? 0x13 : word, 4});
    if (word != 0) CHECK(decode(word, xlen) != nullptr);
  }
  const std::vector<std::string> known = objdump(shorts, false, xlen);
  const std::vector<std::string> want = objdump(shorts, true, xlen),
                                 got = objdump(expansions, true, xlen);
  Differences differences;
  for (size_t i = 0; i < shorts.size(); ++i) {
    const uint32_t half = shorts[i].word;
    const std::string row(compressed_row(static_cast<uint16_t>(half), xlen));
    const bool is_known = !known[i].empty() && known[i] != "c.unimp" && known[i] != "unimp";
    if (half == 0x6101) {  // C.ADDI16SP by 0, which is reserved; objdump does not mind
      CHECK(row.empty());
      continue;
    }
    if (xlen == 32 && row.empty() && is_long_shift(expand(static_cast<uint16_t>(half), 64)))
      continue;
    if (row.empty() != !is_known) {
      differences.add(row.empty() ? "unallocated" : row, half, row, known[i]);
      continue;
    }
    if (row.empty()) continue;
    // objdump has no alias for an addition to x0, and marks hints.
    std::string ours = got[i];
    if (row == "C_MV" && ours.starts_with("add ")) {
      const size_t zero = ours.find(",zero");
      ours = "mv " + ours.substr(4, zero - 4) + ours.substr(zero + 5);
    }
    const bool is_hint = want[i].starts_with("c.") || (row == "C_ADDI" && want[i].ends_with(",0"));
    if (is_hint ? !does_nothing(expansions[i].word) : ours != want[i])
      differences.add(row, half, ours, want[i]);
  }
  differences.check();
}

TEST_CASE("all 16-bit instructions are what objdump says") {
  SUBCASE("RV32") { check_16_bit_instructions(32); }
  SUBCASE("RV64") { check_16_bit_instructions(64); }
}

void check_random_words(int xlen) {
  const unsigned s = seed();
  INFO("replay: GPUSIM_SEED=" << s);
  MESSAGE("GPUSIM_SEED=" << s);
  std::mt19937 rng(s);
  std::vector<Encoding> code;
  const auto add = [&](uint32_t word) {
    if (is_32bit(word)) code.push_back({word, 4});
  };
  while (code.size() < random_words()) {
    // Major opcodes of the ratified extensions more often.
    static constexpr uint32_t kMajor[] = {0x13, 0x1b, 0x33, 0x3b, 0x53, 0x2f, 0x73, 0x0f};
    const auto word = static_cast<uint32_t>(rng());
    add(rng() % 2 ? word | 3 : (word & ~0x7fu) | kMajor[rng() % 8]);
  }
  for (const Row& row : rows(xlen)) {
    if (!belongs(row.op, xlen)) continue;
    for (unsigned i = 0; i < kWordsPerRow; ++i) add(random_word(row, xlen, rng));
    for (unsigned i = 0; i < kNeighboursPerRow; ++i) {
      const uint32_t word = random_word(row, xlen, rng);
      for (unsigned bit = 2; bit < 32; ++bit) add(word ^ (1u << bit));
    }
  }
  Differences differences;
  compare(code, xlen, differences);
  differences.check();
}

TEST_CASE("random words are what objdump says") {
  SUBCASE("RV32") { check_random_words(32); }
  SUBCASE("RV64") { check_random_words(64); }
}

TEST_CASE("the code of libc is what objdump says") {
  std::vector<uint8_t> bytes;
  append_code(GPUSIM_RISCV64_LIBC, EM_RISCV, bytes);
  std::set<uint32_t> words;
  size_t total = 0;
  for (size_t i = 0; i + 4 <= bytes.size(); ++total) {
    uint32_t word = 0;
    std::memcpy(&word, &bytes[i], sizeof word);
    const unsigned length = instruction_bytes(word);
    if (length == 4 && is_32bit(word)) words.insert(word);
    i += length;
  }
  CHECK(total > 200'000);
  std::vector<Encoding> code;
  for (const uint32_t word : words) code.push_back({word, 4});
  Differences differences;
  compare(code, 64, differences);
  differences.check();
}

}  // namespace
}  // namespace gpusim::riscv
