#include "translator/passes/difference.h"

namespace gpusim {

std::optional<size_t> find_difference(const GuestIsa& isa, const std::vector<Uop>& uops,
                                      size_t compare) {
  const bool wide = uops[compare].op == Op::fl_sub64;
  const Slot a = uops[compare].a, b = uops[compare].b;
  const auto written = last_write(uops, a, uops.size());
  if (a == b || !written || *written <= compare) return std::nullopt;
  if (last_write(uops, a, *written).value_or(0) > compare) return std::nullopt;
  const Uop& u = uops[*written];
  if (u.d != a || u.a != a) return std::nullopt;
  if (u.op == (wide ? Op::sub64 : Op::sub32)) {
    const auto b_written = last_write(uops, b, uops.size());
    if (u.b == b && (!b_written || *b_written < compare)) return written;
  }
  if (u.op == (wide ? Op::addi64 : Op::addi32)) {
    const auto c = constant_before(isa, uops, b, compare);
    if (c && u.imm == 0 - *c) return written;
  }
  return std::nullopt;
}

Uop undo_difference(const Uop& difference) {
  Uop undo = difference;
  switch (difference.op) {
    case Op::sub64:
      undo.op = Op::add64;
      break;
    case Op::sub32:
      undo.op = Op::add32;
      break;
    default:
      undo.imm = 0 - difference.imm;
      break;
  }
  return undo;
}

}  // namespace gpusim
