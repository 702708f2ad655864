// Watches over code that a program can write: ELF segments that are writable and executable.
//
// Pages that hold translated code are read-only whatever the ELF says. A store there that hits an
// instruction stops the core; one that hits data beside code makes the page writable, and from then
// on its code is compared with what was translated after every slice.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "device_sim/core/backend.h"

namespace gpusim::host {

class CodeGuard {
 public:
  // The image has been loaded.
  CodeGuard(const Module& module, Backend& backend);

  // Blocks were translated since the last call: their pages are protected. The address of an
  // instruction that `core` had changed before, if there is one.
  std::optional<uint64_t> protect_new_blocks(uint32_t core);

  enum class Store { kElsewhere, kBesideCode, kIntoCode };
  // A store to this address faulted. kBesideCode: it may be tried again.
  Store on_store_fault(uint32_t core, uint64_t address);

  struct Change {
    uint32_t core = 0;
    uint64_t pc = 0;
  };
  // Code that was changed in pages which may be written.
  std::vector<Change> find_changes();

  // Whether the program itself made what is executable at this address.
  bool is_written_code(uint32_t core, uint64_t address) const;

  // For checkpoints, which define it.
  template <class Archive>
  void describe(Archive& a, uint32_t cores);

 private:
  struct Page {
    uint32_t core = 0;
    uint64_t address = 0;
  };
  bool in_writable_code(uint64_t address) const;
  bool is_translated(uint64_t address) const;
  // Marks the code of the blocks from seen_blocks_ to `end` as translated; returns its pages.
  std::vector<uint64_t> note_translated(size_t count);
  uint64_t unit_bytes() const { return uint64_t{1} << module_.code.pc_shift; }
  std::optional<uint64_t> changed_word(uint32_t core, uint64_t page) const;

  const Module& module_;
  Backend& backend_;
  bool active_ = false;  // there are such segments
  size_t seen_blocks_ = 0;
  std::vector<bool> translated_;  // per unit of the code map: an instruction of some block
  std::vector<Page> watched_;
};

}  // namespace gpusim::host
