#include "translator/passes/optimise.h"

namespace gpusim {

void optimise_blocks(const GuestIsa&, std::vector<CodeBlock>&, bool) {}

}  // namespace gpusim
