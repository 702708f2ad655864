#include "energy/trace.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "device_sim/base/error.h"

namespace gpusim::energy {
namespace {

// The thesis prints seven of these names; the others follow its list of classes.
constexpr const char* kTraceNames[kInsnClassCount] = {"Integer_arithmetic",
                                                      "Integer_division",
                                                      "Integer_logical",
                                                      "Integer_comparison",
                                                      "Float_arithmetic",
                                                      "Float_division",
                                                      "Float_comparison",
                                                      "Double_arithmetic",
                                                      "Double_division",
                                                      "Special",
                                                      "Memory_onchip",
                                                      "Memory_offchip",
                                                      "Control",
                                                      "Parallelism",
                                                      "Other"};
constexpr std::string_view kKernel = "Kernel name:";

std::string_view trimmed(std::string_view s) {
  const size_t first = s.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

std::vector<ActivityPart> parse_trace(const std::string& text, const std::string& origin) {
  std::vector<ActivityPart> kernels;
  std::istringstream in(text);
  int number = 0;
  std::array<bool, kInsnClassCount> seen{};
  const auto fail = [&](const std::string& what) {
    throw Error(fmt::format("{}, line {}: {}", origin, number, what));
  };
  for (std::string raw; std::getline(in, raw);) {
    ++number;
    const std::string_view line = trimmed(raw);
    if (line.empty()) continue;
    if (line.starts_with(kKernel)) {
      kernels.push_back({std::string(trimmed(line.substr(kKernel.size()))), {}});
      if (kernels.back().name.empty()) fail("the kernel has no name");
      seen = {};
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos)
      fail(kernels.empty() ? "neither JSON statistics nor a trace (\"Kernel name: ...\")"
                           : "\"CLASS: COUNT\" is expected");
    if (kernels.empty()) fail("a count before the first \"Kernel name:\"");
    const std::string_view name = trimmed(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    size_t c = 0;
    while (c < kInsnClassCount && name != kTraceNames[c]) ++c;
    if (c == kInsnClassCount) fail(fmt::format("unknown instruction class \"{}\"", name));
    if (seen[c]) fail(fmt::format("{} stands there twice for one kernel", name));
    seen[c] = true;
    uint64_t count = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (value.empty() || error != std::errc{} || end != value.data() + value.size())
      fail(fmt::format("\"{}\" is not a count (a whole number, not negative)", value));
    kernels.back().classes[c] = count;
  }
  if (kernels.empty()) throw Error(fmt::format("{}: no kernel in the trace", origin));
  return kernels;
}

std::string trace_text(const std::vector<ActivityPart>& kernels) {
  std::string text;
  for (const ActivityPart& kernel : kernels) {
    text += fmt::format("{}{} {}\n", text.empty() ? "" : "\n", kKernel, kernel.name);
    for (size_t c = 0; c < kInsnClassCount; ++c)
      if (kernel.classes[c] != 0)
        text += fmt::format("{}: {}\n", kTraceNames[c], kernel.classes[c]);
  }
  return text;
}

Activity activity_of_trace(std::vector<ActivityPart> kernels, const std::string& name) {
  Activity a;
  a.name = name;
  a.memory_is_placed = true;
  for (const ActivityPart& kernel : kernels)
    for (size_t c = 0; c < a.classes.size(); ++c) a.classes[c] += kernel.classes[c];
  if (a.instructions() == 0)
    throw Error(fmt::format("{}: the tallies are empty: nothing was executed", name));
  a.functions = std::move(kernels);
  return a;
}

}  // namespace gpusim::energy
