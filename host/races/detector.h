// `gpusim run --check races`: accesses of two cores to the same bytes, one of them at least a
// store, which no synchronisation orders. docs/races.md says what it sees; ADR 0038 how it works.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "host/journal/journals.h"
#include "host/races/clocks.h"
#include "host/races/shadow.h"

namespace gpusim::host::races {

// One of the two accesses.
struct Place {
  uint64_t pc = 0;
  uint8_t kind = 0;  // of Cell
  auto operator<=>(const Place&) const = default;
};
struct Race {
  uint64_t address = 0;  // where it was first seen, and by whom
  uint32_t bytes = 0;
  uint32_t first_core = 0, second_core = 0;
  uint64_t count = 0;
};
// By the access that was seen first and the one that came behind.
using Races = std::map<std::pair<Place, Place>, Race>;

class Detector final : public JournalReader {
 public:
  static constexpr uint32_t kMostCores = 4096;

  Detector(const Module& module, uint32_t cores);

  void read(uint32_t core, std::span<const uint64_t> words,
            std::span<const BlockSites> blocks) override;
  void end_slice() override;
  void started(uint32_t child, uint32_t parent) override;

  // `core` goes on because of what `by` did.
  void woken(uint32_t core, uint32_t by);
  // The kernel stored to a word for a core that ended.
  void ended(uint32_t core, uint64_t word_address);
  // Calls by which cores may hand something to others.
  void called(uint32_t core, std::string_view call);

  // Without those at words of which it turned out later that they synchronise.
  Races races();
  uint64_t accesses() const { return accesses_; }
  uint64_t shared_clocks() const { return clocks_.shared_words(); }

 private:
  struct Site {
    uint64_t pc = 0;
    uint8_t kind = 0;  // of Cell
  };
  // How far the words of a core in this slice are read.
  struct Cursor;
  struct Event {
    enum class Kind : uint8_t { kAccess, kFence } kind;
    uint32_t site = 0;
    uint64_t address = 0;  // or the stamp
    uint32_t bytes = 0;
  };

  void grow(std::span<const BlockSites> blocks);
  void mark(Cursor cursor);
  // Up to the next fence; its stamp, or 0 at the end of the slice.
  uint64_t run(Cursor& cursor);
  void access(uint32_t core, const Event& event);
  void access_word(uint32_t core, uint64_t word, uint8_t bytes, uint32_t site);
  void report(const Cell& before, const Cell& now, uint64_t word);

  const Module& module_;
  Clocks clocks_;
  Shadow shadow_;
  std::vector<Site> sites_;
  std::vector<uint32_t> first_site_;       // per block
  std::vector<bool> has_synchronisation_;  // per block
  std::span<const BlockSites> blocks_;
  std::vector<std::span<const uint64_t>> words_;  // of this slice, per core
  std::vector<uint8_t> takes_;  // per core: it goes on behind a call that took something
  Races races_;
  uint64_t accesses_ = 0;
};

}  // namespace gpusim::host::races
