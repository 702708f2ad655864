#include "host/run/tallies.h"

#include <numeric>

namespace gpusim::host {

uint64_t Tally::instructions() const {
  return std::accumulate(classes.begin(), classes.begin() + kInsnClassCount, uint64_t{0});
}

void Tallies::stopped_inside(const Module& module, uint32_t core, uint32_t uop, bool fetched) {
  if (uop >= module.uops.size()) return;
  const Block& block = module.blocks[module.uop_block[uop]];
  const CodeMap& code = module.code;
  Tally& tally = partial_[core];
  const uint32_t executed = module.uop_insn[uop] + (fetched ? 1u : 0u);
  ClassCounts classes{};
  for (uint32_t i = 0; i < executed; ++i) {
    const uint64_t unit = code.unit_of(insn_pc(module, block, i));
    const size_t c = unit < code.insn_class.size() ? code.insn_class[unit]
                                                   : static_cast<size_t>(InsnClass::kOther);
    ++classes[c];
  }
  Stops& stops = stops_[{uop, fetched}];
  stops.block = module.uop_block[uop];
  stops.instructions = executed;
  ++stops.count;
  for (size_t c = 0; c < classes.size(); ++c) {
    tally.classes[c] += classes[c];
    stops.classes[c] += classes[c];
  }
  tally.micro_ops += uop - block.first_uop + 1;
}

Tally Tallies::total(const Module& module, Backend& backend) const {
  Tally total;
  const std::vector<uint64_t> counts = backend.block_counts();
  for (size_t b = 0; b < counts.size() && b < module.blocks.size(); ++b) {
    if (counts[b] == 0) continue;
    const Block& block = module.blocks[b];
    for (int c = 0; c < kInsnClassCount; ++c) total.classes[c] += counts[b] * block.classes[c];
    total.micro_ops += counts[b] * block.uop_count;
  }
  for (const auto& [core, tally] : partial_) {
    for (int c = 0; c < kInsnClassCount; ++c) total.classes[c] += tally.classes[c];
    total.micro_ops += tally.micro_ops;
  }
  return total;
}

ClassCounts Tallies::of_all_cores(Backend& backend) const {
  ClassCounts classes = backend.tally_of_all().classes;
  for (const auto& [core, tally] : partial_)
    for (int c = 0; c < kInsnClassCount; ++c) classes[c] += tally.classes[c];
  return classes;
}

ClassCounts Tallies::of_core(Backend& backend, uint32_t core) const {
  ClassCounts classes = backend.tally(core).classes;
  if (const auto it = partial_.find(core); it != partial_.end())
    for (int c = 0; c < kInsnClassCount; ++c) classes[c] += it->second.classes[c];
  return classes;
}

}  // namespace gpusim::host
