// Values that nobody can see.
#pragma once
#include "translator/common/draft.h"

namespace gpusim {

/// Removes pure micro-ops into the sink. Not an optimisation: slots are counted afterwards.
void remove_sink_writes(const GuestIsa& isa, DraftBlock& draft);

/// Removes computations whose result is overwritten or forgotten before anyone can see it. Guest
/// registers are visible at the block's end and wherever the block may stop with a fault.
enum class VisibleFlags : uint8_t { kNever, kAtEnd, kAlways };  // always: where registers are
void remove_dead_values(const GuestIsa& isa, VisibleFlags flags, CodeBlock& block);

}  // namespace gpusim
