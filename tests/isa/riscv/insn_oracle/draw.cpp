#include <algorithm>

#include "tests/isa/riscv/insn_oracle/draw_case.h"
#include "translator/riscv/vector.h"

namespace gpusim::riscv::oracle {
namespace {

using gpusim::oracle::one_in;
using gpusim::oracle::random_address;
using gpusim::oracle::random_fp_word;
using gpusim::oracle::random_value;
using gpusim::oracle::with_field;

bool has(const Row& row, char letter) { return row.pattern.field(letter).width != 0; }

// A register of a narrow format: mostly boxed.
uint64_t random_float(Rng& rng) {
  const uint64_t word = random_fp_word(rng);
  switch (rng() % 6) {
    case 0:
    case 1:
    case 2:
      return word | ~uint64_t{0} << 32;
    case 3:
      return word | ~uint64_t{0} << 16;
    default:
      return word;
  }
}

unsigned access_bytes(const Row& row, uint32_t word) {
  switch (word & 0x7f) {
    case 0x03:
    case 0x07:
    case 0x23:
    case 0x27:
      return 1u << (word >> 12 & 3);
    default:
      return has(row, 'y') && row.field('y', word) ? 8 : 4;
  }
}

uint32_t with_branch_offset(uint32_t word, uint32_t offset) {
  word &= ~0xfe000f80u;
  return word | (offset >> 11 & 1) << 7 | (offset >> 1 & 15) << 8 | (offset >> 5 & 63) << 25 |
         (offset >> 12 & 1) << 31;
}
uint32_t with_jump_offset(uint32_t word, uint32_t offset) {
  word &= 0xfff;
  return word | (offset >> 12 & 0xff) << 12 | (offset >> 11 & 1) << 20 |
         (offset >> 1 & 0x3ff) << 21 | (offset >> 20 & 1) << 31;
}

}  // namespace

bool is_memory(const Row& row) {
  const uint32_t major = row.pattern.value & 0x7f;
  return major == 0x03 || major == 0x07 || major == 0x23 || major == 0x27 || major == 0x2f;
}

State random_state(Rng& rng) {
  State s{};
  for (int i = 1; i < 32; ++i) s.x[i] = random_value(rng) & kRegisterMask;
  for (uint64_t& f : s.f) f = random_float(rng);
  s.fcsr = rng() & 0x1f;
  if (one_in(rng, 3)) s.fcsr = 0x01;
  if (one_in(rng, 2)) s.fcsr |= rng() % 5 << 5;
  random_vectors(s, rng);
  // Operands that are equal or neighbours matter to comparisons.
  for (int i = 0; i < 8; ++i) {
    s.x[1 + rng() % 31] = (s.x[1 + rng() % 31] + rng() % 3 - 1) & kRegisterMask;
    s.f[rng() % 32] = s.f[rng() % 32];
  }
  return s;
}

Case random_case(const Row& row, Rng& rng, uint64_t pc) {
  if (is_vector(row)) return random_vector_case(row, rng, pc);
  Case c;
  c.pc = pc;
  c.state = random_state(rng);
  uint32_t word = random_word(row, kXlen, rng);
  // To x0 it is a hint, with a meaning of ours.
  while (row.op == Op::SLTI && row.field('d', word) == 0) word = random_word(row, kXlen, rng);
  const uint32_t major = word & 0x7f;
  const auto set = [&](char letter, uint64_t value) {
    if (const uint32_t r = row.field(letter, word)) c.state.x[r] = value & kRegisterMask;
  };
  if (has(row, 'c')) {  // user code has three of them here; one more is refused
    static constexpr uint32_t kCsrs[] = {1, 2, 3, 1, 2, 3, 0x300};
    word = with_field(row, word, 'c', kCsrs[rng() % std::size(kCsrs)]);
    // What frm may be; a reserved one would make what follows illegal.
    if (has(row, 'n')) set('n', rng() & (one_in(rng, 2) ? 0x9f : ~uint64_t{0x60}));
    if (has(row, 'u')) word = with_field(row, word, 'u', static_cast<uint32_t>(rng() & 0x1b));
  }
  // Nothing is mapped around the address 0: x0 is no base, unless for a fault now and then.
  if (is_memory(row) && row.field('n', word) == 0 && (row.op == Op::SC || !one_in(rng, 8)))
    word = with_field(row, word, 'n', 1 + static_cast<uint32_t>(rng() % 31));
  if (major == 0x63) word = with_branch_offset(word, 8);
  if (major == 0x6f) word = with_jump_offset(word, 8);
  if (row.op == Op::JALR) {
    if (row.field('n', word) == 0) word = with_field(row, word, 'n', 5);
    const auto offset = static_cast<int64_t>(uint64_t{row.field('i', word)} << 52) >> 52;
    set('n', jump_exit_pc(pc, 4) - static_cast<uint64_t>(offset) + rng() % 2);
  }
  if (is_memory(row)) {
    uint64_t address = random_address(rng, access_bytes(row, word));
    // Where nothing is mapped.
    if (one_in(rng, 32))
      address =
          kXlen == 32 ? 0x90000000 + (rng() & 0x3fffffff) : 0x200000000000 + (rng() & 0xffffffffff);
    // QEMU checks a store-conditional's address only if it stores.
    if (row.op == Op::SC) address = ORACLE_WINDOW + 512 + rng() % 512 * 8;
    uint64_t offset = 0;
    if (has(row, 'k')) {
      offset = row.field('i', word) << 5 | row.field('k', word);
    } else if (has(row, 'i')) {
      offset = row.field('i', word);
    }
    offset = static_cast<uint64_t>(static_cast<int64_t>(offset << 52) >> 52);
    set('n', address - offset);
  }
  c.append(word, 4);
  return c;
}

}  // namespace gpusim::riscv::oracle
