// Advanced SIMD: complex numbers (FEAT_FCMA), products of halves in singles (FEAT_FHM), and
// BFloat16 (FEAT_BF16), C4.1.90.
#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {

// --- complex numbers

Slot SimdVisitor::complex_swapped(FpFormat f, Slot a) {
  const Slot t = b_.temp();
  if (f == FpFormat::kF32) {
    b_.rori64(t, a, 32);
  } else {
    const Slot up = b_.temp();
    b_.vshl(up, a, 16, 2);
    b_.vushr(t, a, 16, 2);
    b_.or64(t, t, up);
  }
  return t;
}
// The real or the imaginary parts in both places.
Slot SimdVisitor::complex_part(FpFormat f, bool imaginary, Slot a) {
  const Slot t = b_.temp();
  if (f == FpFormat::kF32) {
    b_.vdup(t, a, imaginary, 2);
  } else {
    const Slot up = b_.temp();
    if (imaginary) {
      b_.vushr(t, a, 16, 2);
    } else {
      b_.andi64(t, a, splat(0xffff, 2));
    }
    b_.lsli64(up, t, 16);
    b_.or64(t, t, up);
  }
  return t;
}
Slot SimdVisitor::complex_negated(FpFormat f, bool real, bool imaginary, uint32_t half, Slot a) {
  uint64_t mask = 0;
  if (f == FpFormat::kF64) {
    if (half ? imaginary : real) mask = sign_bit(f);
  } else {
    const uint32_t y = static_cast<uint32_t>(f) + 2;  // of a pair
    if (real) mask |= splat(sign_bit(f), y);
    if (imaginary) mask |= splat(sign_bit(f) << bits(f), y);
  }
  if (mask == 0) return a;
  const Slot t = b_.temp();
  b_.xori64(t, a, mask);
  return t;
}

// FCADD: n plus m turned by 90 or 270 degrees.
bool SimdVisitor::FCADD_v(bool q, uint32_t y, Reg m, uint32_t rot, Reg n, Reg d) {
  const auto f = static_cast<FpFormat>(y - 1);
  set_arithmetic_class(f);
  if (f == FpFormat::kF64) {
    const Slot real = b_.temp();
    const Slot m_real = complex_negated(f, rot == 0, rot != 0, 0, v_high(m));
    const Slot m_imaginary = complex_negated(f, rot == 0, rot != 0, 1, v_low(m));
    vector2(Fp2::kAdd, f, real, v_low(n), m_real);
    vector2(Fp2::kAdd, f, v_high(d), v_high(n), m_imaginary);
    b_.mov(v_low(d), real);
    return true;
  }
  for (uint32_t h = 0; h <= q; ++h) {
    const Slot turned = complex_negated(f, rot == 0, rot != 0, h, complex_swapped(f, v(m, h)));
    vector2(Fp2::kAdd, f, v(d, h), v(n, h), turned);
  }
  return end_vector(q, d);
}

// FCMLA: half of a complex product, which of the four by rot.
bool SimdVisitor::complex_muladd(FpFormat f, uint32_t rot, bool q, Slot m_low, Slot m_high, Reg n,
                                 Reg d) {
  set_arithmetic_class(f);
  const bool imaginary = rot & 1;  // of n; it turns m, too
  const bool negate_real = rot == 1 || rot == 2, negate_imaginary = rot >= 2;
  const Slot halves[2] = {m_low, m_high};
  if (f == FpFormat::kF64) {
    const Slot part = v(n, imaginary), real = b_.temp();
    const Slot m_real = complex_negated(f, negate_real, negate_imaginary, 0, halves[imaginary]);
    const Slot m_imaginary =
        complex_negated(f, negate_real, negate_imaginary, 1, halves[!imaginary]);
    vector_muladd(f, real, part, m_real, v_low(d));
    vector_muladd(f, v_high(d), part, m_imaginary, v_high(d));
    b_.mov(v_low(d), real);
    return true;
  }
  for (uint32_t h = 0; h <= q; ++h) {
    const Slot turned = imaginary ? complex_swapped(f, halves[h]) : halves[h];
    const Slot factor = complex_negated(f, negate_real, negate_imaginary, h, turned);
    vector_muladd(f, v(d, h), complex_part(f, imaginary, v(n, h)), factor, v(d, h));
  }
  return end_vector(q, d);
}
bool SimdVisitor::FCMLA_v(bool q, uint32_t y, Reg m, uint32_t rot, Reg n, Reg d) {
  return complex_muladd(static_cast<FpFormat>(y - 1), rot, q, v_low(m), v_high(m), n, d);
}
// An element is a pair: of halves indexed by H:L, of singles by H.
bool SimdVisitor::FCMLA_elt_v(bool q, uint32_t y, uint32_t L, uint32_t M, uint32_t m, uint32_t rot,
                              uint32_t H, Reg n, Reg d) {
  const Slot e = splat_of(y + 1, L, M, m, H);
  return complex_muladd(static_cast<FpFormat>(y - 1), rot, q, e, e, n, d);
}

// --- halves, multiplied and added as singles. `part` chooses the upper half of what n and m have.

