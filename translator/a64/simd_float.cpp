// Advanced SIMD: floating point with two and three sources, vector and scalar (C4.1.90).
#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {

void SimdVisitor::vector2(Fp2 k, FpFormat f, Slot d, Slot a, Slot b) {
  constexpr MicroOp kPair[] = {MicroOp::vfadd32, MicroOp::vfsub32, MicroOp::vfmul32,
                               MicroOp::vfdiv32};
  const int i = static_cast<int>(k);
  const auto aux = static_cast<uint32_t>(f);
  if (k <= Fp2::kDiv && f == FpFormat::kF32) {
    b_.emit(kPair[i], d, a, b).e = kFpState;
  } else if (k >= Fp2::kEq) {
    fhelp2(FpHelper2::each_fcompare, d, a, b, aux, i - static_cast<int>(Fp2::kEq));
  } else if (f == FpFormat::kF64) {
    scalar2(k, f, d, a, b);
  } else if (k <= Fp2::kAbsDiff) {
    fhelp2(FpHelper2::each_fmisc2, d, a, b, aux, fp_aux(f, k));
  } else {
    fhelp2(FpHelper2::each_fminmax, d, a, b, aux, fp_aux(f, i - static_cast<int>(Fp2::kMin)));
  }
}

bool SimdVisitor::fp_2(Fp2 k, FpFormat f, bool q, Reg m, Reg n, Reg d) {
  set_class_of(k, f);
  for (uint32_t h = 0; h <= q; ++h) vector2(k, f, v(d, h), v(n, h), v(m, h));
  return end_vector(q, d);
}
#define X(name, k)                                                      \
  bool SimdVisitor::name##_v(bool q, uint32_t f, Reg m, Reg n, Reg d) { \
    return fp_2(Fp2::k, format(f), q, m, n, d);                         \
  }                                                                     \
  bool SimdVisitor::name##_v_h(bool q, Reg m, Reg n, Reg d) {           \
    return fp_2(Fp2::k, FpFormat::kF16, q, m, n, d);                    \
  }
GPUSIM_A64_FP_2(X)
GPUSIM_A64_FP_2_SCALAR(X)
#undef X

bool SimdVisitor::fp_scalar(Fp2 k, FpFormat f, Reg m, Reg n, Reg d) {
  set_class_of(k, f);
  scalar2(k, f, v_low(d), v_low(n), v_low(m));
  return done(d);
}
#define X(name, k)                                              \
  bool SimdVisitor::name##_s(uint32_t f, Reg m, Reg n, Reg d) { \
    return fp_scalar(Fp2::k, format(f), m, n, d);               \
  }                                                             \
  bool SimdVisitor::name##_s_h(Reg m, Reg n, Reg d) {           \
    return fp_scalar(Fp2::k, FpFormat::kF16, m, n, d);          \
  }
GPUSIM_A64_FP_2_SCALAR(X)
#undef X

// d = c + a * b
void SimdVisitor::vector_muladd(FpFormat f, Slot d, Slot a, Slot b, Slot c) {
  if (f == FpFormat::kF32) {
    b_.vfma32(d, a, b, c);
  } else if (f == FpFormat::kF64) {
    b_.fma64(d, a, b, c);
  } else {
    b_.fhelp3(d, a, b, c, static_cast<uint8_t>(f),
              helper_number(FpHelper3::each_fmisc3) | uint64_t{fp_aux(f, FpMisc3::kMulAdd)} << 16);
  }
}
bool SimdVisitor::fp_fused(bool negate, FpFormat f, bool q, Reg m, Reg n, Reg d) {
  set_arithmetic_class(f);
  for (uint32_t h = 0; h <= q; ++h) {
    Slot a = v(n, h);
    if (negate) {
      a = b_.temp();
      b_.xori64(a, v(n, h), splat(sign_bit(f), static_cast<uint32_t>(f) + 1));
    }
    vector_muladd(f, v(d, h), a, v(m, h), v(d, h));
  }
  return end_vector(q, d);
}
bool SimdVisitor::FMLA_v(bool q, uint32_t f, Reg m, Reg n, Reg d) {
  return fp_fused(false, format(f), q, m, n, d);
}
bool SimdVisitor::FMLA_v_h(bool q, Reg m, Reg n, Reg d) {
  return fp_fused(false, FpFormat::kF16, q, m, n, d);
}
bool SimdVisitor::FMLS_v(bool q, uint32_t f, Reg m, Reg n, Reg d) {
  return fp_fused(true, format(f), q, m, n, d);
}
bool SimdVisitor::FMLS_v_h(bool q, Reg m, Reg n, Reg d) {
  return fp_fused(true, FpFormat::kF16, q, m, n, d);
}

