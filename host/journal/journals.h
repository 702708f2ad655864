// What cores did, slice by slice, handed to those who want to know it (device_sim/uir/journal.h).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/core/journal_room.h"
#include "device_sim/uir/journal.h"
#include "device_sim/uir/vector_note.h"

namespace gpusim::host {

enum class SiteKind : uint8_t {
  kLoad,
  kStore,
  kAtomic,
  // Without an address, so not in the journal.
  kFence,
  kYield,
  kWaitForEvent,
  kSignalEvent,
  // The word of a fence's note: its stamp (uir/journal.h).
  kStamp,
  // The word is the stack pointer, before a call or an indirect jump.
  kStackPointer,
  // The word is an argument or a result (TranslateOptions::functions).
  kValue,
};
constexpr bool has_address(SiteKind k) { return k <= SiteKind::kAtomic; }
constexpr bool has_word(SiteKind k) { return has_address(k) || k >= SiteKind::kStamp; }

// An access of a block, as the note before it says, or synchronisation.
struct AccessSite {
  uint32_t insn = 0;  // index of its instruction in the block
  SiteKind kind = SiteKind::kLoad;
  uint16_t bytes = 0;
  uint32_t unit = 0;  // its instruction's place in the code map
  // Of a `vector`: accesses of any number and size, as the words say.
  bool is_vector = false;
  // kAtomic: by its result a program may learn that it has to try again: exchanges,
  // compare-and-swap, exclusive stores.
  bool may_fail = false;
  bool is_store = false;  // kAtomic: an exchange of which nobody uses the old value
};
struct BlockSites {
  uint64_t pc = 0;
  uint32_t insn_count = 0;
  std::vector<AccessSite> accesses;  // in order
};

class JournalReader {
 public:
  virtual ~JournalReader() = default;
  // The words of one slice, of a core that wrote some. Called by several threads at the same time,
  // for cores of different groups; `blocks` by number. A block never goes on in the next slice.
  virtual void read(uint32_t core, std::span<const uint64_t> words,
                    std::span<const BlockSites> blocks) = 0;
  // All cores' words of the slice have been read. One thread.
  virtual void end_slice() {}
  // `child` was started by `parent`, after all that `parent` wrote so far. One thread.
  virtual void started(uint32_t child, uint32_t parent) {
    (void)child;
    (void)parent;
  }
};

// Calls on_block(number, block) and on_access(site, address) in the order of the words; address 0
// where there is none. Of a block that did not come to its end, up to the last access in it. Stamps
// and values are left out; on_stack_pointer(value) is called for stack pointers.
template <class OnBlock, class OnAccess, class OnStackPointer>
void for_each_word(std::span<const uint64_t> words, std::span<const BlockSites> blocks,
                   OnBlock on_block, OnAccess on_access, OnStackPointer on_stack_pointer) {
  const AccessSite *site = nullptr, *end = nullptr;
  const auto skip_to_address = [&] {
    for (; site != end && !has_word(site->kind); ++site) on_access(*site, 0);
  };
  const auto vector_word = [&](uint64_t word) {
    if (word & VectorNote::kEnd) {
      ++site;
      return;
    }
    AccessSite access = *site;
    access.bytes = VectorNote::bytes(word);
    on_access(access, VectorNote::address(word));
  };
  for (const uint64_t word : words) {
    if (word & kBlockMark) {
      const auto number = static_cast<uint32_t>(word);
      const BlockSites& block = blocks[number];
      site = block.accesses.data();
      end = site + block.accesses.size();
      on_block(number, block);
    } else if (site == end) {
      continue;  // of a block that began in another slice
    } else if (site->is_vector) {
      vector_word(word);
    } else if (site->kind == SiteKind::kStamp || site->kind == SiteKind::kValue) {
      ++site;
    } else if (site->kind == SiteKind::kStackPointer) {
      on_stack_pointer(word);
      ++site;
    } else {
      on_access(*site++, word);
    }
    skip_to_address();
  }
}
template <class OnBlock, class OnAccess>
void for_each_word(std::span<const uint64_t> words, std::span<const BlockSites> blocks,
                   OnBlock on_block, OnAccess on_access) {
  for_each_word(words, blocks, on_block, on_access, [](uint64_t) {});
}

class Journals {
 public:
  // MachineConfig::journal_words for so many cores. `is_seldom_written`: most of it never is, and
  // takes no memory.
  static uint32_t words_for(uint32_t cores, bool is_seldom_written = false);

  // The module was translated with TranslateOptions::journal. `threads`: host threads to read with.
  Journals(const Module& module, Backend& backend, const MachineConfig& config);
  void add(JournalReader& reader) { readers_.push_back(&reader); }

  // All blocks so far, by number.
  std::span<const BlockSites> blocks() const { return blocks_; }

  // Longest slice, in instructions, for which the journals have room.
  uint64_t longest_slice();
  // Before anything else is done after Backend::run_slice.
  void after_slice();
  void started(uint32_t child, uint32_t parent);

 private:
  void look_at_new_blocks();

  const Module& module_;
  Backend& backend_;
  const MachineConfig config_;
  std::vector<JournalReader*> readers_;
  std::vector<BlockSites> blocks_;
  JournalRoom room_;
};

}  // namespace gpusim::host
