#include "translator/common/isa_coverage.h"

#include <fmt/format.h>

namespace gpusim {

void IsaCoverage::add_word(uint32_t word) {
  std::string row = isa_.row(word);
  if (!row.empty()) rows_.insert(std::move(row));
}

void IsaCoverage::add_blocks(const Module& module, std::span<const uint64_t> counts,
                             const WordAt& word_at) {
  for (size_t b = 0; b < counts.size() && b < module.blocks.size(); ++b) {
    const Block& block = module.blocks[b];
    for (uint32_t i = 0; i < block.insn_count && counts[b] != 0; ++i) {
      uint32_t word = 0;
      if (word_at(block.pc + (uint64_t{i} << module.code.pc_shift), &word)) add_word(word);
    }
  }
}

std::string IsaCoverage::text() const {
  std::string text;
  for (const std::string& row : rows_) text += fmt::format("{} {}\n", isa_.name, row);
  return text;
}

}  // namespace gpusim
