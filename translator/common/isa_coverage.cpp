#include "translator/common/isa_coverage.h"

#include <fmt/format.h>

namespace gpusim {

void IsaCoverage::add(const GuestInsn& insn) {
  if (!insn) return;
  std::string row = isa_.row(insn);
  if (!row.empty()) rows_.insert(std::move(row));
}

void IsaCoverage::add_blocks(const Module& module, std::span<const uint64_t> counts,
                             const CodeAt& code_at) {
  for (size_t b = 0; b < counts.size() && b < module.blocks.size(); ++b) {
    const Block& block = module.blocks[b];
    for (uint32_t i = 0; i < block.insn_count && counts[b] != 0; ++i) {
      const uint64_t pc = insn_pc(module, block, i);
      add(isa_.first_insn(pc, code_at(pc)));
    }
  }
}

std::string IsaCoverage::text() const {
  std::string text;
  for (const std::string& row : rows_) text += fmt::format("{} {}\n", isa_.name, row);
  return text;
}

}  // namespace gpusim
