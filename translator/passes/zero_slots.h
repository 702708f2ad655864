// Registers that are zero throughout a program, such as the upper halves of vector registers that
// it only uses for scalar floating point.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "translator/common/draft.h"
#include "translator/elf/elf_file.h"
#include "translator/passes/operands.h"

namespace gpusim {

/// Of the candidates, slots that start as zero and are never given anything else, by the blocks or
/// by the host.
SlotSet find_zero_slots(const GuestIsa& isa, const std::vector<CodeBlock>& blocks,
                        const SlotSet& candidates = ~SlotSet());

/// The ISA's rare slots that a program does not use, or that are zero throughout. `code`: all that
/// there is of it, at any place where an instruction could be. Nothing where it matters what of it
/// is taken for instructions: those of each piece, one after the other, or all of these. Where
/// instructions have several lengths that only matters for the slots by which the host tells who a
/// program is for.
std::optional<SlotSet> find_unused_slots(const GuestIsa& isa, const Guise& guise,
                                         std::span<const CodePiece> code);

/// Reads of these slots become reads of the ISA's zero slot; writes of zero to them are removed.
/// Other writes stay.
void replace_zero_slots(const GuestIsa& isa, const SlotSet& zero_slots, DraftBlock& draft);

}  // namespace gpusim
