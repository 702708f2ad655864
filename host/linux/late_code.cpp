#include "host/linux/late_code.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "device_sim/core/memory_view.h"
#include "host/linux/path_policy.h"
#include "host/memory_plan.h"
#include "translator/common/limits.h"
#include "translator/elf/shared_object.h"

namespace gpusim::host {
namespace {

// The widest access has 16 bytes.
constexpr uint64_t kWidest = 16;
// Of the code around a place: enough for any library.
constexpr uint64_t kMostBytes = uint64_t{64} << 20;

bool is_watched(uint8_t rights) { return (rights & (kWrite | kExecute)) == (kWrite | kExecute); }

}  // namespace

LateCode::LateCode(Translator& translator, Backend& backend)
    : translator_(translator), backend_(backend) {
  translator_.set_code_source([this](uint64_t pc) { return code_around(pc); });
}
LateCode::~LateCode() { translator_.set_code_source({}); }

// Its own code is in its file, and CodeGuard's if it may be written.
bool LateCode::is_of_program(uint64_t page) const {
  return std::ranges::any_of(translator_.module().segments, [&](const Segment& s) {
    return (s.flags & kExecute) && page >= page_down(s.address) &&
           page < page_up(s.address + s.size_bytes);
  });
}

std::optional<Segment> LateCode::code_around(uint64_t pc) {
  const auto holds = [&](uint64_t page) {
    return (backend_.permissions(0, page) & kExecute) && !is_of_program(page);
  };
  const uint64_t page = page_down(pc);
  if (!holds(page)) return std::nullopt;
  uint64_t begin = page, end = page + kPageSize;
  while (page - begin < kMostBytes && begin != 0 && holds(begin - kPageSize)) begin -= kPageSize;
  while (end - page < kMostBytes && holds(end)) end += kPageSize;
  const uint64_t base = translator_.module().code.text_base;
  if (begin < base || end - base > kCodeLimit) return std::nullopt;
  Segment code{.address = begin, .size_bytes = end - begin, .flags = kRead | kExecute, .bytes = {}};
  code.bytes.resize(end - begin);
  if (!backend_.read_memory(0, begin, code.bytes)) return std::nullopt;
  for (uint64_t at = begin; at < end; at += kPageSize) {
    const auto [it, is_new] = pages_.try_emplace(at, Page{.rights = backend_.permissions(0, at)});
    if (is_new) protect(at, it->second);
  }
  return code;
}

void LateCode::protect(uint64_t page, const Page& state) {
  if (!is_watched(state.rights)) return;
  backend_.set_permissions(0, page, kPageSize, static_cast<uint8_t>(state.rights & ~kWrite));
  has_watched_ = true;
}

void LateCode::note_blocks() {
  const Module& module = translator_.module();
  in_block_.resize(module.code.uop_at.size());
  for (; seen_blocks_ < module.blocks.size(); ++seen_blocks_) {
    const Block& block = module.blocks[seen_blocks_];
    if (block.insn_count == 0) continue;
    const uint64_t first = module.code.unit_of(block.pc);
    const uint64_t last = module.code.unit_of(end_pc(module, block) - 1);
    for (uint64_t unit = first; unit <= last && unit < in_block_.size(); ++unit)
      in_block_[unit] = true;
  }
}

bool LateCode::has_instructions(uint64_t address, uint64_t size_bytes) {
  note_blocks();
  const CodeMap& code = translator_.module().code;
  const uint64_t last = code.unit_of(address + size_bytes - 1);
  for (uint64_t unit = code.unit_of(address); unit <= last && unit < in_block_.size(); ++unit)
    if (in_block_[unit]) return true;
  return false;
}

// Where there are no instructions, what is there now becomes what will be translated.
bool LateCode::is_as_translated(uint32_t core, uint64_t page) {
  std::array<uint8_t, kPageSize> now;
  const std::span<const uint8_t> then = code_from(translator_.module(), page);
  if (then.size() < kPageSize || !backend_.read_memory(core, page, now)) return false;
  if (std::ranges::equal(then.first(kPageSize), now)) return true;
  note_blocks();
  const CodeMap& code = translator_.module().code;
  const uint64_t unit_bytes = uint64_t{1} << code.pc_shift;
  for (uint64_t at = 0; at < kPageSize; at += unit_bytes) {
    const uint64_t unit = code.unit_of(page + at);
    if (unit < in_block_.size() && in_block_[unit] &&
        std::memcmp(now.data() + at, then.data() + at, unit_bytes) != 0)
      return false;
  }
  translator_.refresh_late_code(page, now);
  return true;
}

void LateCode::retire(const std::vector<uint64_t>& pages) {
  if (pages.empty()) return;
  for (const uint64_t page : pages) {
    const auto state = pages_.find(page);
    if (is_watched(state->second.rights))
      backend_.set_permissions(0, page, kPageSize, state->second.rights);
    pages_.erase(state);
    translator_.forget_late_code(page, kPageSize);
  }
  // No block is in the code map any more.
  in_block_.assign(in_block_.size(), false);
  seen_blocks_ = translator_.module().blocks.size();
  is_retired_ = true;
}

void LateCode::was_mapped_from(int file, uint64_t address, uint64_t offset) {
  const std::string path = link_target(descriptor_path(file));
  if (path.empty()) return;
  if (std::optional<MappedObject> mapped = read_shared_object(file, path, address, offset))
    translator_.add_shared_object(std::move(mapped->object), std::move(mapped->symbols));
}

void LateCode::was_mapped(uint32_t core, const AddressRange& range, uint8_t rights) {
  std::vector<uint64_t> gone;
  for (auto it = pages_.lower_bound(range.begin); it != pages_.end() && it->first < range.end;
       ++it) {
    auto& [page, state] = *it;
    const uint8_t former = std::exchange(state.rights, rights);
    state.may_differ |= (former & kWrite) && !(former & kExecute);
    if (rights & kExecute) {
      if (state.may_differ && !is_as_translated(core, page))
        gone.push_back(page);
      else
        state.may_differ = false;
      protect(page, state);
    } else if (!(rights & kWrite)) {
      gone.push_back(page);
    }
  }
  retire(gone);
}

void LateCode::was_unmapped(const AddressRange& range) {
  std::vector<uint64_t> gone;
  for (auto it = pages_.lower_bound(range.begin); it != pages_.end() && it->first < range.end;
       ++it) {
    it->second.rights = 0;
    gone.push_back(it->first);
  }
  retire(gone);
}

void LateCode::was_changed(uint32_t core, const AddressRange& range) {
  std::vector<uint64_t> gone;
  for (auto it = pages_.lower_bound(range.begin); it != pages_.end() && it->first < range.end; ++it)
    if (!is_as_translated(core, it->first)) gone.push_back(it->first);
  retire(gone);
}

LateCode::Store LateCode::on_store_fault(uint32_t core, uint64_t address) {
  std::vector<uint64_t> hit;
  bool is_beside = false;
  for (const uint64_t at : {address, address + kWidest - 1}) {
    const auto page = pages_.find(page_down(at));
    if (page == pages_.end() || !is_watched(page->second.rights) ||
        (backend_.permissions(core, at) & kWrite))
      continue;
    is_beside = true;
    const uint64_t first = std::max(address, page->first);
    const uint64_t last = std::min(address + kWidest, page->first + kPageSize);
    if (has_instructions(first, last - first) && std::ranges::find(hit, page->first) == hit.end())
      hit.push_back(page->first);
  }
  if (hit.empty()) return is_beside ? Store::kBesideCode : Store::kElsewhere;
  retire(hit);
  return Store::kIntoCode;
}

bool LateCode::open_all() {
  std::vector<uint64_t> watched;
  for (const auto& [page, state] : pages_)
    if (is_watched(state.rights)) watched.push_back(page);
  retire(watched);
  return !watched.empty();
}

LateCode::Opened::Opened(LateCode& code, uint32_t core, uint64_t address)
    : code_(code), core_(core) {
  open(address);
}

bool LateCode::Opened::open(uint64_t address) {
  const size_t before = pages_.size();
  for (const uint64_t page : {page_down(address), page_down(address + kWidest - 1)}) {
    const auto it = code_.pages_.find(page);
    if (it == code_.pages_.end() || !is_watched(it->second.rights)) continue;
    if (std::ranges::find(pages_, page) != pages_.end()) continue;
    code_.backend_.set_permissions(core_, page, kPageSize, it->second.rights);
    pages_.push_back(page);
  }
  return pages_.size() != before;
}

bool LateCode::Opened::holds(uint64_t pc) const {
  constexpr uint64_t kLongest = 4;  // bytes of an instruction
  return std::ranges::any_of(
      pages_, [&](uint64_t page) { return pc < page + kPageSize && pc + kLongest > page; });
}

// What was stored will be translated, should a core come there.
LateCode::Opened::~Opened() {
  for (const uint64_t page : pages_) {
    const auto it = code_.pages_.find(page);
    if (it == code_.pages_.end()) continue;
    if (code_.is_as_translated(core_, page))
      code_.protect(page, it->second);
    else
      code_.retire({page});
  }
}

}  // namespace gpusim::host