// --- pairs of adjacent elements

bool SimdVisitor::fp_pairwise(Fp2 k, FpFormat f, bool q, Reg m, Reg n, Reg d) {
  set_class_of(k, f);
  const uint32_t y = static_cast<uint32_t>(f) + 1;
  const Slot even = b_.temp(), odd = b_.temp();
  const Slot low = q && d == m ? b_.temp() : v_low(d);
  for (uint32_t h = 0; h <= q; ++h) {
    const SlotPair s = pair_sources(q, h, m, n);
    const Slot result = h ? v_high(d) : low;
    if (f == FpFormat::kF64) {
      vector2(k, f, result, s.low, s.high);
    } else {
      op3(MicroOp::vuzp1, even, s.low, s.high, y);
      op3(MicroOp::vuzp2, odd, s.low, s.high, y);
      vector2(k, f, result, even, odd);
    }
  }
  if (low != v_low(d)) b_.mov(v_low(d), low);
  return end_vector(q, d);
}
bool SimdVisitor::fp_pairwise_scalar(Fp2 k, FpFormat f, Reg n, Reg d) {
  set_class_of(k, f);
  if (f == FpFormat::kF64) {
    scalar2(k, f, v_low(d), v_low(n), v_high(n));
  } else {
    const Slot second = b_.temp();
    b_.lsri64(second, v_low(n), static_cast<uint64_t>(bits(f)));
    scalar2(k, f, v_low(d), v_low(n), second);
  }
  return done(d);
}
#define X(name, k)                                                      \
  bool SimdVisitor::name##_v(bool q, uint32_t f, Reg m, Reg n, Reg d) { \
    return fp_pairwise(Fp2::k, format(f), q, m, n, d);                  \
  }                                                                     \
  bool SimdVisitor::name##_v_h(bool q, Reg m, Reg n, Reg d) {           \
    return fp_pairwise(Fp2::k, FpFormat::kF16, q, m, n, d);             \
  }                                                                     \
  bool SimdVisitor::name##_s(uint32_t f, Reg n, Reg d) {                \
    return fp_pairwise_scalar(Fp2::k, format(f), n, d);                 \
  }                                                                     \
  bool SimdVisitor::name##_s_h(Reg n, Reg d) {                          \
    return fp_pairwise_scalar(Fp2::k, FpFormat::kF16, n, d);            \
  }
GPUSIM_A64_FP_PAIRWISE(X)
#undef X

// The manual's Reduce: adjacent pairs, then pairs of those. Zeros that fill up a half compare
// silently.
bool SimdVisitor::fp_across(Fp2 k, FpFormat f, bool q, Reg n, Reg d) {
  set_class_of(k, f);
  const uint32_t y = static_cast<uint32_t>(f) + 1;
  const Slot t = b_.temp(), even = b_.temp(), odd = b_.temp();
  uint32_t count = (q ? 128 : 64) / static_cast<uint32_t>(bits(f));
  Slot low = v_low(n), high = q ? v_high(n) : kZero;
  for (; count > 1; count /= 2) {
    op3(MicroOp::vuzp1, even, low, high, y);
    op3(MicroOp::vuzp2, odd, low, high, y);
    vector2(k, f, t, even, odd);
    low = t;
    high = kZero;
  }
  b_.mov(v_low(d), t);
  return done(d);
}
#define X(name, k)                                        \
  bool SimdVisitor::name##_v(Reg n, Reg d) {              \
    return fp_across(Fp2::k, FpFormat::kF32, true, n, d); \
  }                                                       \
  bool SimdVisitor::name##_v_h(bool q, Reg n, Reg d) {    \
    return fp_across(Fp2::k, FpFormat::kF16, q, n, d);    \
  }
GPUSIM_A64_FP_ACROSS(X)
#undef X

}  // namespace gpusim::a64
