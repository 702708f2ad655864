// Cryptography: AES, SHA-1, SHA-2, SHA-3, SM3, SM4 (C4.1.90). Rounds are helpers
// (device_sim/uir/helpers_crypto.h), schedules and logic plain micro-ops. They count as integer
// logic.
#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {

void SimdVisitor::rotate_left(Slot d, Slot a, uint32_t n, uint32_t y, Slot scratch) {
  if (y == 3) return void(b_.rori64(d, a, 64 - n));
  b_.vshl(scratch, a, n, u8(y));
  b_.vushr(d, a, (8u << y) - n, u8(y));
  b_.or64(d, d, scratch);
}
Slot SimdVisitor::sigma(Slot a, uint32_t y, uint32_t first, uint32_t second, uint32_t third,
                        bool third_rotates) {
  const uint32_t bits = 8u << y;
  const Slot result = b_.temp(), t = b_.temp(), scratch = b_.temp();
  rotate_left(result, a, bits - first, y, scratch);
  rotate_left(t, a, bits - second, y, scratch);
  b_.xor64(result, result, t);
  if (third_rotates) {
    rotate_left(t, a, bits - third, y, scratch);
  } else {
    b_.vushr(t, a, third, u8(y));
  }
  b_.xor64(result, result, t);
  return result;
}

// --- AES

bool SimdVisitor::aes_round(bool inverse, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot low = b_.temp(), high = b_.temp();
  b_.xor64(low, v_low(d), v_low(n));
  b_.xor64(high, v_high(d), v_high(n));
  for (uint32_t h = 0; h < 2; ++h) {
    help2(Helper2::aes_round, v(d, h), low, high, 0, h | uint64_t{inverse} << 1);
  }
  return true;
}
bool SimdVisitor::AESE(Reg n, Reg d) { return aes_round(false, n, d); }
bool SimdVisitor::AESD(Reg n, Reg d) { return aes_round(true, n, d); }

bool SimdVisitor::aes_mix(bool inverse, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  for (uint32_t h = 0; h < 2; ++h) help1(Helper1::aes_mix, v(d, h), v(n, h), 0, inverse);
  return true;
}
bool SimdVisitor::AESMC(Reg n, Reg d) { return aes_mix(false, n, d); }
bool SimdVisitor::AESIMC(Reg n, Reg d) { return aes_mix(true, n, d); }

// --- SHA-1. State a b c d in Vd, e in Vn, message words in Vm.

bool SimdVisitor::sha1_rounds(uint32_t function, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint16_t helper = helper_number(Helper3::sha1_rounds);
  const Slot e = b_.temp(), w = b_.temp(), first = b_.temp(), second = b_.temp();
  const Slot ab = b_.temp(), cd = b_.temp(), scratch = b_.temp();
  b_.mov32(e, v_low(n));
  op3(MicroOp::vadd, w, v_low(m), e, 2);
  b_.help3(first, v_low(d), v_high(d), w, function, 2, helper);
  b_.rori64(ab, first, 32);
  rotate_left(cd, v_low(d), 30, 2, scratch);
  b_.mov32(e, v_high(d));  // c has become e
  op3(MicroOp::vadd, w, v_high(m), e, 2);
  b_.help3(second, ab, cd, w, function, 2, helper);
  b_.rori64(v_low(d), second, 32);
  rotate_left(v_high(d), ab, 30, 2, scratch);
  return true;
}
#define X(name, function) \
  bool SimdVisitor::name(Reg m, Reg n, Reg d) { return sha1_rounds(function, m, n, d); }
GPUSIM_A64_SHA1_ROUNDS(X)
#undef X
bool SimdVisitor::SHA1H(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.rori32(v_low(d), v_low(n), 2);
  return done(d);
}
bool SimdVisitor::SHA1SU0(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot low = b_.temp(), high = b_.temp();
  b_.xor64(low, v_high(d), v_low(d));
  b_.xor64(high, v_low(n), v_high(d));
  b_.xor64(low, low, v_low(m));
  b_.xor64(high, high, v_high(m));
  set_both(d, low, high);
  return true;
}
bool SimdVisitor::SHA1SU1(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot low = b_.temp(), high = b_.temp(), t = b_.temp(), scratch = b_.temp();
  b_.vext(low, v_low(n), v_high(n), 4);
  b_.lsri64(high, v_high(n), 32);
  b_.xor64(low, low, v_low(d));
  b_.xor64(high, high, v_high(d));
  rotate_left(v_low(d), low, 1, 2, scratch);
  rotate_left(v_high(d), high, 1, 2, scratch);
  rotate_left(t, low, 2, 2, scratch);
  b_.lsli64(t, t, 32);
  b_.xor64(v_high(d), v_high(d), t);
  return true;
}

// --- SHA-256. first: the result is a b c d, else e f g h.

