// Text for people: guest instructions side by side with their micro-ops.
#pragma once
#include <iosfwd>
#include <string>

#include "device_sim/uir/module.h"

namespace gpusim {

struct ListingOptions {
  std::string symbol;  // only this function; empty: everything
};

/// Error if `options.symbol` is not in the module.
void print_listing(std::ostream& out, const Module& module, const ListingOptions& options = {});

/// One micro-op with the module's register names: "add64 x0, x1, x2".
std::string uop_text(const Module& module, const Uop& uop);

}  // namespace gpusim
