#include <algorithm>

#include "tests/isa/a64/insn_oracle/oracle.h"
#include "tests/unit/softfloat/sequence.h"

namespace gpusim::a64::oracle {
namespace {

bool has_field(const Row& row, char letter) { return row.pattern.field(letter).width != 0; }

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

void set_register(State& s, uint32_t number, uint64_t value) {
  if (number == 31)
    s.sp = value;
  else
    s.x[number] = value;
}

// --- loads and stores

// Nothing is mapped there in the guest program either, whose own memory must stay whole.
uint64_t unmapped_address(Rng& rng) { return 0x200000000000 + (rng() & 0xffffffffff); }

struct Access {
  const Row& row;
  uint32_t word;
  uint32_t field(char letter) const { return has_field(row, letter) ? row.field(letter, word) : 0; }

  // log2 of the bytes of one register, as the rows' fields say it.
  unsigned log2_size() const {
    if (row.group == Group::kSimd) return 4;
    if (ends_with(row.name, "P_fp")) return field('y') + 2;
    if (has_field(row, 'q') && field('q')) return 4;
    if (has_field(row, 'y') && row.pattern.field('y').width == 2) return field('y');
    if (has_field(row, 'y') || has_field(row, 'z')) return 2 + field('y') + field('z');
    return 3;
  }
  bool is_pair() const { return has_field(row, 'u') || row.op == Op::CASP; }
};

// Rd of a compare-and-swap holds what memory holds, half of the time, so that it succeeds.
void expect_memory(Rng& rng, uint64_t address, uint32_t s, State& state) {
  const uint64_t offset = address - ORACLE_WINDOW;
  if (s >= 31 || offset + 16 > ORACLE_WINDOW_BYTES || one_in(rng, 2)) return;
  uint64_t words[2] = {oracle_window_word(offset / 8), oracle_window_word(offset / 8 + 1)};
  uint64_t value = words[0];
  if (const unsigned shift = 8 * (offset % 8)) value = words[0] >> shift | words[1] << (64 - shift);
  state.x[s] = value;
}

bool is_exclusive_store(const Row& row) {
  return starts_with(row.name, "STX") || starts_with(row.name, "STLX");
}

// CONSTRAINED UNPREDICTABLE, and not worth a rule of ours.
bool is_unpredictable(const Access& a) {
  const uint32_t n = a.field('n'), t = a.field('t'), u = a.field('u'), s = a.field('s');
  if (is_exclusive_store(a.row)) return s == t || s == n || (a.is_pair() && s == u);
  // Base plus base may be anywhere in the guest program.
  if (ends_with(a.row.name, "_reg") && n == a.field('m')) return true;
  return a.is_pair() && has_field(a.row, 'u') && t == u;
}

State memory_state(const Row& row, Rng& rng, uint32_t word) {
  State s = random_state(rng);
  if (ends_with(row.name, "_lit")) return s;
  const Access a{row, word};
  const unsigned size = std::min(4u, a.log2_size());
  // qemu checks a store-exclusive's address only if it stores, the alignment of LDAPR never.
  const bool tame = is_exclusive_store(row) || row.op == Op::LDAPR;

  // Half of the registers are random; the address is made to fall into the window.
  uint64_t address = random_address(rng, (a.is_pair() ? 2u : 1u) << size);
  if (tame) address = ORACLE_WINDOW + 512 + rng() % 512 * 32;
  uint64_t base = address;
  if (ends_with(row.name, "_uimm")) base -= uint64_t{a.field('i')} << size;
  if (ends_with(row.name, "_reg") && has_field(row, 'o')) {
    const uint32_t option = a.field('o'), m = a.field('m');
    int64_t index_value = static_cast<int64_t>(rng() % 512) - (option == 2 ? 0 : 256);
    const uint64_t garbage = (option & 1) ? 0 : rng() << 32;
    if (m != 31)
      s.x[m] =
          ((option & 1) ? static_cast<uint64_t>(index_value) : static_cast<uint32_t>(index_value)) |
          garbage;
  }
  if (one_in(rng, 32) && !tame) base = unmapped_address(rng);
  set_register(s, a.field('n'), base);
  if (starts_with(row.name, "CAS")) {
    expect_memory(rng, address, a.field('s'), s);
    if (row.op == Op::CASP && a.field('s') + 1 != a.field('n')) {
      if (a.field('z') || row.field('y', word))
        expect_memory(rng, address + 8, a.field('s') + 1, s);
      else if (a.field('s') < 30)
        s.x[a.field('s') + 1] = s.x[a.field('s')] >> 32;
    }
    set_register(s, a.field('n'), base);
  }
  return s;
}

uint32_t memory_word(const Row& row, Rng& rng, uint64_t pc) {
  uint32_t word = random_word(row, rng);
  if (ends_with(row.name, "_lit")) {
    const uint64_t target = one_in(rng, 16) ? ORACLE_WINDOW - 64 : random_address(rng, 16) & ~3ull;
    return with_field(row, word, 'i', (target - pc) / 4);
  }
  while (is_unpredictable({row, word})) word = random_word(row, rng);
  return word;
}

bool is_memory(const Row& row) {
  return row.group == Group::kLoadsStores ||
         (row.group == Group::kSimd &&
          (starts_with(row.name, "LD") || starts_with(row.name, "ST")));
}

// --- branches: taken ones go to the second exit

State branch_state(const Row& row, Rng& rng, const Case& c) {
  State s = random_state(rng);
  const uint32_t word = c.words[0];
  if (has_field(row, 't') && one_in(rng, 2) && row.field('t', word) < 31)
    s.x[row.field('t', word)] = one_in(rng, 2) ? 0 : rng() << 32;
  if (has_field(row, 'n') && row.field('n', word) < 31) {
    // Now and then to data, to nowhere, or to an address that no instruction has.
    uint64_t target = jump_exit_pc(c);
    if (one_in(rng, 16))
      target = random_address(rng, 4) & ~3ull;
    else if (one_in(rng, 16))
      target = unmapped_address(rng) & ~3ull;
    else if (one_in(rng, 16))
      target += 1 + rng() % 3;
    s.x[row.field('n', word)] = target;
  }
  return s;
}

uint32_t branch_word(const Row& row, Rng& rng) {
  const uint32_t word = random_word(row, rng);
  return has_field(row, 'i') && row.pattern.field('i').width > 7 && row.op != Op::UDF &&
                 row.op != Op::BRK && row.op != Op::HLT
             ? with_field(row, word, 'i', 2)
             : word;
}

}  // namespace

uint64_t random_fpcr(Rng& rng) { return one_in(rng, 2) ? 0 : rng() & 0x07c80000; }

State random_state(Rng& rng) {
  State s{};
  for (uint64_t& x : s.x) x = random_value(rng);
  s.sp = random_value(rng);
  s.nzcv = rng() & 0xf0000000;
  s.fpcr = random_fpcr(rng);
  s.fpsr = one_in(rng, 2) ? 0 : rng() & 0x0800009f;
  for (uint64_t& v : s.v) v = random_fp_word(rng);
  // Operands that are equal or neighbours matter to comparisons.
  for (int i = 0; i < 6; ++i) {
    s.x[rng() % 31] = s.x[rng() % 31] + rng() % 3 - 1;
    s.v[rng() % 64] = s.v[rng() % 64];
  }
  return s;
}

void fill_with_one_format(Rng& rng, State& state) {
  sequence s{rng()};
  const int kind = static_cast<int>(rng() % 4);
  const int bits = kind == kInt ? 64 : kind_bits(kind);
  for (int i = 0; i < 64; i += 3) {
    uint64_t words[3] = {0, 0, 0};
    for (int at = 0; at < 64; at += bits) {
      uint64_t operands[3];
      random_operands(&s, kind, operands);
      for (int k = 0; k < 3; ++k) words[k] |= operands[k] << at;
    }
    for (int k = 0; k < 3 && i + k < 64; ++k) state.v[i + k] = words[k];
  }
  for (int i = 0; i < 6; ++i) state.v[rng() % 64] = state.v[rng() % 64];
}

Case random_case(const Row& row, Rng& rng, uint64_t pc) {
  Case c;
  c.pc = pc;
  c.uses_memory = is_memory(row) || row.op == Op::SYS;
  if (is_memory(row))
    c.words = {memory_word(row, rng, pc)};
  else if (row.group == Group::kBranchesSystem)
    c.words = {branch_word(row, rng)};
  else
    c.words = {random_word(row, rng)};
  c.state = random_state_for(row, rng, c);
  return c;
}

State random_state_for(const Row& row, Rng& rng, const Case& c) {
  if (is_memory(row)) return memory_state(row, rng, c.words[0]);
  if (row.group == Group::kBranchesSystem) return branch_state(row, rng, c);
  return random_state(rng);
}

}  // namespace gpusim::a64::oracle
