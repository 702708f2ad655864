#include "energy/power/json_reader.h"

#include <fmt/format.h>

#include "device_sim/base/nearest_name.h"
#include "energy/error.h"

namespace gpusim::power {

using Json = nlohmann::json;

JsonReader::JsonReader(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) throw energy::Error(where_ + ": an object is expected");
}

const Json* JsonReader::find(const std::string& key) {
  asked_.insert(key);
  const auto at = object_.find(key);
  return at == object_.end() ? nullptr : &*at;
}

std::optional<double> JsonReader::number(const std::string& key, double least) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(key, "a number is expected");
  const double n = value->get<double>();
  if (!(n >= least)) fail(key, fmt::format("{} is less than {}", n, least));
  return n;
}

double JsonReader::number(const std::string& key, double otherwise, double least) {
  return number(key, least).value_or(otherwise);
}

std::string JsonReader::text(const std::string& key, const std::string& otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) fail(key, "a text is expected");
  return value->get<std::string>();
}

void JsonReader::seconds(const std::string& key, Seconds& to, double least) {
  to = Seconds(number(key, to.value(), least));
}

void JsonReader::watts(const std::string& key, Watts& to, double least) {
  to = Watts(number(key, to.value(), least));
}

void JsonReader::boolean(const std::string& key, bool& to) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) fail(key, "true or false is expected");
  to = value->get<bool>();
}

void JsonReader::knots(const std::string& key, std::vector<Knot>& to) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_array() || value->empty()) fail(key, "a list of [seconds, watts] is expected");
  to.clear();
  for (const Json& pair : *value) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number())
      fail(key, "a list of [seconds, watts] is expected");
    const Knot k{Seconds(pair[0].get<double>()), Watts(pair[1].get<double>())};
    if (k.time < Seconds(0) || k.power < Watts(0)) fail(key, "times and powers are not negative");
    if (!to.empty() && k.time < to.back().time)
      fail(key,
           fmt::format("time falls from {} s to {} s", to.back().time.value(), k.time.value()));
    to.push_back(k);
  }
}

std::vector<std::string> JsonReader::texts(const std::string& key) {
  std::vector<std::string> list;
  const Json* value = find(key);
  if (value == nullptr) return list;
  if (!value->is_array()) fail(key, "a list of texts is expected");
  for (const Json& text : *value) {
    if (!text.is_string()) fail(key, "a list of texts is expected");
    list.push_back(text.get<std::string>());
  }
  return list;
}

void JsonReader::fail(const std::string& key, const std::string& what) const {
  throw energy::Error(fmt::format("{}: \"{}\": {}", where_, key, what));
}

void JsonReader::finish() const {
  for (const auto& [key, value] : object_.items())
    if (!asked_.contains(key))
      fail(key, "there is no such key" + did_you_mean(key, asked_) + " (docs/power.md lists them)");
}

Json parse_json(const std::string& text, const std::string& origin) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw energy::Error(fmt::format("{}: not JSON, at byte {}", origin, error.byte));
  }
}

}  // namespace gpusim::power
