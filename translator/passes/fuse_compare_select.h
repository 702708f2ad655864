// Compare and select as one micro-op.
#pragma once
#include "translator/common/draft.h"

namespace gpusim {

/// Temporaries that the pass below may use; slot maps of ISAs with flags have them.
inline constexpr int kSelectTemps = 4;
inline Slot select_temp(const SlotRoles& roles, int i) {
  return static_cast<Slot>(roles.first_temp + roles.temp_count - 1 - i);
}

/// Conditional selects whose flags the block computes become selects by a comparison of what the
/// flags were computed from, where all readers of the flags in the block can. The computation of
/// the flags stays; it may be dead afterwards.
void fuse_compare_select(const GuestIsa& isa, DraftBlock& block);

}  // namespace gpusim