bool SimdVisitor::sha256_rounds(bool first, Reg m, Reg abcd, Reg efgh, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot w = b_.temp(), cd = b_.temp(), e12 = b_.temp(), a12 = b_.temp(), e34 = b_.temp();
  const Slot ef = b_.temp(), ab = b_.temp();
  const uint16_t helper_e = helper_number(Helper3::sha256_e);
  const uint16_t helper_a = helper_number(Helper3::sha256_a);
  b_.rori64(cd, v_high(abcd), 32);  // d, which the first round needs, below c
  op3(MicroOp::vadd, w, v_low(m), cd, 2);
  b_.help3(e12, v_low(efgh), v_high(efgh), w, 0, 2, helper_e);
  b_.help3(a12, v_low(abcd), v_high(abcd), e12, 0, 2, helper_a);
  b_.rori64(ef, e12, 32);
  b_.rori64(cd, v_low(abcd), 32);
  op3(MicroOp::vadd, w, v_high(m), cd, 2);
  b_.help3(e34, ef, v_low(efgh), w, 0, 2, helper_e);
  if (first) {
    b_.rori64(ab, a12, 32);
    b_.help3(w, ab, v_low(abcd), e34, 0, 2, helper_a);
    b_.rori64(v_low(d), w, 32);
    b_.mov(v_high(d), ab);
  } else {
    b_.rori64(v_low(d), e34, 32);
    b_.mov(v_high(d), ef);
  }
  return true;
}
bool SimdVisitor::SHA256H(Reg m, Reg n, Reg d) { return sha256_rounds(true, m, d, n, d); }
bool SimdVisitor::SHA256H2(Reg m, Reg n, Reg d) { return sha256_rounds(false, m, n, d, d); }

bool SimdVisitor::SHA256SU0(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot low = b_.temp(), high = b_.temp();
  b_.vext(low, v_low(d), v_high(d), 4);
  b_.vext(high, v_high(d), v_low(n), 4);
  const Slot low_sigma = sigma(low, 2, 7, 18, 3), high_sigma = sigma(high, 2, 7, 18, 3);
  op3(MicroOp::vadd, v_low(d), v_low(d), low_sigma, 2);
  op3(MicroOp::vadd, v_high(d), v_high(d), high_sigma, 2);
  return true;
}
bool SimdVisitor::SHA256SU1(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot low = b_.temp(), high = b_.temp();
  b_.vext(low, v_low(n), v_high(n), 4);
  op3(MicroOp::vadd, low, low, v_low(d), 2);
  op3(MicroOp::vadd, low, low, sigma(v_high(m), 2, 17, 19, 10), 2);
  b_.vext(high, v_high(n), v_low(m), 4);
  op3(MicroOp::vadd, high, high, v_high(d), 2);
  op3(MicroOp::vadd, high, high, sigma(low, 2, 17, 19, 10), 2);
  set_both(d, low, high);
  return true;
}

// --- SHA-512: the manual's pseudocode, upper half first

bool SimdVisitor::SHA512H(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot low = b_.temp(), high = b_.temp(), choice = b_.temp(), t = b_.temp();
  b_.vbsl(choice, v_low(n), v_high(n), v_high(m));
  b_.add64(high, choice, v_high(d));
  b_.add64(high, high, sigma(v_high(m), 3, 14, 18, 41, true));
  b_.add64(t, high, v_low(m));
  b_.vbsl(choice, v_high(m), v_low(n), t);
  b_.add64(low, choice, v_low(d));
  b_.add64(low, low, sigma(t, 3, 14, 18, 41, true));
  set_both(d, low, high);
  return true;
}
bool SimdVisitor::SHA512H2(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot low = b_.temp(), high = b_.temp(), both = b_.temp(), t = b_.temp();
  // A majority: where two agree these, else the third.
  const auto majority = [&](Slot x) {
    b_.xor64(t, v_low(m), v_high(m));
    b_.vbsl(both, x, v_low(m), t);
  };
  majority(v_low(n));
  b_.add64(high, both, v_high(d));
  b_.add64(high, high, sigma(v_low(m), 3, 28, 34, 39, true));
  majority(high);
  b_.add64(low, both, v_low(d));
  b_.add64(low, low, sigma(high, 3, 28, 34, 39, true));
  set_both(d, low, high);
  return true;
}
bool SimdVisitor::SHA512SU0(Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot low = sigma(v_high(d), 3, 1, 8, 7), high = sigma(v_low(n), 3, 1, 8, 7);
  b_.add64(v_low(d), v_low(d), low);
  b_.add64(v_high(d), v_high(d), high);
  return true;
}
bool SimdVisitor::SHA512SU1(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot sums[2] = {b_.temp(), b_.temp()};
  for (uint32_t h = 0; h < 2; ++h) {
    b_.add64(sums[h], v(d, h), v(m, h));
    b_.add64(sums[h], sums[h], sigma(v(n, h), 3, 19, 61, 6));
  }
  set_both(d, sums[0], sums[1]);
  return true;
}

// --- SHA-3: three operands of logic, elements of 64 bits

