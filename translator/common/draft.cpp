#include "translator/common/draft.h"

#include <algorithm>

#include "device_sim/uir/vector_note.h"

namespace gpusim {

namespace {
// A block of many such would not fit a journal.
bool notes_many_words(const Uop& u) {
  return u.op == Op::vector &&
         VectorNote::most_words(vector::Insn::unpack(u.imm)) > VectorNote::kWordsOfRun;
}
}  // namespace

CodeBlock form_block(const GuestIsa& isa, uint64_t pc, const CodeAt& code_at,
                     const std::function<bool(uint64_t pc)>& starts_block, const Guise& guise) {
  BlockBuilder builder = isa.make_builder();
  builder.set_cpu(guise.cpu);
  builder.set_has_simulated_time(guise.has_simulated_time);
  builder.begin_block(pc);
  CodeBlock block;
  const auto note_offset = [&, start = pc] {
    if (!isa.has_one_length()) block.insn_offsets.push_back(static_cast<uint16_t>(pc - start));
  };
  note_offset();
  for (uint32_t n = 0; n < kMaxBlockInsns && builder.draft().uops.size() < kMaxBlockUops; ++n) {
    if (n > 0 && starts_block(pc)) break;
    const GuestInsn insn = isa.first_insn(pc, code_at(pc));
    if (!insn) break;
    const size_t first_uop = builder.draft().uops.size();
    const InsnResult result = isa.translate(insn, builder);
    pc += insn.bytes.size();
    note_offset();
    if (result == InsnResult::kNext) {
      const std::span<const Uop> uops = builder.draft().uops;
      if (guise.has_journals && std::ranges::any_of(uops.subspan(first_uop), notes_many_words))
        break;
      continue;
    }
    block.unknown = result == InsnResult::kUnknown;
    break;
  }
  block.draft = builder.take();
  block.next_pc = pc;
  return block;
}

}  // namespace gpusim
