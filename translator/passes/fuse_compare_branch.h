// Compare and branch as one micro-op.
#pragma once
#include "translator/common/draft.h"

namespace gpusim {

/// A conditional end that tests flags which the block computes from values still there becomes a
/// branch on these values. The computation of the flags stays; it may be dead afterwards.
void fuse_compare_branch(const GuestIsa& isa, DraftBlock& block);

}  // namespace gpusim
