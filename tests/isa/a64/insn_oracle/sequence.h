// Builds a case from words of named rows.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/isa/a64/insn_oracle/oracle.h"

namespace gpusim::a64::oracle {

class Sequence {
 public:
  explicit Sequence(Rng& rng) : rng_(rng) {}
  // A word of the row with some fields given.
  Sequence& add(std::string_view name, std::initializer_list<std::pair<char, uint32_t>> fields) {
    const auto found =
        std::find_if(rows().begin(), rows().end(), [&](const Row& r) { return r.name == name; });
    if (found == rows().end()) throw std::invalid_argument("no row " + std::string(name));
    for (;;) {
      uint32_t word = random_word(*found, rng_);
      for (const auto& [letter, value] : fields) {
        const BitField f = found->pattern.field(letter);
        if (f.width == 0) throw std::invalid_argument("no such field in " + std::string(name));
        const uint32_t mask = ((1u << f.width) - 1) << f.lsb;
        word = (word & ~mask) | ((value << f.lsb) & mask);
      }
      if (decode(word) != &*found) continue;
      words_.push_back(word);
      return *this;
    }
  }
  Sequence& add_word(uint32_t word) {
    words_.push_back(word);
    return *this;
  }
  Case make() const {
    Case c;
    c.words = words_;
    c.state = random_state(rng_);
    c.state.fpcr &= ~uint64_t{1 << 19};  // FZ16: Cortex-A57 lacks it
    c.uses_memory = true;
    return c;
  }

 private:
  Rng& rng_;
  std::vector<uint32_t> words_;
};

}  // namespace gpusim::a64::oracle
