// How long a slice may be so that no journal fills.
#pragma once
#include <algorithm>
#include <cstdint>

#include "device_sim/core/backend.h"

namespace gpusim {

class JournalRoom {
 public:
  // Cores write so many words for each execution of a block of so many guest instructions.
  void add_block(uint64_t words, uint32_t instructions) {
    most_words_ = std::max(most_words_, words);
    if (instructions != 0)
      most_per_instruction_ =
          std::max(most_per_instruction_, static_cast<double>(words) / instructions);
  }
  // In instructions; 0: there is no room. `journal_words`: MachineConfig's.
  uint64_t longest_slice(uint64_t journal_words) const {
    const uint64_t margin = kJournalMargin + most_words_;
    const uint64_t words = journal_words > margin ? journal_words - margin : 1;
    return static_cast<uint64_t>(static_cast<double>(words) / most_per_instruction_);
  }

 private:
  uint64_t most_words_ = 1;          // of a block
  double most_per_instruction_ = 1;  // words, of all blocks
};

}  // namespace gpusim
