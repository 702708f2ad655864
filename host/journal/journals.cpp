#include "host/journal/journals.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <optional>

#include "translator/common/translator.h"
#include "translator/passes/note_accesses.h"

namespace gpusim::host {

namespace {
// Neighbouring journals should not begin in the same sets of the host's caches.
constexpr uint32_t kPadding = 8;

// Of the operation behind a note.
bool may_fail(Op op) {
  return op == Op::cas || op == Op::cas128 || op == Op::stx || op == Op::stx128 ||
         op == Op::amo_swp;
}

std::optional<AccessSite> site_of(const Module& module, uint32_t uop) {
  const Uop& u = module.uops[uop];
  const auto site = [&](SiteKind kind, uint16_t bytes = 0) {
    const auto unit = static_cast<uint32_t>(module.code.unit_of(uop_pc(module, uop)));
    return AccessSite{module.uop_insn[uop], kind, bytes, unit, u.op == Op::vector};
  };
  const auto atomic = [&] {
    const uint8_t bytes = NoteField::bytes(u);
    AccessSite s = site(SiteKind::kAtomic, bytes & ~kStoresByExchange);
    s.is_store = (bytes & kStoresByExchange) != 0;
    s.may_fail = !s.is_store && may_fail(module.uops[uop + 1].op);
    return s;
  };
  switch (u.op) {
    case Op::note:
      if (u.aux == kNoteBlock || u.aux == kNoteClock) return std::nullopt;
      if (u.aux == kNoteStamp) return site(SiteKind::kStamp);
      if (NoteField::bytes(u) == kNoBytes)
        return site(u.aux == kNoteValue ? SiteKind::kValue : SiteKind::kStackPointer);
      switch (NoteField::kind(u)) {
        case AccessKind::kLoad: return site(SiteKind::kLoad, NoteField::bytes(u));
        case AccessKind::kStore: return site(SiteKind::kStore, NoteField::bytes(u));
        case AccessKind::kAtomic: return atomic();
      }
      return std::nullopt;
    case Op::vector: {
      const vector::Row row = vector::row_of(vector::Insn::unpack(u.imm).op);
      if (!vector::is_access(row.kind)) return std::nullopt;
      return site((row.flags & vector::kStores) ? SiteKind::kStore : SiteKind::kLoad);
    }
    case Op::fence: return site(SiteKind::kFence);
    case Op::give_way:
      switch (static_cast<Turn>(u.aux)) {
        case Turn::kYield: return site(SiteKind::kYield);
        case Turn::kWaitForEvent: return site(SiteKind::kWaitForEvent);
        case Turn::kSignalEvent: return site(SiteKind::kSignalEvent);
      }
      return std::nullopt;
    default: return std::nullopt;
  }
}
}  // namespace

uint32_t Journals::words_for(uint32_t cores, bool is_seldom_written) {
  constexpr uint64_t kLeast = 2 * kJournalMargin, kMost = 1 << 16;
  // Of words that are written all the time, so few that a slice's are still in the host's caches
  // when they are read.
  const uint64_t of_all = uint64_t{1} << (is_seldom_written ? 25 : 20);
  return static_cast<uint32_t>(std::clamp(of_all / cores, kLeast, kMost)) + kPadding;
}

Journals::Journals(const Module& module, Backend& backend, const MachineConfig& config)
    : module_(module), backend_(backend), config_(config) {
  look_at_new_blocks();
}

void Journals::look_at_new_blocks() {
  for (size_t b = blocks_.size(); b < module_.blocks.size(); ++b) {
    const Block& block = module_.blocks[b];
    BlockSites sites{.pc = block.pc, .insn_count = block.insn_count, .accesses = {}};
    uint64_t words = 0;
    for (uint32_t i = block.first_uop; i < block.first_uop + block.uop_count; ++i) {
      const Uop& u = module_.uops[i];
      words += u.op == Op::note && (u.aux == kNoteBlock || u.aux == kNoteClock);
      const auto site = site_of(module_, i);
      if (!site) continue;
      sites.accesses.push_back(*site);
      words += site->is_vector
                   ? VectorNote::most_words(vector::Insn::unpack(u.imm))
                   : 1;
    }
    if (words != 0) room_.add_block(words, block.insn_count);
    blocks_.push_back(std::move(sites));
  }
}

uint64_t Journals::longest_slice() {
  look_at_new_blocks();
  // With a seed a slice is run in parts, each of which may take that long (simd).
  constexpr uint64_t kParts = 4;
  const uint64_t instructions = room_.longest_slice(config_.journal_words);
  return std::max<uint64_t>(config_.seed != 0 ? instructions / kParts : instructions, 1);
}

void Journals::after_slice() {
  tbb::task_arena arena(static_cast<int>(std::max(1u, config_.threads)));
  arena.execute([&] {
    const uint32_t width = config_.group_width;
    tbb::parallel_for(uint32_t{0}, (config_.cores + width - 1) / width, [&](uint32_t group) {
      const uint32_t end = std::min(config_.cores, (group + 1) * width);
      for (uint32_t core = group * width; core < end; ++core) {
        const std::span<const uint64_t> words = backend_.journal(core);
        if (words.empty()) continue;
        for (JournalReader* reader : readers_) reader->read(core, words, blocks_);
      }
    });
  });
  for (JournalReader* reader : readers_) reader->end_slice();
  backend_.clear_journals();
}

void Journals::started(uint32_t child, uint32_t parent) {
  for (JournalReader* reader : readers_) reader->started(child, parent);
}

}  // namespace gpusim::host
