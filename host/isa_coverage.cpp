#include "host/isa_coverage.h"

#include "translator/common/isa_coverage.h"
#include "translator/common/isa_list.h"
#include "translator/common/translator.h"

namespace gpusim::host {

void write_isa_coverage(const OutputFile& file, const Module& module, Backend& backend,
                        std::span<const StopRecord> stops) {
  IsaCoverage coverage(*find_isa(module.isa));
  const auto code_at = [&](uint64_t pc) { return code_from(module, pc); };
  coverage.add_blocks(module, backend.block_counts(), code_at);
  for (const StopRecord& stop : stops) coverage.add(instruction_at(module, stop.pc));
  file.append(coverage.text());
}

}  // namespace gpusim::host
