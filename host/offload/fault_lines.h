// Source lines for the text of faults. They are looked for beside the kernels, by whoever the
// Simulator's owner chose: the programs may be hostile.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "host/offload/background.h"
#include "host/offload/program_cache.h"
#include "host/run/line_table.h"

namespace gpusim::offload {

/// An ELF file and addresses in it; any thread. An entry for each of these, or nothing: it failed.
using FindLines =
    std::function<host::LineTable(std::span<const uint8_t> elf, std::span<const uint64_t> places)>;

/// Of one program.
struct ProgramLines {
  std::weak_ptr<const ProgramCache::Bytes> file;
  host::LineTable known;
  bool is_futile = false;  // a search failed: there is no other
};

class LineSearches {
 public:
  struct Search {
    std::atomic<bool> ready = false;
    host::LineTable found;
  };

  /// `wake` is called when a search is ready. No `find`: nothing is looked for.
  LineSearches(FindLines find, std::function<void()> wake)
      : find_(std::move(find)), threads_(std::move(wake)) {}

  /// Null: all that can be known of these places is known, or too many look for theirs already.
  std::shared_ptr<Search> start(const ProgramLines& lines, std::span<const uint64_t> places);
  static void learn(ProgramLines& lines, Search& search);

 private:
  const FindLines find_;
  Background threads_;
};

}  // namespace gpusim::offload
