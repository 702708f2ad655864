// Atomic memory operations and compare-and-swap (FEAT_LSE, C4.1.88). ST<op> is LD<op> into XZR.
#include "translator/a64/visitor.h"

namespace gpusim::a64 {

// A release has a fence behind it, too, as an acquire has: a later load-acquire must not pass it (Arm
// ARM, B2.3, "Barrier-ordered-before"). So have store-exclusives with release.
bool Visitor::atomic(MicroOp op, unsigned log2_size, bool acquire, bool release, Reg s, Reg n,
                     Reg t) {
  set_class(InsnClass::kParallelism);
  if (release) b_.fence();
  b_.emit(op, x_dst(t), x_or_sp(n), x_src(s), 0, 0, static_cast<uint8_t>(log2_size));
  if (acquire || release) b_.fence();
  return true;
}

bool Visitor::LDADD(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t) {
  return atomic(MicroOp::amo_add, size, A, R, s, n, t);
}
bool Visitor::LDCLR(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t) {
  return atomic(MicroOp::amo_clr, size, A, R, s, n, t);
}
bool Visitor::LDEOR(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t) {
  return atomic(MicroOp::amo_xor, size, A, R, s, n, t);
}
bool Visitor::LDSET(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t) {
  return atomic(MicroOp::amo_or, size, A, R, s, n, t);
}
bool Visitor::LDSMAX(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t) {
  return atomic(MicroOp::amo_smax, size, A, R, s, n, t);
}
bool Visitor::LDSMIN(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t) {
  return atomic(MicroOp::amo_smin, size, A, R, s, n, t);
}
bool Visitor::LDUMAX(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t) {
  return atomic(MicroOp::amo_umax, size, A, R, s, n, t);
}
bool Visitor::LDUMIN(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t) {
  return atomic(MicroOp::amo_umin, size, A, R, s, n, t);
}
bool Visitor::SWP(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t) {
  return atomic(MicroOp::amo_swp, size, A, R, s, n, t);
}

// Rs is compared and receives the old value; Rt is what is stored.
bool Visitor::CAS(Imm<2> size, bool A, Reg s, bool R, Reg n, Reg t) {
  set_class(InsnClass::kParallelism);
  if (R) b_.fence();
  b_.cas(x_dst(s), x_or_sp(n), x_src(t), x_src(s), static_cast<uint8_t>(size.value));
  if (A || R) b_.fence();
  return true;
}

// The pair X30, XZR has no two slots in a row, and a pair of words is one doubleword.
bool Visitor::CASP(bool is_64, bool A, Reg s, bool R, Reg n, Reg t) {
  set_class(InsnClass::kParallelism);
  const Reg s2{s + 1}, t2{t + 1};
  if (R) b_.fence();
  if (!is_64) {
    const Slot expected = joined_words(x_src(s), x_src(s2));
    const Slot desired = joined_words(x_src(t), x_src(t2));
    b_.cas(expected, x_or_sp(n), desired, expected, 3);
    b_.mov32(x_dst(s), expected);
    b_.lsri64(x_dst(s2), expected, 32);
  } else {
    Slot desired = x_src(t), expected = x_src(s);
    if (t == 30) {
      desired = b_.temp_run(2);
      b_.mov(desired, x_src(t));
      b_.konst(static_cast<Slot>(desired + 1), 0);
    }
    if (s == 30) {
      expected = b_.temp_run(2);
      b_.mov(expected, x_src(s));
      b_.konst(static_cast<Slot>(expected + 1), 0);
    }
    b_.cas128(expected, x_or_sp(n), desired);
    if (s == 30) b_.mov(x_dst(s), expected);
  }
  if (A || R) b_.fence();
  return true;
}

}  // namespace gpusim::a64
