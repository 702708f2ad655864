// The two disassemblers that our decoder is compared with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusim::a64 {

struct Disassembly {
  std::string mnemonic;  // empty: the tool does not know the word
  std::string operands;
};

/// Runs GNU objdump over the words as a raw binary. Throws std::runtime_error when it fails.
std::vector<Disassembly> objdump(std::span<const uint32_t> words, bool aliases);

std::vector<Disassembly> capstone(std::span<const uint32_t> words);

}  // namespace gpusim::a64