bool SimdVisitor::EOR3(Reg m, Reg a, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot t = b_.temp();
  for (uint32_t h = 0; h < 2; ++h) {
    b_.xor64(t, v(n, h), v(m, h));
    b_.xor64(v(d, h), t, v(a, h));
  }
  return true;
}
bool SimdVisitor::BCAX(Reg m, Reg a, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot t = b_.temp();
  for (uint32_t h = 0; h < 2; ++h) {
    b_.bic64(t, v(m, h), v(a, h));
    b_.xor64(v(d, h), t, v(n, h));
  }
  return true;
}
bool SimdVisitor::RAX1(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot t = b_.temp();
  for (uint32_t h = 0; h < 2; ++h) {
    b_.rori64(t, v(m, h), 63);
    b_.xor64(v(d, h), t, v(n, h));
  }
  return true;
}
bool SimdVisitor::XAR(Reg m, uint32_t i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  for (uint32_t h = 0; h < 2; ++h) {
    b_.xor64(v(d, h), v(n, h), v(m, h));
    if (i != 0) b_.rori64(v(d, h), v(d, h), i);
  }
  return true;
}

// --- SM3

bool SimdVisitor::SM3SS1(Reg m, Reg a, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot sum = b_.temp(), t = b_.temp();
  b_.lsri64(sum, v_high(n), 32);
  b_.rori32(sum, sum, 20);
  for (const Reg r : {m, a}) {
    b_.lsri64(t, v_high(r), 32);
    b_.add32(sum, sum, t);
  }
  b_.rori32(sum, sum, 25);
  b_.lsli64(v_high(d), sum, 32);
  b_.konst(v_low(d), 0);
  return true;
}
bool SimdVisitor::sm3_tt(uint32_t kind, Reg m, uint32_t i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot x = b_.temp(), high = b_.temp(), rotated = b_.temp();
  b_.vumov(x, v(m, i >> 1), i & 1, 2);
  b_.bfi64(x, x, v_high(n), 0xffffffff);
  b_.help3(high, v_low(d), v_high(d), x, kind, 2, helper_number(Helper3::sm3_tt));
  // Element 1, then element 2 rotated.
  b_.rori32(rotated, v_high(d), kind < 2 ? 23 : 13);
  b_.lsri64(v_low(d), v_low(d), 32);
  b_.bfi64(v_low(d), rotated, v_low(d), uint64_t{0xffffffff} << 32, 32);
  b_.mov(v_high(d), high);
  return true;
}
#define X(name, kind) \
  bool SimdVisitor::name(Reg m, uint32_t i, Reg n, Reg d) { return sm3_tt(kind, m, i, n, d); }
GPUSIM_A64_SM3_TT(X)
#undef X

Slot SimdVisitor::sm3_permuted(Slot a) {
  const Slot result = b_.temp(), t = b_.temp(), scratch = b_.temp();
  rotate_left(result, a, 15, 2, scratch);
  rotate_left(t, a, 23, 2, scratch);
  b_.xor64(result, result, t);
  b_.xor64(result, result, a);
  return result;
}
bool SimdVisitor::SM3PARTW1(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot low = b_.temp(), high = b_.temp(), t = b_.temp(), scratch = b_.temp();
  b_.vext(t, v_low(m), v_high(m), 4);
  rotate_left(t, t, 15, 2, scratch);
  b_.xor64(low, v_low(d), v_low(n));
  b_.xor64(low, low, t);
  const Slot low_result = sm3_permuted(low);
  b_.lsri64(t, v_high(m), 32);
  rotate_left(t, t, 15, 2, scratch);
  b_.xor64(high, v_high(d), v_high(n));
  b_.xor64(high, high, t);
  // Element 3 takes in what has become of element 0.
  rotate_left(t, low_result, 15, 2, scratch);
  b_.lsli64(t, t, 32);
  b_.xor64(high, high, t);
  set_both(d, low_result, sm3_permuted(high));
  return true;
}
bool SimdVisitor::SM3PARTW2(Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const Slot scratch = b_.temp(), t = b_.temp(), low = b_.temp();
  rotate_left(low, v_low(m), 7, 2, scratch);
  b_.xor64(low, low, v_low(n));
  rotate_left(t, v_high(m), 7, 2, scratch);
  b_.xor64(t, t, v_high(n));
  b_.xor64(v_high(d), v_high(d), t);
  b_.xor64(v_low(d), v_low(d), low);
  rotate_left(t, low, 15, 2, scratch);
  const Slot last = sm3_permuted(t);
  b_.lsli64(last, last, 32);
  b_.xor64(v_high(d), v_high(d), last);
  return true;
}

// --- SM4: four rounds

bool SimdVisitor::sm4_rounds(uint32_t key, Slot low, Slot high, Reg keys, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const uint16_t helper = helper_number(Helper3::sm4_rounds);
  const Slot first = b_.temp(), second = b_.temp();
  b_.help3(first, low, high, v_low(keys), key, 2, helper);
  b_.help3(second, high, first, v_high(keys), key, 2, helper);
  set_both(d, first, second);
  return true;
}
bool SimdVisitor::SM4E(Reg n, Reg d) { return sm4_rounds(0, v_low(d), v_high(d), n, d); }
bool SimdVisitor::SM4EKEY(Reg m, Reg n, Reg d) { return sm4_rounds(1, v_low(n), v_high(n), m, d); }

}  // namespace gpusim::a64
