#include "host/journal/instruction_range.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "device_sim/base/error.h"

namespace gpusim::host {

std::optional<InstructionRange> parse_range(const std::string& option, const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return std::nullopt;
  const auto number = [&](std::string_view digits, uint64_t otherwise) {
    if (digits.empty()) return otherwise;
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size())
      throw Error(fmt::format("{} {}: \"{}\" is no number of instructions", option, text, digits));
    return value;
  };
  const std::string_view whole = text;
  const InstructionRange range{.first = number(whole.substr(0, dots), 0),
                               .end = number(whole.substr(dots + 2), ~uint64_t{0})};
  if (range.first >= range.end)
    throw Error(fmt::format("{} {}: it ends before it begins", option, text));
  return range;
}

}  // namespace gpusim::host
