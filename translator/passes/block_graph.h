// Which block follows which, by direct flow.
#pragma once
#include <vector>

#include "translator/common/draft.h"

namespace gpusim {

struct Successors {
  static constexpr int kNone = -1;     // no such way out
  static constexpr int kOutside = -2;  // to where no block is: a fault, or code that comes later
  int taken = kNone;                   // of a jump, branch, service, give_way
  int next = kNone;                    // not taken, or the block just goes on
  bool indirect = false;               // the end is an indirect jump
};

/// Per block, as indices into `blocks`, which are sorted by pc.
std::vector<Successors> find_successors(const std::vector<CodeBlock>& blocks);

}  // namespace gpusim
