// Text for people: guest instructions side by side with their micro-ops.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "device_sim/uir/module.h"

namespace gpusim {

struct ListingOptions {
  std::string symbol;  // only this function; empty: everything
};

struct ListedInstruction {
  uint64_t pc = 0;
  std::string encoding;  // encoding_text()
  std::string text;
  std::vector<std::string> uops;
};

struct ListedBlock {
  uint32_t number = 0;
  uint64_t pc = 0;
  uint32_t uop_count = 0;
  std::vector<std::string> functions;  // that begin here, or since the block before
  std::vector<ListedInstruction> instructions;
  std::vector<std::string> end_uops;   // after the last instruction's
  std::vector<std::string> link_uops;  // outside of the block's range, "u17: ..."
};

/// Blocks in the order of their addresses. Error if `options.symbol` is not in the module.
void for_each_listed_block(const Module& module, const ListingOptions& options,
                           const std::function<void(const ListedBlock&)>& visit);

/// Error if `options.symbol` is not in the module.
void print_listing(std::ostream& out, const Module& module, const ListingOptions& options = {});

/// Why instructions of the module lack some of their operands: the library that spells them is not
/// there. Empty if it is, or if the ISA needs none.
std::string missing_disassembler(const Module& module);

/// One micro-op with the module's register names: "add64 x0, x1, x2".
std::string uop_text(const Module& module, const Uop& uop);

}  // namespace gpusim
