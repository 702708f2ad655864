// Multiply, divide and checksums (C4.1.89).
#include "device_sim/uir/helpers.h"
#include "translator/a64/visitor.h"

namespace gpusim::a64 {

bool Visitor::arithmetic(MicroOp op, Reg d, Slot a, Slot b, Slot c) {
  set_class(InsnClass::kIntegerArithmetic);
  b_.emit(op, x_dst(d), a, b, c);
  return true;
}

bool Visitor::MADD(bool sf, Reg m, Reg a, Reg n, Reg d) {
  if (a == 31) return arithmetic(sf ? MicroOp::mul64 : MicroOp::mul32, d, x_src(n), x_src(m));
  return arithmetic(sf ? MicroOp::madd64 : MicroOp::madd32, d, x_src(n), x_src(m), x_src(a));
}
bool Visitor::MSUB(bool sf, Reg m, Reg a, Reg n, Reg d) {
  return arithmetic(sf ? MicroOp::msub64 : MicroOp::msub32, d, x_src(n), x_src(m), x_src(a));
}
bool Visitor::SMADDL(Reg m, Reg a, Reg n, Reg d) {
  return arithmetic(MicroOp::smaddl, d, x_src(n), x_src(m), x_src(a));
}
bool Visitor::SMSUBL(Reg m, Reg a, Reg n, Reg d) {
  return arithmetic(MicroOp::smsubl, d, x_src(n), x_src(m), x_src(a));
}
bool Visitor::UMADDL(Reg m, Reg a, Reg n, Reg d) {
  return arithmetic(MicroOp::umaddl, d, x_src(n), x_src(m), x_src(a));
}
bool Visitor::UMSUBL(Reg m, Reg a, Reg n, Reg d) {
  return arithmetic(MicroOp::umsubl, d, x_src(n), x_src(m), x_src(a));
}
bool Visitor::SMULH(Reg m, Reg n, Reg d) {
  return arithmetic(MicroOp::smulh, d, x_src(n), x_src(m));
}
bool Visitor::UMULH(Reg m, Reg n, Reg d) {
  return arithmetic(MicroOp::umulh, d, x_src(n), x_src(m));
}

bool Visitor::UDIV(bool sf, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerDivision);
  b_.emit(sf ? MicroOp::udiv64 : MicroOp::udiv32, x_dst(d), x_src(n), x_src(m));
  return true;
}
bool Visitor::SDIV(bool sf, Reg m, Reg n, Reg d) {
  set_class(InsnClass::kIntegerDivision);
  b_.emit(sf ? MicroOp::sdiv64 : MicroOp::sdiv32, x_dst(d), x_src(n), x_src(m));
  return true;
}

// The helper's immediate is the number of bytes of the value.
bool Visitor::CRC32(bool, Reg m, Imm<2> size, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.help2(x_dst(d), x_src(n), x_src(m), 1u << size, 0, static_cast<uint16_t>(Helper2::crc32));
  return true;
}
bool Visitor::CRC32C(bool, Reg m, Imm<2> size, Reg n, Reg d) {
  set_class(InsnClass::kIntegerLogical);
  b_.help2(x_dst(d), x_src(n), x_src(m), 1u << size, 0, static_cast<uint16_t>(Helper2::crc32c));
  return true;
}

}  // namespace gpusim::a64
