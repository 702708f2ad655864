// Studies over descriptions of chips: each program on each chip with each value of each key.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "host/sweep/study.h"

namespace gpusim::sweep {

// "KEY=V1,V2,A..B,A..B+S": values as `gpusim run --chip` takes them; A..B doubles from A up to B, B
// included, A..B+S goes in steps of S; both may have the same unit ("16K..256K"). Throws Error
// naming `where`.
VariedKey parse_varied_key(const std::string& where, const std::string& text);
VariedKey varied_key(const std::string& where, const std::string& key, const std::string& values);

// Makes a case per chip and combination of values of each case, as the study's `chips` and `vary`
// say, the last key's values first. Throws Error where descriptions of a chip are wrong, or where
// it has fewer cores than are asked for.
void put_on_chips(Study& study);

// 64, or 65536 of "64K"; nothing where the value is no number. `is_size`: it has a unit.
struct KeyNumber {
  double value = 0;
  bool is_size = false;
};
std::optional<KeyNumber> number_of(const std::string& value);

}  // namespace gpusim::sweep
