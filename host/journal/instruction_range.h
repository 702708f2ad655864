// FROM..TO of a command line: which instructions count.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace gpusim::host {

struct InstructionRange {
  uint64_t first = 0, end = ~uint64_t{0};
  bool contains(uint64_t number) const { return number >= first && number < end; }
};

// "FROM..TO", "FROM.." or "..TO"; nothing where `text` has no "..". Throws Error.
std::optional<InstructionRange> parse_range(const std::string& option, const std::string& text);

}  // namespace gpusim::host
