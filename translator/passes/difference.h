// Compare and subtract in one: flags of a - b, and then a = a - b.
#pragma once
#include <optional>
#include <vector>

#include "translator/common/guest_isa.h"
#include "translator/passes/operands.h"

namespace gpusim {

/// Index of the last micro-op before `end` that writes the slot.
inline std::optional<size_t> last_write(const std::vector<Uop>& uops, Slot s, size_t end) {
  for (size_t i = end; i-- > 0;)
    if (writes_slot(uops[i], s)) return i;
  return std::nullopt;
}

/// Value of the slot before micro-op `at`, where the micro-ops show it.
inline std::optional<uint64_t> constant_before(const GuestIsa& isa, const std::vector<Uop>& uops,
                                               Slot s, size_t at) {
  if (s == isa.roles.zero) return 0;
  const auto written = last_write(uops, s, at);
  if (written && uops[*written].op == Op::konst) return uops[*written].imm;
  return std::nullopt;
}

/// The only write to a behind the comparison `compare` (fl_sub*) of a with b, if it leaves a - b
/// there and that can be undone: b is another slot that keeps its value, or a constant.
std::optional<size_t> find_difference(const GuestIsa& isa, const std::vector<Uop>& uops,
                                      size_t compare);

/// The micro-op that brings a back.
Uop undo_difference(const Uop& difference);

}  // namespace gpusim
