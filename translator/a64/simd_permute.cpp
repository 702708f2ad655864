// Advanced SIMD: copies, permutations, tables, immediates (C4.1.90).
#include <bit>

#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {
namespace {

// imm5 of the copies: the lowest set bit gives the size, the bits above it the index.
uint32_t copy_size(uint32_t i) { return static_cast<uint32_t>(std::countr_zero(i)); }
uint32_t copy_index(uint32_t i) { return i >> (copy_size(i) + 1); }

uint32_t half_of(uint32_t index, uint32_t y) { return index >> (3 - y); }
uint32_t index_in_half(uint32_t index, uint32_t y) { return index & ((8u >> y) - 1); }

}  // namespace

void SimdVisitor::extract(Slot d, Reg r, uint32_t index, uint32_t y) {
  const Slot from = v(r, half_of(index, y));
  if (y == 3) {
    b_.mov(d, from);
  } else {
    b_.vumov(d, from, index_in_half(index, y), u8(y));
  }
}
bool SimdVisitor::insert_element(Slot from, Reg d, uint32_t index, uint32_t y) {
  const Slot to = v(d, half_of(index, y));
  if (y == 3) {
    b_.mov(to, from);
  } else {
    b_.vins(to, from, to, index_in_half(index, y), u8(y));
  }
  return true;
}

bool SimdVisitor::DUP_elt_v(bool q, uint32_t i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint32_t y = copy_size(i), index = copy_index(i);
  const Slot from = v(n, half_of(index, y));
  if (y == 3) {
    b_.mov(v_low(d), from);
  } else {
    b_.vdup(v_low(d), from, index_in_half(index, y), u8(y));
  }
  if (q) b_.mov(v_high(d), v_low(d));
  return end_vector(q, d);
}
bool SimdVisitor::DUP_gpr_v(bool q, uint32_t i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint32_t y = copy_size(i);
  if (y == 3) {
    b_.mov(v_low(d), x_src(n));
  } else {
    b_.vdup(v_low(d), x_src(n), 0, u8(y));
  }
  if (q) b_.mov(v_high(d), v_low(d));
  return end_vector(q, d);
}
bool SimdVisitor::DUP_elt_s(uint32_t i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  extract(v_low(d), n, copy_index(i), copy_size(i));
  return done(d);
}
bool SimdVisitor::SMOV_v(bool q, uint32_t i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint32_t y = copy_size(i), index = copy_index(i);
  b_.vsmov(x_dst(d), v(n, half_of(index, y)), index_in_half(index, y), u8(y));
  if (!q && d != 31) b_.mov32(x_dst(d), x_dst(d));
  return true;
}
bool SimdVisitor::UMOV_v(bool, uint32_t i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  extract(x_dst(d), n, copy_index(i), copy_size(i));
  return true;
}
bool SimdVisitor::INS_gpr_v(uint32_t i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  return insert_element(x_src(n), d, copy_index(i), copy_size(i));
}
bool SimdVisitor::INS_elt_v(uint32_t i, uint32_t l, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint32_t y = copy_size(i), from_index = l >> y;
  Slot from = v(n, half_of(from_index, y));
  if (index_in_half(from_index, y) != 0) {
    from = b_.temp();
    extract(from, n, from_index, y);
  }
  return insert_element(from, d, copy_index(i), y);
}

// --- permutations. 64-bit elements only change places.

bool SimdVisitor::unzip(MicroOp op, bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  if (y == 3) return zip(op == MicroOp::vuzp2, q, y, m, n, d);
  const Slot low = q && d == m ? b_.temp() : v_low(d);
  for (uint32_t h = 0; h <= q; ++h) {
    const SlotPair s = pair_sources(q, h, m, n);
    op3(op, h ? v_high(d) : low, s.low, s.high, y);
  }
  if (low != v_low(d)) b_.mov(v_low(d), low);
  return end_vector(q, d);
}
bool SimdVisitor::UZP1_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return unzip(MicroOp::vuzp1, q, y, m, n, d);
}
bool SimdVisitor::UZP2_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return unzip(MicroOp::vuzp2, q, y, m, n, d);
}

bool SimdVisitor::zip(uint32_t half, bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  if (!q) {
    op3(half ? MicroOp::vzip2 : MicroOp::vzip1, v_low(d), v_low(n), v_low(m), y);
    return done(d);
  }
  const Slot a = v(n, half), b = v(m, half);
  for (uint32_t step = 0; step < 2; ++step) {
    const uint32_t h = half_in_order(step, half);
    if (y == 3) {
      b_.mov(v(d, h), h ? b : a);
    } else {
      op3(h ? MicroOp::vzip2 : MicroOp::vzip1, v(d, h), a, b, y);
    }
  }
  return true;
}
bool SimdVisitor::ZIP1_v(bool q, uint32_t y, Reg m, Reg n, Reg d) { return zip(0, q, y, m, n, d); }
bool SimdVisitor::ZIP2_v(bool q, uint32_t y, Reg m, Reg n, Reg d) { return zip(1, q, y, m, n, d); }

