// The statistics as a table, for programs that take CSV: a row for each number and word.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/stats.h"

namespace gpusim::host {
namespace {

using Json = nlohmann::ordered_json;

// RFC 4180.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : value.dump();
}

class Rows {
 public:
  std::string text = "part,name,quantity,value\r\n";

  // `quantity`: where in the part, with points between; empty at first.
  void add(const std::string& part, const std::string& name, const std::string& quantity,
           const Json& value) {
    const std::string begin = quantity.empty() ? "" : quantity + ".";
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items()) add(part, name, begin + key, inner);
    } else if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i)
        add(part, name, begin + std::to_string(i), value[i]);
    } else {
      text += fmt::format("{},{},{},{}\r\n", field(part), field(name), field(quantity),
                          field(value_text(value)));
    }
  }
};

// Of an element of a list: what tells it from the others is its first member, or else its number.
std::string name_of(const Json& element, size_t number) {
  if (!element.is_object() || element.empty()) return std::to_string(number);
  for (const char* key : {"core", "function", "line", "target"})
    if (element.begin().key() == key) return value_text(*element.begin());
  return std::to_string(number);
}

}  // namespace

std::string stats_csv(const Json& stats) {
  Rows rows;
  for (const auto& [key, value] : stats.items()) {
    const bool is_list = value.is_array() && !value.empty() && value[0].is_object();
    if (!is_list) {
      rows.add("run", "", key, value);
      continue;
    }
    for (size_t i = 0; i < value.size(); ++i) rows.add(key, name_of(value[i], i), "", value[i]);
  }
  return std::move(rows.text);
}

}  // namespace gpusim::host
