#include "translator/common/draft.h"

namespace gpusim {

CodeBlock form_block(const GuestIsa& isa, uint64_t pc,
                     const std::function<bool(uint64_t pc, uint32_t* word)>& word_at,
                     const std::function<bool(uint64_t pc)>& starts_block, const Guise& guise) {
  BlockBuilder builder = isa.make_builder();
  builder.set_cpu(guise.cpu);
  builder.set_has_simulated_time(guise.has_simulated_time);
  builder.begin_block(pc);
  CodeBlock block;
  uint32_t word = 0;
  for (uint32_t n = 0; n < kMaxBlockInsns && builder.draft().uops.size() < kMaxBlockUops; ++n) {
    if ((n > 0 && starts_block(pc)) || !word_at(pc, &word)) break;
    const InsnResult result = isa.translate(word, pc, builder);
    pc += uint64_t{1} << isa.pc_shift;
    if (result == InsnResult::kNext) continue;
    block.unknown = result == InsnResult::kUnknown;
    break;
  }
  block.draft = builder.take();
  block.next_pc = pc;
  return block;
}

}  // namespace gpusim
