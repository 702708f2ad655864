// What a spelling of PTX, such as "fma.rn.f32", counts as.
#pragma once
#include <string_view>
#include <vector>

#include "device_sim/uir/insn_class.h"

namespace gpusim::energy {

enum class PtxClasses {
  kOurs,    // docs/instruction_classes.md, as tallies have them
  kThesis,  // moves and conversions are arithmetic, as the trace in section 6.1.3 shows
};

/// Its parts, of "fma.rn.f32": fma, {rn}, {f32}.
struct PtxSpelling {
  std::string_view base;
  std::vector<std::string_view> modifiers, types;

  bool has(std::string_view modifier) const;
  std::string_view type() const { return types.empty() ? std::string_view() : types.front(); }
};
PtxSpelling split_ptx(std::string_view spelling);

/// Memory by its state space; generic accesses count as off-chip. What is unknown is kOther.
InsnClass ptx_class(std::string_view spelling, PtxClasses scheme = PtxClasses::kOurs);

/// The key of the row of Arafa et al., Table I: "int_add". Empty: the table has none.
std::string_view ptx_row(std::string_view spelling);

}  // namespace gpusim::energy
