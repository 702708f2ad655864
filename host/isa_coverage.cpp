#include "host/isa_coverage.h"

#include "translator/common/isa_coverage.h"
#include "translator/common/translator.h"

namespace gpusim::host {

void write_isa_coverage(const OutputFile& file, const Module& module, Backend& backend,
                        std::span<const StopRecord> stops) {
  IsaCoverage coverage(*find_isa(module.isa));
  const auto word_at = [&](uint64_t pc, uint32_t* word) {
    return instruction_word(module, pc, word);
  };
  coverage.add_blocks(module, backend.block_counts(), word_at);
  for (const StopRecord& stop : stops)
    if (uint32_t word = 0; word_at(stop.pc, &word)) coverage.add_word(word);
  file.append(coverage.text());
}

}  // namespace gpusim::host
