// Micro-ops that write a journal of what a kernel's threads do (device_sim/uir/journal.h).
#pragma once
#include "device_sim/uir/uop.h"
#include "translator/common/block_builder.h"

namespace gpusim::ptx {

/// What for, and so which notes there are.
enum class Notes : uint8_t {
  kNone,
  kChecks,  // see add_notes
  kSteps,   // of blocks, two stamps behind each, and of accesses
};

/// kChecks: beside notes of blocks and accesses and the stamps behind fences: a stamp before and
/// one behind each row at which threads wait for each other, with its barrier, count or mask
/// between them where they are not constant; and behind each store, what it stores.
void add_notes(DraftBlock& draft, Notes notes);

/// A note whose word is a value.
bool is_value_note(const Uop& u);

}  // namespace gpusim::ptx
