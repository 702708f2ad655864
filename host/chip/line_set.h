// Which lines a core ever had.
#pragma once
#include <cstdint>

#include "host/chip/line_map.h"

namespace gpusim::host::chip {

// A bit per line of a page of 64: most pages of which a core has one line, it has all of.
class LineSet {
 public:
  // False: it is in already.
  bool insert(uint64_t line) {
    const uint64_t page = line / kLines, bit = uint64_t{1} << (line % kLines);
    uint64_t& lines = pages_[page];
    const bool is_new = (lines & bit) == 0;
    lines |= bit;
    return is_new;
  }
  // One that is in.
  void take_out(uint64_t line) { pages_[line / kLines] &= ~(uint64_t{1} << (line % kLines)); }

 private:
  static constexpr uint64_t kLines = 64;
  LineMap<uint64_t> pages_;
};

}  // namespace gpusim::host::chip
