#include "host/chip/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"

namespace gpusim::host::chip {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> parts_of(const std::string& key) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= key.size();) {
    const size_t dot = std::min(key.find('.', at), key.size());
    parts.push_back(key.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

// One element of a list.
Json& element(Json& list, const std::string& part, const std::string& key) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error != std::errc{} || end != part.data() + part.size() || index >= list.size())
    throw Error(fmt::format("{}: \"{}\" is no number of the list's {} elements, from 0 on", key,
                            part, list.size()));
  return list[index];
}

}  // namespace

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (!is_quoted && (c == '[' || c == '{')) ++depth;
    if (!is_quoted && (c == ']' || c == '}')) --depth;
    if (c == ',' && depth <= 0 && !is_quoted)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

ChangedChip parse_changed_chip(const std::string& text) {
  std::error_code ignored;
  if (std::filesystem::exists(text, ignored)) return {text, {}};  // whatever is in its name
  const std::vector<std::string> parts = split_at_commas(text);
  ChangedChip chip{parts[0], {}};
  if (chip.name.empty() || (parts.size() == 1 && chip.name.find('=') != std::string::npos))
    throw Error(fmt::format("--chip {}: expected NAME or FILE, then KEY=VALUE if any", text));
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == parts[i].size())
      throw Error(fmt::format(
          "--chip {}: \"{}\" is no KEY=VALUE, such as memory.latency_cycles=200", text, parts[i]));
    Change change{parts[i].substr(0, equals), parts[i].substr(equals + 1)};
    if (std::ranges::find(chip.changes, change.first, &Change::first) != chip.changes.end())
      throw Error(fmt::format("--chip {}: {} is given twice", text, change.first));
    chip.changes.push_back(std::move(change));
  }
  return chip;
}

std::string text_of(const ChangedChip& chip) {
  std::string text = chip.name;
  for (const auto& [key, value] : chip.changes) text += fmt::format(",{}={}", key, value);
  return text;
}

void apply(const Change& change, Json& description) {
  const auto& [key, text] = change;
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) value = text;
  const std::vector<std::string> parts = parts_of(key);
  Json* at = &description;
  std::string so_far;
  for (const std::string& part : parts) {
    if (part.empty()) throw Error(fmt::format("\"{}\" is no key: a part of it is empty", key));
    const bool is_last = &part == &parts.back();
    if (at->is_array()) {
      at = &element(*at, part, key);
    } else if (!at->is_object()) {
      throw Error(fmt::format("there is no key \"{}\": \"{}\" is {}", key, so_far, at->dump()));
    } else if (is_last && value.is_null()) {
      if (at->erase(part) == 0)
        throw Error(fmt::format("{}=null: the description does not have that key", key));
      return;
    } else {
      at = &(*at)[part];
      if (!is_last && at->is_null()) *at = Json::object();
    }
    so_far += (so_far.empty() ? "" : ".") + part;
  }
  *at = std::move(value);
}

}  // namespace gpusim::host::chip
