// Random streams: instructions of all rows on few registers, so that the passes meet values that
// are used, overwritten and dead, and faults in the middle.
#include <algorithm>
#include <vector>

#include "tests/isa/a64/insn_oracle/oracle.h"
#include "tests/isa/a64/insn_oracle/qemu_quirks.h"
#include "translator/a64/translate.h"

namespace gpusim::a64::oracle {
namespace {

// X0 to X7 and V0 to V7 hold data. Pointers change by write-back only; the fixed one never does.
constexpr uint32_t kFixedPointer = 19, kFirstPointer = 20, kPointers = 6;
constexpr uint32_t kFirstIndex = 26, kIndexes = 2, kJumpTarget = 28;

uint32_t below(Rng& rng, size_t n) { return static_cast<uint32_t>(rng() % n); }
bool starts_with(const Row& row, std::string_view prefix) { return row.name.starts_with(prefix); }

void put(const Row& row, uint32_t& word, char letter, uint32_t value) {
  const BitField f = row.pattern.field(letter);
  if (f.width == 0) return;
  const uint32_t mask = ((1u << f.width) - 1) << f.lsb;
  word = (word & ~mask) | ((value << f.lsb) & mask);
}

bool is_register(const Row& row, char letter) { return row.pattern.field(letter).width == 5; }

bool is_memory(const Row& row) {
  return row.group == Group::kLoadsStores ||
         (row.group == Group::kSimd && (starts_with(row, "LD") || starts_with(row, "ST")));
}
bool writes_back(const Row& row) {
  return row.name.find("prepost") != std::string_view::npos || row.group == Group::kSimd ||
         starts_with(row, "LDP") || starts_with(row, "STP");
}
// qemu checks a store-exclusive's address only if it stores, the alignment of LDAPR never.
bool needs_fixed_pointer(const Row& row) {
  return starts_with(row, "STX") || starts_with(row, "STLX") || row.op == Op::LDAPR;
}

const std::vector<const Row*>& drawn_rows(bool memory) {
  static const auto pick = [](bool wanted) {
    std::vector<const Row*> list;
    for (const Row& row : rows())
      if (row.group != Group::kBranchesSystem && is_translated(row.op) && !not_on_qemu(row) &&
          is_memory(row) == wanted)
        list.push_back(&row);
    return list;
  };
  static const std::vector<const Row*> kMemory = pick(true), kOthers = pick(false);
  return memory ? kMemory : kOthers;
}

// A store-exclusive must have the size of the load-exclusive before it: one size per stream.
struct Exclusives {
  bool allowed;  // else YIELD is: under qemu-user it clears the monitor
  bool pair;
  uint32_t size;
};
bool is_exclusive(const Row& row) {
  return starts_with(row, "LDX") || starts_with(row, "LDAX") || starts_with(row, "STX") ||
         starts_with(row, "STLX");
}

uint32_t memory_word(Rng& rng, uint64_t pc, const Exclusives& exclusives) {
  const std::vector<const Row*>& list = drawn_rows(true);
  for (;;) {
    const Row& row = *list[below(rng, list.size())];
    uint32_t word = random_word(row, rng);
    if (is_exclusive(row)) {
      if (!exclusives.allowed || row.name.ends_with("P") != exclusives.pair) continue;
      put(row, word, 'y', exclusives.size);
    }
    if (row.name.ends_with("_lit")) {
      const uint64_t target = ORACLE_WINDOW + below(rng, ORACLE_WINDOW_BYTES / 4) * 4;
      put(row, word, 'i', static_cast<uint32_t>((target - pc) / 4));
    } else {
      uint32_t n = kFirstPointer + below(rng, kPointers);
      if (one_in(rng, 8)) n = 31;
      if (needs_fixed_pointer(row) || is_exclusive(row) || (!writes_back(row) && one_in(rng, 8)))
        n = kFixedPointer;
      put(row, word, 'n', n);
      if (is_register(row, 'm') && (row.group != Group::kSimd || row.field('m', word) != 31))
        put(row, word, 'm', kFirstIndex + below(rng, kIndexes));
      if (row.name.ends_with("_uimm") && !one_in(rng, 32)) put(row, word, 'i', below(rng, 64));
    }
    for (const char letter : {'t', 'u', 's'})
      if (is_register(row, letter)) put(row, word, letter, one_in(rng, 16) ? 31 : below(rng, 8));
    if (decode(word) != &row) continue;
    // CONSTRAINED UNPREDICTABLE.
    const auto field = [&](char letter) {
      return is_register(row, letter) ? row.field(letter, word) : 32 + uint32_t(letter);
    };
    if (field('t') == field('u')) continue;
    if (needs_fixed_pointer(row) && (field('s') == field('t') || field('s') == field('u')))
      continue;
    return word;
  }
}

uint32_t data_word(Rng& rng) {
  const std::vector<const Row*>& list = drawn_rows(false);
  for (;;) {
    const Row& row = *list[below(rng, list.size())];
    uint32_t word = random_word(row, rng);
    const bool integer = row.group <= Group::kDataProcessingRegister;
    for (const char letter : {'n', 'm', 'a'})
      if (is_register(row, letter) && !one_in(rng, 8)) put(row, word, letter, below(rng, 8));
    if (is_register(row, 'd')) {
      uint32_t d = below(rng, 8);
      // Not the stack pointer, which some rows mean by 31, too often.
      if (integer && one_in(rng, 16)) d = one_in(rng, 4) ? 31 : 8 + below(rng, 8);
      put(row, word, 'd', d);
    }
    if (decode(word) != &row) continue;
    if (qemu_quirk(row, word, ~uint64_t{0}) == nullptr) return word;
  }
}

uint32_t system_word(Rng& rng, const Exclusives& exclusives) {
  const uint32_t t = below(rng, 8), pointer = kFirstPointer + below(rng, kPointers);
  switch (rng() % 16) {
    case 0:
      return 0xd53b4200 | t;  // MRS NZCV
    case 1:
      return 0xd53b4400 | t;  // MRS FPCR
    case 2:
      return 0xd53b4420 | t;  // MRS FPSR
    case 3:
      return 0xd51b4200 | t;  // MSR NZCV
    case 4:
      return 0xd51b4420 | 31;  // MSR FPSR, XZR
    case 5:
      return 0xd50b7b20 | pointer;  // DC CVAU
    case 6:
      return exclusives.allowed ? 0xd503201f : 0xd503203f;  // NOP, YIELD
    case 7:
      return 0xd5033bbf;  // DMB ISH
    case 8:
      return 0xd5033fdf;  // ISB
    case 9:
      return 0xd503305f;  // CLREX
    case 10:
      return one_in(rng, 2) ? rng() & 0xffff : 0xd4200000 | (rng() & 0xffff) << 5;  // UDF BRK
    default:
      return 0xd503201f;  // NOP
  }
}

// Branches to at most one word behind the fall-through exit.
uint32_t branch_word(Rng& rng, uint32_t words_left) {
  const uint32_t distance = 1 + below(rng, std::min(words_left + 1, 9u));
  const uint32_t t = below(rng, 8);
  switch (rng() % 5) {
    case 0:
      return 0x14000000 | below(rng, 2) << 31 | distance;
    case 1:
    case 2:
      return 0x54000000 | distance << 5 | below(rng, 16);
    case 3:
      return 0x34000000 | below(rng, 2) << 31 | below(rng, 2) << 24 | distance << 5 | t;
    default:
      return 0x36000000 | below(rng, 2) << 31 | below(rng, 2) << 24 | below(rng, 32) << 19 |
             distance << 5 | t;
  }
}

uint64_t pointer(Rng& rng) {
  const uint64_t usual = ORACLE_WINDOW + 0x1000 + rng() % 0x5000;
  if (one_in(rng, 40)) return random_address(rng, 16);
  if (one_in(rng, 80)) return ORACLE_READ_ONLY + rng() % 0x1000;
  if (one_in(rng, 80)) return 0x200000000000 + (rng() & 0xffffffffff);
  return one_in(rng, 8) ? usual : usual & ~uint64_t{63};
}

}  // namespace

Case random_stream(Rng& rng, uint64_t pc) {
  Case c;
  c.pc = pc;
  c.uses_memory = true;
  const uint32_t n = 5 + below(rng, 26);
  // Indirect jumps go to one of two words of the second half.
  const uint32_t first = n / 2 + below(rng, n - n / 2), second = n / 2 + below(rng, n - n / 2);
  c.entries = {pc + 4 * first, pc + 4 * second};
  const Exclusives exclusives{!one_in(rng, 3), one_in(rng, 2), below(rng, 4)};
  const unsigned memory_share = 2 + below(rng, 8);
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t word = 0;
    if (one_in(rng, 10))
      word = branch_word(rng, n - i);
    else if (i < std::min(first, second) && one_in(rng, 40))
      word = 0xd61f0000 | below(rng, 3) << 21 | kJumpTarget << 5;  // BR, BLR, RET
    else if (one_in(rng, 24))
      word = system_word(rng, exclusives);
    else if (one_in(rng, memory_share))
      word = memory_word(rng, pc + 4 * i, exclusives);
    else
      word = data_word(rng);
    c.words.push_back(word);
  }
  c.state = random_stream_state(rng, c);
  return c;
}

State random_stream_state(Rng& rng, const Case& c) {
  State s = random_state(rng);
  if (one_in(rng, 2)) fill_with_one_format(rng, s);
  for (uint32_t i = 0; i < kPointers; ++i) s.x[kFirstPointer + i] = pointer(rng);
  for (uint32_t i = 0; i < kIndexes; ++i) s.x[kFirstIndex + i] = rng() % 128;
  s.x[kFixedPointer] = ORACLE_WINDOW + 0x2000 + rng() % 64 * 64;
  s.sp = pointer(rng) & ~uint64_t{15};
  if (!c.entries.empty()) s.x[kJumpTarget] = c.entries[rng() % c.entries.size()];
  return s;
}

}  // namespace gpusim::a64::oracle
