#include "host/run/code_guard.h"

#include <algorithm>
#include <cstring>

#include "device_sim/core/memory_view.h"
#include "host/memory_plan.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

constexpr uint8_t kBoth = kWrite | kExecute;

}  // namespace

CodeGuard::CodeGuard(const Module& module, Backend& backend)
    : module_(module),
      backend_(backend),
      active_(std::any_of(module.segments.begin(), module.segments.end(),
                          [](const Segment& s) { return (s.flags & kBoth) == kBoth; })) {
  if (!active_) return;
  translated_.resize(module.code.uop_at.size());
  protect_new_blocks(0);
}

bool CodeGuard::in_writable_code(uint64_t address) const {
  return std::any_of(module_.segments.begin(), module_.segments.end(), [&](const Segment& s) {
    return (s.flags & kBoth) == kBoth && address >= page_down(s.address) &&
           address < page_up(s.address + s.size_bytes);
  });
}

bool CodeGuard::is_translated(uint64_t address) const {
  const uint64_t unit = module_.code.unit_of(address);
  return unit < translated_.size() && translated_[unit];
}

std::vector<uint64_t> CodeGuard::note_translated(size_t count) {
  std::vector<uint64_t> pages;
  const CodeMap& code = module_.code;
  for (; seen_blocks_ < count; ++seen_blocks_) {
    const Block& block = module_.blocks[seen_blocks_];
    if (block.insn_count == 0 || !in_writable_code(block.pc)) continue;
    const uint64_t end = end_pc(module_, block);
    for (uint64_t pc = block.pc; pc < end; pc += unit_bytes()) translated_[code.unit_of(pc)] = true;
    for (uint64_t page = page_down(block.pc); page < end; page += kPageSize)
      if (std::find(pages.begin(), pages.end(), page) == pages.end()) pages.push_back(page);
  }
  return pages;
}

std::optional<uint64_t> CodeGuard::protect_new_blocks(uint32_t core) {
  if (!active_) return std::nullopt;
  std::optional<uint64_t> changed;
  for (const uint64_t page : note_translated(module_.blocks.size())) {
    const bool is_watched = std::any_of(watched_.begin(), watched_.end(),
                                        [&](const Page& w) { return w.address == page; });
    if (!is_watched) {
      const uint8_t rights = backend_.permissions(core, page);
      backend_.set_permissions_all(page, kPageSize, rights & static_cast<uint8_t>(~kWrite));
    }
    if (!changed) changed = changed_word(core, page);
  }
  return changed;
}

std::optional<uint64_t> CodeGuard::changed_word(uint32_t core, uint64_t page) const {
  std::vector<uint8_t> bytes(kPageSize);
  if (!backend_.read_memory(core, page, bytes)) return std::nullopt;
  for (uint64_t offset = 0; offset < kPageSize; offset += unit_bytes()) {
    if (!is_translated(page + offset)) continue;
    const std::span<const uint8_t> then = code_from(module_, page + offset);
    const size_t size = std::min<size_t>(unit_bytes(), then.size());
    if (std::memcmp(bytes.data() + offset, then.data(), size) != 0) return page + offset;
  }
  return std::nullopt;
}

CodeGuard::Store CodeGuard::on_store_fault(uint32_t core, uint64_t address) {
  if (!active_) return Store::kElsewhere;
  const auto is_open = [&](uint64_t at) { return (backend_.permissions(core, at) & kWrite) != 0; };
  const uint64_t last = address + 15;  // the widest access has 16 bytes
  for (const uint64_t at : {address, last}) {
    if (!in_writable_code(at) || is_open(at)) continue;
    for (uint64_t b = address & ~(unit_bytes() - 1); b < address + 8; b += unit_bytes())
      if (is_translated(b)) return Store::kIntoCode;
    watched_.push_back({core, page_down(at)});
    backend_.set_permissions(core, page_down(at), kPageSize,
                             backend_.permissions(core, at) | kWrite);
    return Store::kBesideCode;
  }
  // Another core's store of the same slice has opened the page.
  const bool is_watched = std::ranges::any_of(watched_, [&](const Page& w) {
    return w.address == page_down(address) || w.address == page_down(last);
  });
  if (is_watched && is_open(address) && is_open(last)) return Store::kBesideCode;
  return Store::kElsewhere;
}

std::vector<CodeGuard::Change> CodeGuard::find_changes() {
  std::vector<Change> changes;
  for (const Page& page : watched_)
    if (const auto pc = changed_word(page.core, page.address)) changes.push_back({page.core, *pc});
  return changes;
}

bool CodeGuard::is_written_code(uint32_t core, uint64_t address) const {
  if (!(backend_.permissions(core, address) & kExecute)) return false;
  return std::none_of(module_.segments.begin(), module_.segments.end(), [&](const Segment& s) {
    return (s.flags & kBoth) == kExecute && address >= page_down(s.address) &&
           address < page_up(s.address + s.size_bytes);
  });
}

}  // namespace gpusim::host
