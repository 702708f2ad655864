#include "host/sweep/chips.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "device_sim/base/error.h"
#include "host/chip/changes.h"
#include "host/chip/shape.h"

namespace gpusim::sweep {
namespace chip = host::chip;
namespace {

constexpr size_t kMostValues = 1000, kMostCases = 10000;

// A whole number and its unit.
struct Quantity {
  uint64_t number = 0;
  std::string unit;
};
std::optional<Quantity> quantity_of(const std::string& text) {
  Quantity q;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, q.number);
  if (error != std::errc{}) return std::nullopt;
  q.unit = std::string(stop, end);
  if (!q.unit.empty() && q.unit != "K" && q.unit != "M" && q.unit != "KiB" && q.unit != "MiB")
    return std::nullopt;
  return q;
}

void add_range(const std::string& where, const std::string& text, std::vector<std::string>& list) {
  const size_t dots = text.find(".."), plus = text.find('+', dots);
  const auto first = quantity_of(text.substr(0, dots));
  const auto last =
      quantity_of(text.substr(dots + 2, plus == std::string::npos ? plus : plus - dots - 2));
  const auto step = plus == std::string::npos ? Quantity{} : quantity_of(text.substr(plus + 1));
  const bool has_step = plus != std::string::npos;
  if (!first || !last || !step || first->unit != last->unit ||
      (has_step && (step->unit != first->unit || step->number == 0)) || first->number == 0 ||
      last->number < first->number)
    throw Error(
        fmt::format("{}: \"{}\" must be FROM..TO or FROM..TO+STEP, whole numbers of the "
                    "same unit, FROM from 1 to TO",
                    where, text));
  for (uint64_t n = first->number; n < last->number; n = has_step ? n + step->number : 2 * n) {
    list.push_back(std::to_string(n) + first->unit);
    if (list.size() > kMostValues)
      throw Error(fmt::format("{}: \"{}\" has more than {} values", where, text, kMostValues));
  }
  list.push_back(std::to_string(last->number) + first->unit);
}

bool has_option(const Case& one, const std::string& name) {
  return std::ranges::any_of(one.options, [&](const std::string& option) {
    return option.substr(0, option.find('=')) == name;
  });
}

// Each of `vary`'s keys with one of its values, from `at` on.
void combine(const std::vector<VariedKey>& vary, size_t at, chip::ChangedChip& chip,
             std::vector<chip::ChangedChip>& list) {
  if (at == vary.size()) {
    if (list.size() == kMostCases)
      throw Error(fmt::format("--vary: more than {} combinations", kMostCases));
    list.push_back(chip);
    return;
  }
  for (const std::string& value : vary[at].values) {
    chip.changes.emplace_back(vary[at].key, value);
    combine(vary, at + 1, chip, list);
    chip.changes.pop_back();
  }
}

void check_chip(const Case& one) {
  for (const uint32_t cores : one.cores) {
    const std::string text = filled_in(one.chip, cores);
    const chip::ChipShape shape = chip::find_chip(text);
    if (cores > shape.cores.count)
      throw Error(fmt::format("{}: chip {} has {} cores, too few for --cores {}", one.label, text,
                              shape.cores.count, cores));
  }
}

}  // namespace

VariedKey varied_key(const std::string& where, const std::string& key, const std::string& values) {
  VariedKey varied{key, {}};
  for (const std::string& value : chip::split_at_commas(values)) {
    if (value.empty()) throw Error(fmt::format("{}: a value of {} is empty", where, key));
    if (value.find("..") != std::string::npos)
      add_range(where, value, varied.values);
    else
      varied.values.push_back(value);
  }
  for (auto it = varied.values.begin(); it != varied.values.end(); ++it)
    if (std::find(varied.values.begin(), it, *it) != it)
      throw Error(fmt::format("{}: {}={} is given twice", where, key, *it));
  return varied;
}

VariedKey parse_varied_key(const std::string& where, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Error(fmt::format("{} {}: expected KEY=VALUE[,VALUE]..., such as shared.size=64K..1024K",
                            where, text));
  return varied_key(where + " " + text, text.substr(0, equals), text.substr(equals + 1));
}

void put_on_chips(Study& study) {
  if (study.chips.empty()) {
    if (!study.vary.empty()) throw Error("--vary needs --chip CHIP, whose keys it varies");
    return;
  }
  for (auto it = study.vary.begin(); it != study.vary.end(); ++it)
    if (std::any_of(study.vary.begin(), it, [&](const VariedKey& k) { return k.key == it->key; }))
      throw Error(fmt::format("--vary {}: the key is given twice", it->key));
  std::vector<chip::ChangedChip> chips;
  for (const std::string& name : study.chips) {
    chip::ChangedChip chip = chip::parse_changed_chip(name);
    for (const VariedKey& varied : study.vary)
      if (std::ranges::find(chip.changes, varied.key, &chip::Change::first) != chip.changes.end())
        throw Error(fmt::format("--chip {}: --vary sets {}, too", name, varied.key));
    combine(study.vary, 0, chip, chips);
  }
  std::vector<Case> cases;
  for (const Case& base : study.cases) {
    for (const char* name : {"--chip", "--simulated-time"})
      if (has_option(base, name))
        throw Error(fmt::format("{}: --chip of the study and its option {} exclude each other",
                                base.label, name));
    for (const chip::ChangedChip& chip : chips) {
      Case one = base;
      one.family = base.label;
      one.chip = text_of(chip);
      // What is the same in all cases is not in their names.
      std::string name = study.chips.size() > 1 ? chip.name : "";
      const size_t own = chip.changes.size() - study.vary.size();
      for (size_t c = study.chips.size() > 1 ? 0 : own; c < chip.changes.size(); ++c)
        name += fmt::format("{}{}={}", name.empty() ? "" : ",", chip.changes[c].first,
                            chip.changes[c].second);
      for (size_t c = own; c < chip.changes.size(); ++c)
        one.chip_values.push_back(chip.changes[c].second);
      if (!name.empty()) one.label += "/" + name;
      one.options.insert(one.options.end(), {"--chip", one.chip});
      if (one.cores.empty()) one.cores = study.cores;
      check_chip(one);
      cases.push_back(std::move(one));
    }
  }
  study.cases = std::move(cases);
}

std::optional<KeyNumber> number_of(const std::string& value) {
  if (const auto q = quantity_of(value); q && !q->unit.empty())
    return KeyNumber{static_cast<double>(q->number << (q->unit[0] == 'K' ? 10 : 20)), true};
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return KeyNumber{number, false};
}

}  // namespace gpusim::sweep
