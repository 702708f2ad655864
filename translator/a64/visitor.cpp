#include "translator/a64/visitor.h"

#include <bit>

namespace gpusim::a64 {

Slot Visitor::konst(uint64_t value) {
  if (value == 0) return kZero;
  const Slot t = b_.temp();
  b_.konst(t, value);
  return t;
}

void Visitor::move(bool sf, Slot d, Slot a) { b_.emit(sf ? MicroOp::mov : MicroOp::mov32, d, a); }

const uint64_t* Visitor::last_konst(Slot s) const {
  const auto& uops = b_.draft().uops;
  if (uops.empty() || uops.back().op != MicroOp::konst || uops.back().d != s) return nullptr;
  return &uops.back().imm;
}

uint64_t Visitor::bit_mask(bool sf, uint32_t N, uint32_t r, uint32_t s) {
  const int length = std::bit_width((N << 6) | (~s & 0x3f)) - 1;
  const unsigned size = 1u << length;
  const uint64_t all = ~uint64_t{0} >> (64 - size);
  const uint64_t ones = ~uint64_t{0} >> (63 - (s & (size - 1)));
  const unsigned rotate = r & (size - 1);
  uint64_t mask = rotate == 0 ? ones : ((ones >> rotate) | (ones << (size - rotate))) & all;
  for (unsigned width = size; width < 64; width *= 2) mask |= mask << width;
  return sf ? mask : mask & 0xffffffff;
}

void Visitor::shift_imm(bool sf, Slot d, Slot a, uint32_t shift, uint32_t amount) {
  constexpr MicroOp k64[] = {MicroOp::lsli64, MicroOp::lsri64, MicroOp::asri64, MicroOp::rori64};
  constexpr MicroOp k32[] = {MicroOp::lsli32, MicroOp::lsri32, MicroOp::asri32, MicroOp::rori32};
  if (amount == 0) return move(sf, d, a);
  b_.emit(sf ? k64[shift] : k32[shift], d, a, 0, 0, amount);
}

Slot Visitor::shifted(bool sf, Reg m, uint32_t shift, uint32_t amount) {
  if (amount == 0 || m == 31) return x_src(m);
  const Slot t = b_.temp();
  shift_imm(sf, t, x_src(m), shift, amount);
  return t;
}

Slot Visitor::extended(bool sf, Reg m, uint32_t option, uint32_t amount) {
  const bool is_signed = option >= 4;
  const unsigned width = 8u << (option & 3);
  if (width == 64 || (width == 32 && !sf)) return shifted(sf, m, 0, amount);
  const Slot t = b_.temp();
  const uint64_t mask = ~uint64_t{0} >> (64 - width);
  if (is_signed) {
    b_.sbf64(t, x_src(m), 64 - width, static_cast<uint8_t>(64 - width - amount));
  } else if (amount == 0) {
    b_.andi64(t, x_src(m), mask);
  } else {
    b_.ubfiz(t, x_src(m), mask << amount, static_cast<uint8_t>(amount));
  }
  return t;
}

}  // namespace gpusim::a64
