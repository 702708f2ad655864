// Texts linked into one program: what each name stands for.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "translator/ptx/inline.h"
#include "translator/ptx/unit.h"

namespace gpusim::ptx {

struct Program {
  std::vector<Unit> units;  // whose functions the table points at
  Functions functions;      // that have bodies
  // Those whose addresses are taken: their places in the list are their addresses
  // (memory_map.h).
  std::vector<std::string> addressed;
  std::vector<const Function*> kernels;
  std::vector<Variable> variables;  // .global and .const, each once
  std::vector<Variable> shared;     // .shared ones outside of functions
};

/// Names that are .visible are one in all units, the first of several .weak or .common ones counts,
/// and others are their unit's own. Throws Error where two units define a .visible name.
Program link_units(std::vector<Unit> units);

}  // namespace gpusim::ptx
