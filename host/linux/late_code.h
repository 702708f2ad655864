// Code that a program maps or writes while it runs: what of it is translated, and whether that is
// still what stands in memory.
//
// A page is translated as it is when a core first comes there. From then on its page is watched:
// - it can no longer be written by stores, whatever its rights: a store there stops the core
//   (on_store_fault) and either hits an instruction, which ends the translation, or is executed
//   by the host;
// - rights that let it be written without being executed leave the translation alone until it may
//   be executed again: then it is compared with memory;
// - unmapping it, or taking away all rights to it, ends the translation.
// Where a translation ends, all blocks are retired and cores change over to new ones.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/linux/address_space.h"
#include "translator/common/translator.h"

namespace gpusim::host {

class LateCode {
 public:
  // Registers itself as the translator's source of code.
  LateCode(Translator& translator, Backend& backend);
  ~LateCode();
  LateCode(const LateCode&) = delete;
  LateCode& operator=(const LateCode&) = delete;

  // Pages have these rights from now on, and perhaps other contents.
  void was_mapped(uint32_t core, const AddressRange& range, uint8_t rights);
  void was_unmapped(const AddressRange& range);
  // The file's bytes from `offset` on are at this address, as code: it may be a shared object.
  void was_mapped_from(int file, uint64_t address, uint64_t offset);
  // Pages have other contents, and the same rights.
  void was_changed(uint32_t core, const AddressRange& range);

  enum class Store : uint8_t { kElsewhere, kIntoCode, kBesideCode };
  // A store to this address faulted. kIntoCode: it may be tried again. kBesideCode: the page holds
  // code that the store does not change: it may be executed while the page is Opened.
  Store on_store_fault(uint32_t core, uint64_t address);
  // The host is about to store for the guest: no page is watched any more.
  bool open_all();
  // While it lives, the pages may be written.
  class Opened {
   public:
    Opened(LateCode& code, uint32_t core, uint64_t address);
    ~Opened();
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    // More that is stored to; false: that is open, or no such page.
    bool open(uint64_t address);
    // Whether an instruction there lies in a page that is open.
    bool holds(uint64_t pc) const;

   private:
    LateCode& code_;
    uint32_t core_;
    std::vector<uint64_t> pages_;
  };

  // Whether blocks were retired since the last time.
  bool take_retired() { return std::exchange(is_retired_, false); }
  // Whether stores may fault that are none of the guest's faults: flags have to be exact there.
  bool has_watched() const { return has_watched_; }

 private:
  struct Page {
    uint8_t rights = 0;       // as the guest sees them
    bool may_differ = false;  // it could be written since it was translated
  };
  std::optional<Segment> code_around(uint64_t pc);
  bool is_of_program(uint64_t page) const;
  // Whether instructions of blocks lie in the range.
  bool has_instructions(uint64_t address, uint64_t size_bytes);
  bool is_as_translated(uint32_t core, uint64_t page);
  void retire(const std::vector<uint64_t>& pages);
  void protect(uint64_t page, const Page& state);
  void note_blocks();

  Translator& translator_;
  Backend& backend_;
  std::map<uint64_t, Page> pages_;  // with code that the translator has
  std::vector<bool> in_block_;      // per unit of the code map
  size_t seen_blocks_ = 0;
  bool is_retired_ = false, has_watched_ = false;
};

}  // namespace gpusim::host