bool SimdVisitor::fp_long(bool subtract, uint32_t part, bool q, Slot m, Reg n, Reg d) {
  set_arithmetic_class(FpFormat::kF32);
  const Slot a = v(n, q ? part : 0);
  for (uint32_t step = 0; step <= q; ++step) {
    // Whichever half of d may be a source goes last.
    const uint32_t h = q ? half_in_order(step, part) : 0;
    const uint64_t upper = q ? h : part;
    b_.fhelp3(v(d, h), a, m, v(d, h), 1,
              helper_number(FpHelper3::fmlal) | upper << 16 | uint64_t{subtract} << 17);
  }
  return end_vector(q, d);
}
#define GPUSIM_ELEMENT_ARGS uint32_t L, uint32_t M, uint32_t m, uint32_t H, Reg n, Reg d
#define X(name, subtract, part)                                       \
  bool SimdVisitor::name##_v(bool q, Reg m, Reg n, Reg d) {           \
    return fp_long(subtract, part, q, v(m, q ? part : 0), n, d);      \
  }                                                                   \
  bool SimdVisitor::name##_elt_v(bool q, GPUSIM_ELEMENT_ARGS) {       \
    return fp_long(subtract, part, q, splat_of(1, L, M, m, H), n, d); \
  }
GPUSIM_A64_FP_LONG(X)
#undef X

// --- BFloat16

bool SimdVisitor::bf_dot(bool q, Slot m_low, Slot m_high, Reg n, Reg d) {
  set_arithmetic_class(FpFormat::kF32);
  for (uint32_t h = 0; h <= q; ++h) {
    b_.help3(v(d, h), v(n, h), h ? m_high : m_low, v(d, h), 0, 2, helper_number(Helper3::bfdot));
  }
  return end_vector(q, d);
}
bool SimdVisitor::BFDOT_v(bool q, Reg m, Reg n, Reg d) {
  return bf_dot(q, v_low(m), v_high(m), n, d);
}
bool SimdVisitor::BFDOT_elt_v(bool q, GPUSIM_ELEMENT_ARGS) {
  const Slot e = splat_of(2, L, M, m, H);
  return bf_dot(q, e, e, n, d);
}

// A row of four values is a half of a register, a row of results, too. Pairs add up one after the
// other, each sum rounded.
bool SimdVisitor::BFMMLA_v(Reg m, Reg n, Reg d) {
  set_arithmetic_class(FpFormat::kF32);
  const Slot first = b_.temp(), second = b_.temp(), row = b_.temp();
  op3(MicroOp::vzip1, first, v_low(m), v_high(m), 2);
  op3(MicroOp::vzip2, second, v_low(m), v_high(m), 2);
  const Slot results[2] = {b_.temp(), b_.temp()};
  for (uint32_t h = 0; h < 2; ++h) {
    const uint16_t helper = helper_number(Helper3::bfdot);
    b_.vdup(row, v(n, h), 0, 2);
    b_.help3(results[h], row, first, v(d, h), 0, 2, helper);
    b_.vdup(row, v(n, h), 1, 2);
    b_.help3(results[h], row, second, results[h], 0, 2, helper);
  }
  set_both(d, results[0], results[1]);
  return true;
}

// A BFloat16 is the upper half of a single: BFMLALB (q = 0) and BFMLALT are FMLA.
bool SimdVisitor::bf_muladd_long(bool top, Slot m_low, Slot m_high, Reg n, Reg d) {
  set_arithmetic_class(FpFormat::kF32);
  const Slot a = b_.temp(), b = b_.temp();
  const auto as_single = [&](Slot t, Slot from) {
    if (top) {
      b_.andi64(t, from, splat(0xffff0000, 2));
    } else {
      b_.vshl(t, from, 16, 2);
    }
  };
  for (uint32_t h = 0; h < 2; ++h) {
    as_single(a, v(n, h));
    as_single(b, h ? m_high : m_low);
    vector_muladd(FpFormat::kF32, v(d, h), a, b, v(d, h));
  }
  return true;
}
bool SimdVisitor::BFMLAL_v(bool q, Reg m, Reg n, Reg d) {
  return bf_muladd_long(q, v_low(m), v_high(m), n, d);
}
// The element is in both places of a pair.
bool SimdVisitor::BFMLAL_elt_v(bool q, GPUSIM_ELEMENT_ARGS) {
  const Slot e = splat_of(1, L, M, m, H);
  return bf_muladd_long(q, e, e, n, d);
}
#undef GPUSIM_ELEMENT_ARGS

bool SimdVisitor::BFCVTN_v(bool q, Reg n, Reg d) {
  set_arithmetic_class(FpFormat::kF32);
  fhelp2(FpHelper2::bfcvt, v(d, q), v_low(n), v_high(n), 2);
  return end_vector(q, d);
}
bool SimdVisitor::BFCVT(Reg n, Reg d) {
  set_arithmetic_class(FpFormat::kF32);
  const Slot a = low_element(v_low(n), 2);  // zeros raise nothing
  fhelp2(FpHelper2::bfcvt, v_low(d), a, kZero, 2);
  return done(d);
}

}  // namespace gpusim::a64
