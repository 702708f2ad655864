// Bit fields, extract, variable shifts and one-source bit operations (C4.1.86, C4.1.89).
#include "translator/a64/visitor.h"

namespace gpusim::a64 {
namespace {

constexpr uint64_t low_ones(unsigned count) { return count == 0 ? 0 : ~uint64_t{0} >> (64 - count); }

}  // namespace

bool Visitor::bits(MicroOp op, Reg d, Slot a, Slot b) {
  set_class(InsnClass::kIntegerLogical);
  b_.emit(op, x_dst(d), a, b);
  return true;
}

// s >= r: the field s:r goes to the bottom; else the field s:0 goes up to bit width - r.

bool Visitor::SBFM(bool sf, Imm<1>, Imm<6> r, Imm<6> s, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const unsigned width = sf ? 64 : 32;
  if (s == width - 1) {  // ASR
    shift_imm(sf, x_dst(d), x_src(n), 2, r);
    return true;
  }
  const unsigned up = 63 - s;
  const unsigned down = s >= r ? up + r : up - (width - r);
  b_.emit(sf ? MicroOp::sbf64 : MicroOp::sbf32, x_dst(d), x_src(n), 0, 0, up,
          static_cast<uint8_t>(down));
  return true;
}

bool Visitor::UBFM(bool sf, Imm<1>, Imm<6> r, Imm<6> s, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  const unsigned width = sf ? 64 : 32;
  const Slot to = x_dst(d), from = x_src(n);
  if (s == width - 1) {
    shift_imm(sf, to, from, 1, r);  // LSR
  } else if (s + 1 == r) {
    shift_imm(sf, to, from, 0, width - r);  // LSL
  } else if (r == 0) {
    b_.andi64(to, from, low_ones(s + 1));  // UXTB, UXTH
  } else if (s >= r) {
    b_.ubfx(to, from, low_ones(s - r + 1), static_cast<uint8_t>(r));
  } else {
    b_.ubfiz(to, from, low_ones(s + 1) << (width - r), static_cast<uint8_t>(width - r));
  }
  return true;
}

bool Visitor::BFM(bool sf, Imm<1>, Imm<6> r, Imm<6> s, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  if (d == 31) return true;
  const unsigned width = sf ? 64 : 32;
  const Slot to = x_dst(d), from = x_src(n);
  if (s >= r) {
    b_.emit(sf ? MicroOp::bfxil64 : MicroOp::bfxil32, to, from, to, 0, low_ones(s - r + 1),
            static_cast<uint8_t>(r));
  } else {
    b_.emit(sf ? MicroOp::bfi64 : MicroOp::bfi32, to, from, to, 0, low_ones(s + 1) << (width - r),
            static_cast<uint8_t>(width - r));
  }
  return true;
}

bool Visitor::EXTR(bool sf, Imm<1>, Reg m, Imm<6> i, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  if (n == m || i == 0) {  // ROR, or Rm alone
    shift_imm(sf, x_dst(d), x_src(m), 3, i);
    return true;
  }
  b_.emit(sf ? MicroOp::extr64 : MicroOp::extr32, x_dst(d), x_src(n), x_src(m), 0, i);
  return true;
}

bool Visitor::LSLV(bool sf, Reg m, Reg n, Reg d) {
  return bits(sf ? MicroOp::lsl64 : MicroOp::lsl32, d, x_src(n), x_src(m));
}
bool Visitor::LSRV(bool sf, Reg m, Reg n, Reg d) {
  return bits(sf ? MicroOp::lsr64 : MicroOp::lsr32, d, x_src(n), x_src(m));
}
bool Visitor::ASRV(bool sf, Reg m, Reg n, Reg d) {
  return bits(sf ? MicroOp::asr64 : MicroOp::asr32, d, x_src(n), x_src(m));
}
bool Visitor::RORV(bool sf, Reg m, Reg n, Reg d) {
  return bits(sf ? MicroOp::ror64 : MicroOp::ror32, d, x_src(n), x_src(m));
}

bool Visitor::RBIT(bool sf, Reg n, Reg d) {
  return bits(sf ? MicroOp::rbit64 : MicroOp::rbit32, d, x_src(n));
}
bool Visitor::CLZ(bool sf, Reg n, Reg d) {
  return bits(sf ? MicroOp::clz64 : MicroOp::clz32, d, x_src(n));
}
bool Visitor::CLS(bool sf, Reg n, Reg d) {
  return bits(sf ? MicroOp::cls64 : MicroOp::cls32, d, x_src(n));
}

bool Visitor::REV16(bool sf, Reg n, Reg d) {
  if (sf) return bits(MicroOp::rev16, d, x_src(n));
  const Slot t = b_.temp();
  b_.rev16(t, x_src(n));
  return bits(MicroOp::mov32, d, t);
}

bool Visitor::REV_w(Reg n, Reg d) {
  const Slot t = b_.temp();
  b_.rev32(t, x_src(n));
  return bits(MicroOp::mov32, d, t);
}
bool Visitor::REV32(Reg n, Reg d) { return bits(MicroOp::rev32, d, x_src(n)); }
bool Visitor::REV_x(Reg n, Reg d) { return bits(MicroOp::rev64, d, x_src(n)); }

}  // namespace gpusim::a64
