// Random vector instructions and states.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "device_sim/uir/vector_type.h"
#include "tests/isa/riscv/insn_oracle/draw_case.h"
#include "translator/riscv/vector.h"

namespace gpusim::riscv::oracle {
namespace {

using gpusim::oracle::one_in;
using gpusim::oracle::random_address;
using gpusim::oracle::random_fp_word;
using gpusim::oracle::random_value;
using gpusim::oracle::with_field;
using vector::Kind;

bool has(const Row& row, char letter) { return row.pattern.field(letter).width != 0; }

// Elements of all widths that are interesting.
uint64_t random_vector_word(Rng& rng) {
  switch (rng() % 6) {
    case 0:
      return random_value(rng);
    case 1:
      return random_fp_word(rng);
    case 2: {
      const uint64_t single = random_fp_word(rng);
      return (single & 0xffffffff) | random_fp_word(rng) << 32;
    }
    case 3: {  // bytes near the ends of their range
      static constexpr uint8_t kBytes[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe};
      uint64_t word = 0;
      for (int i = 0; i < 8; ++i) word |= uint64_t{kBytes[rng() % std::size(kBytes)]} << 8 * i;
      return word;
    }
    case 4: {
      uint64_t word = 0;
      for (int i = 0; i < 4; ++i) word |= (random_value(rng) & 0xffff) << 16 * i;
      return word;
    }
    default:
      return rng();
  }
}

// Offsets that stay near the base, as elements of that width.
void set_indices(State& s, uint32_t first, int log_size, Rng& rng) {
  auto* bytes = reinterpret_cast<uint8_t*>(s.v);
  const size_t size = size_t{1} << log_size;
  for (size_t at = first * vector::kBytes; at + size <= sizeof s.v; at += size) {
    const uint64_t offset = log_size == 0 ? rng() & 0xff : rng() & 0x1ff;
    std::memcpy(bytes + at, &offset, size);
  }
}

}  // namespace

void random_vectors(State& s, Rng& rng) {
  if (kXlen != 64) return;
  for (uint64_t& word : s.v) word = random_vector_word(rng);
  for (int i = 0; i < 8; ++i) s.v[rng() % 64] = s.v[rng() % 64];
  do s.vtype = rng() & 0xff;
  while (!vector::type_of(s.vtype).is_legal);
  const uint64_t longest = vector::type_of(s.vtype).longest;
  s.vl = one_in(rng, 3) ? longest : rng() % (longest + 1);
  // From the length on QEMU 7.2 leaves vstart alone ("vstart behind the end").
  s.vstart = s.vl > 0 && one_in(rng, 8) ? rng() % s.vl : 0;
  s.vcsr = rng() & 7;
  if (one_in(rng, 100)) {
    s.vtype = vector::kIllegalType;
    s.vl = s.vstart = 0;
  }
}

Case random_vector_case(const Row& row, Rng& rng, uint64_t pc) {
  Case c;
  c.pc = pc;
  c.state = random_state(rng);
  State& s = c.state;
  const vector::Row operation = vector::row_of(vector_operation(row.op));
  // Widths of elements that floating point has, more often.
  if ((operation.flags & vector::kFloat) && !one_in(rng, 4)) {
    const uint64_t size = 1 + rng() % (operation.widths == vector::Widths::kSame ? 3 : 2);
    s.vtype = size << 3 | (rng() & 3) | (rng() & 0xc0);
    s.vl = rng() % (vector::type_of(s.vtype).longest + 1);
    s.vstart = 0;
  }
  uint32_t word = random_word(row, 64, rng);
  const uint32_t form = word >> 12 & 7;
  const bool is_memory = vector::is_access(operation.kind);
  // QEMU 7.2 leaves vstart where no element of these is left to do, and does not mind an illegal
  // type where whole registers move.
  switch (operation.kind) {
    case Kind::kWholeMove:
      if (s.vtype == vector::kIllegalType) s.vtype = 0;
      [[fallthrough]];
    case Kind::kWholeAccess:
    case Kind::kMaskAccess:
    case Kind::kToScalar:
    case Kind::kFromScalar:
    case Kind::kSlide:
      s.vstart = 0;
      break;
    default:
      break;
  }
  if (!one_in(rng, 8)) {
    const uint32_t group = 1u << rng() % 4;
    for (const char letter : {'d', 'm', 'n'}) {
      if (!has(row, letter) || (letter == 'n' && (is_memory || form >= 3))) continue;
      word = with_field(row, word, letter, row.field(letter, word) & ~(group - 1));
    }
  }
  const auto set = [&](char letter, uint64_t value) {
    if (const uint32_t r = row.field(letter, word)) s.x[r] = value;
  };
  if (operation.kind == Kind::kConfigure) {
    if (has(row, 'm')) set('m', one_in(rng, 3) ? random_value(rng) : rng() & 0xff);
    if (has(row, 'n')) set('n', one_in(rng, 3) ? random_value(rng) : rng() % 300);
    if (has(row, 'i') && !one_in(rng, 4)) word = with_field(row, word, 'i', rng() & 0xff);
  }
  if (!is_memory && has(row, 'n') && form >= 4 && form != 5 && one_in(rng, 2)) set('n', rng() % 40);
  if (is_memory) {
    if (row.field('n', word) == 0) word = with_field(row, word, 'n', 1 + rng() % 31);
    if (has(row, 'g') && operation.kind != Kind::kWholeAccess && one_in(rng, 2))
      word = with_field(row, word, 'g', 0);
    if (operation.kind == Kind::kIndexed)
      set_indices(s, row.field('m', word),
                  has(row, 'r') ? static_cast<int>(row.field('r', word)) : 0, rng);
    else if (has(row, 'm'))
      set('m', one_in(rng, 4) ? uint64_t{0} - rng() % 64 : rng() % 100);
    uint64_t address = random_address(rng, 128);
    if (one_in(rng, 16)) address = ORACLE_WINDOW + rng() % ORACLE_WINDOW_BYTES;
    set('n', address);
  }
  c.append(word, 4);
  return c;
}

}  // namespace gpusim::riscv::oracle