bool SimdVisitor::transpose(uint32_t odd, bool q, uint32_t y, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  if (y == 3) return zip(odd, q, y, m, n, d);
  const uint64_t bits = 8u << y;
  const uint64_t even = splat(~uint64_t{0} >> (64 - bits), y + 1);
  const Slot a = b_.temp(), b = b_.temp();
  for (uint32_t h = 0; h <= q; ++h) {
    if (odd) {
      b_.ubfx(a, v(n, h), even, u8(bits));
      b_.andi64(b, v(m, h), ~even);
    } else {
      b_.andi64(a, v(n, h), even);
      b_.ubfiz(b, v(m, h), ~even, u8(bits));
    }
    b_.or64(v(d, h), a, b);
  }
  return end_vector(q, d);
}
bool SimdVisitor::TRN1_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return transpose(0, q, y, m, n, d);
}
bool SimdVisitor::TRN2_v(bool q, uint32_t y, Reg m, Reg n, Reg d) {
  return transpose(1, q, y, m, n, d);
}

// Each table register contributes the bytes whose index it holds, and zeros elsewhere.
bool SimdVisitor::table(bool keep, bool q, Reg m, uint32_t l, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot result[2] = {b_.temp(), b_.temp()};
  const Slot part = b_.temp();
  const uint32_t registers = l + 1;
  const Slot end = keep ? konst(splat(16 * registers, 0)) : kZero;
  for (uint32_t h = 0; h <= q; ++h) {
    for (uint32_t k = 0; k < registers; ++k) {
      const uint32_t r = (n + k) % 32;
      b_.help3(k == 0 ? result[h] : part, v(r, 0), v(r, 1), v(m, h), 16 * k, 0,
               helper_number(Helper3::vtable));
      if (k != 0) b_.or64(result[h], result[h], part);
    }
    if (keep) {
      op3(MicroOp::vcmhs, part, v(m, h), end, 0);
      b_.and64(part, part, v(d, h));
      b_.or64(result[h], result[h], part);
    }
  }
  for (uint32_t h = 0; h <= q; ++h) b_.mov(v(d, h), result[h]);
  return end_vector(q, d);
}
bool SimdVisitor::TBL_v(bool q, Reg m, uint32_t l, Reg n, Reg d) {
  return table(false, q, m, l, n, d);
}
bool SimdVisitor::TBX_v(bool q, Reg m, uint32_t l, Reg n, Reg d) {
  return table(true, q, m, l, n, d);
}

bool SimdVisitor::EXT_v(bool q, Reg m, uint32_t i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  // The bytes of n, then m, as halves; the last is never reached.
  const Slot with_q[4] = {v_low(n), v_high(n), v_low(m), v_high(m)};
  const Slot without_q[2] = {v_low(n), v_low(m)};
  const Slot* halves = q ? with_q : without_q;
  const uint32_t first = i / 8, rest = i % 8;
  const Slot low = q && d == m ? b_.temp() : v_low(d);
  for (uint32_t h = 0; h <= q; ++h) {
    const Slot to = h ? v_high(d) : low;
    if (rest == 0) {
      b_.mov(to, halves[first + h]);
    } else {
      b_.vext(to, halves[first + h], halves[first + h + 1], rest);
    }
  }
  if (low != v_low(d)) b_.mov(v_low(d), low);
  return end_vector(q, d);
}

// --- modified immediates (AdvSIMDExpandImm)
namespace {

uint64_t expand_modified(uint32_t op, uint32_t cmode, uint64_t imm8) {
  const auto replicated = [](uint64_t x, int bits) {
    for (; bits < 64; bits *= 2) x |= x << bits;
    return x;
  };
  switch (cmode >> 1) {
    case 0:
    case 1:
    case 2:
    case 3:
      return replicated(imm8 << 8 * (cmode >> 1), 32);
    case 4:
    case 5:
      return replicated(imm8 << 8 * (cmode >> 1 & 1), 16);
    case 6:  // ones shifted in
      return replicated(cmode & 1 ? imm8 << 16 | 0xffff : imm8 << 8 | 0xff, 32);
    default:
      break;
  }
  if (op == 0) return replicated(imm8, 8);
  uint64_t bytes = 0;
  for (int i = 0; i < 8; ++i) bytes |= imm8 >> i & 1 ? uint64_t{0xff} << 8 * i : 0;
  return bytes;
}

}  // namespace

bool SimdVisitor::MOVI_family_v(bool q, bool o, uint32_t h, uint32_t k, uint32_t i, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint32_t imm8 = h << 5 | i;
  if (k == 15) {  // FMOV
    const uint64_t value =
        o ? expand_imm(FpFormat::kF64, imm8) : splat(expand_imm(FpFormat::kF32, imm8), 2);
    for (uint32_t half = 0; half <= q; ++half) b_.konst(v(d, half), value);
    return end_vector(q, d);
  }
  const uint64_t value = expand_modified(o, k, imm8);
  const bool modifies = k < 12 && (k & 1) != 0;  // ORR and BIC
  for (uint32_t half = 0; half <= q; ++half) {
    if (!modifies) {
      b_.konst(v(d, half), o && k < 14 ? ~value : value);
    } else if (o) {
      b_.andi64(v(d, half), v(d, half), ~value);
    } else {
      b_.ori64(v(d, half), v(d, half), value);
    }
  }
  return end_vector(q, d);
}
bool SimdVisitor::FMOV_imm_v_h(bool q, uint32_t h, uint32_t i, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint64_t value = splat(expand_imm(FpFormat::kF16, h << 5 | i), 1);
  for (uint32_t half = 0; half <= q; ++half) b_.konst(v(d, half), value);
  return end_vector(q, d);
}

}  // namespace gpusim::a64
