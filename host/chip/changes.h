// A chip with single figures of its description changed: "mesh-1024,shared.size=1M".
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gpusim::host::chip {

// A key of the description with dots between ("memory.tiles", "network.levels.0.ports"), and what
// it is to be, as it was written: JSON, or a text without quotes. "null" takes the key out.
using Change = std::pair<std::string, std::string>;

struct ChangedChip {
  std::string name;  // or a file
  std::vector<Change> changes;
};

// Splits where a comma stands outside of brackets and quotes.
std::vector<std::string> split_at_commas(const std::string& text);
// "NAME[,KEY=VALUE]...". Throws Error.
ChangedChip parse_changed_chip(const std::string& text);
// The other way round.
std::string text_of(const ChangedChip& chip);
// Objects on the way to a key are made where they are missing; keys that mean nothing are found by
// whoever reads the description. Throws Error.
void apply(const Change& change, nlohmann::ordered_json& description);

}  // namespace gpusim::host::chip
