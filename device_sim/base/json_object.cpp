#include "device_sim/base/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "device_sim/base/error.h"
#include "device_sim/base/nearest_name.h"

namespace gpusim {

using Json = nlohmann::ordered_json;

namespace {

// "line 3, column 5" of a byte that is counted from 1; behind the last one the text's end is meant.
std::string place_in(const std::string& text, size_t byte) {
  const std::string_view before = std::string_view(text).substr(0, byte == 0 ? 0 : byte - 1);
  const size_t line_break = before.rfind('\n');
  const size_t line_begin = line_break == std::string_view::npos ? 0 : line_break + 1;
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                     before.size() - line_begin + 1);
}

}  // namespace

Json parse_json(const std::string& text, const std::string& origin) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(fmt::format("{}: not JSON, at {}", origin, place_in(text, error.byte)));
  } catch (const Json::out_of_range&) {
    throw Error(origin + ": a number in it is too large");
  }
}

JsonObject::JsonObject(const Json& json, std::string where)
    : json_(&json), where_(std::move(where)) {
  if (!json.is_object()) fail("an object is expected");
}

void JsonObject::fail(const std::string& what) const { throw Error(where_ + ": " + what); }

bool JsonObject::has(const std::string& key) const {
  seen_.insert(key);
  return json_->contains(key);
}

const Json& JsonObject::get(const std::string& key) const {
  if (!has(key)) fail(fmt::format("\"{}\" is missing", key));
  return (*json_)[key];
}

std::vector<JsonObject> JsonObject::objects(const std::string& key) const {
  const Json& list = get(key);
  if (!list.is_array()) fail_kind(key);
  std::vector<JsonObject> objects;
  for (const Json& one : list)
    objects.emplace_back(one, fmt::format("{}[{}]", at(key), objects.size()));
  return objects;
}

std::string JsonObject::text(const std::string& key) const {
  const Json& v = get(key);
  if (!v.is_string() || v.get_ref<const std::string&>().empty())
    fail(fmt::format("\"{}\" must be a text", key));
  return v.get<std::string>();
}

std::string JsonObject::text_or(const std::string& key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

bool JsonObject::flag_or(const std::string& key, bool fallback) const {
  if (!has(key)) return fallback;
  if (!get(key).is_boolean()) fail(fmt::format("\"{}\" must be true or false", key));
  return get(key).get<bool>();
}

std::vector<std::string> JsonObject::texts(const std::string& key) const {
  std::vector<std::string> list;
  if (!has(key)) return list;
  if (!get(key).is_array()) fail(fmt::format("\"{}\" must be a list of texts", key));
  for (const Json& v : get(key)) {
    if (!v.is_string()) fail(fmt::format("\"{}\" must be a list of texts", key));
    list.push_back(v.get<std::string>());
  }
  return list;
}

double JsonObject::number(const std::string& key, double least) const {
  const Json& v = get(key);
  if (!v.is_number()) fail(fmt::format("\"{}\" must be a number", key));
  const double n = v.get<double>();
  if (!std::isfinite(n) || n < least)
    fail(fmt::format("\"{}\" is {}; it must be finite and {}", key, n,
                     least == 0 ? "not negative" : fmt::format("not less than {}", least)));
  return n;
}

double JsonObject::number_or(const std::string& key, double fallback, double least) const {
  return has(key) ? number(key, least) : fallback;
}

void JsonObject::fail_kind(const std::string& key) const {
  fail(fmt::format("\"{}\" cannot be {}", key, get(key).dump(-1, ' ', true).substr(0, 40)));
}

std::string JsonObject::known_keys() const {
  std::string text;
  for (const std::string& key : seen_) text += (text.empty() ? "" : ", ") + key;
  return text;
}

void JsonObject::no_other_keys(const std::string& hint) const {
  for (const auto& item : json_->items())
    if (!seen_.contains(item.key()))
      fail(
          fmt::format("unknown key \"{}\"{}{}", item.key(), did_you_mean(item.key(), seen_), hint));
}

}  // namespace gpusim
