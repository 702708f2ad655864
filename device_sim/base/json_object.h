// Checked reading of JSON: messages that name what is wrong and where, and no key that nobody
// knows.
#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace gpusim {

// Throws Error that names `origin`.
nlohmann::ordered_json parse_json(const std::string& text, const std::string& origin);

// One object of a file, which must outlive this. Messages begin with where it is:
// "fermi.json.measurements.add".
class JsonObject {
 public:
  JsonObject(const nlohmann::ordered_json& json, std::string where);

  [[noreturn]] void fail(const std::string& what) const;
  const std::string& where() const { return where_; }
  std::string at(const std::string& key) const { return where_ + "." + key; }
  const nlohmann::ordered_json& json() const { return *json_; }

  bool has(const std::string& key) const;
  // The others throw where the value is of another kind; those without a fallback, where there is
  // none.
  const nlohmann::ordered_json& get(const std::string& key) const;
  JsonObject object(const std::string& key) const { return {get(key), at(key)}; }
  std::vector<JsonObject> objects(const std::string& key) const;  // of a list
  std::string text(const std::string& key) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;
  bool flag_or(const std::string& key, bool fallback) const;
  std::vector<std::string> texts(const std::string& key) const;  // none: empty
  double number(const std::string& key, double least = 0) const;
  double number_or(const std::string& key, double fallback, double least = 0) const;
  // Into what has a type already, also a list; numbers without a sign must be whole ones that fit.
  template <class T>
  void read(const std::string& key, T& value) const;
  // All that were looked for so far, with commas between.
  std::string known_keys() const;
  // After all keys have been read that mean something. `hint` ends the message: " (docs/power.md
  // lists them)".
  void no_other_keys(const std::string& hint = "") const;

 private:
  const nlohmann::ordered_json* json_;
  std::string where_;
  [[noreturn]] void fail_kind(const std::string& key) const;
  // False if the value is of another kind; exceptions of the library's for some kinds.
  template <class T>
  static bool take(const nlohmann::ordered_json& json, T& value);
  template <class T>
  static bool take(const nlohmann::ordered_json& json, std::vector<T>& list);

  mutable std::set<std::string> seen_;
};

template <class T>
bool JsonObject::take(const nlohmann::ordered_json& json, T& value) {
  if constexpr (std::unsigned_integral<T> && !std::same_as<T, bool>)
    if (!json.is_number_unsigned() || json.get<uint64_t>() > std::numeric_limits<T>::max())
      return false;
  json.get_to(value);
  return true;
}

template <class T>
bool JsonObject::take(const nlohmann::ordered_json& json, std::vector<T>& list) {
  list.clear();
  for (const nlohmann::ordered_json& one : json)
    if (!take(one, list.emplace_back())) return false;
  return json.is_array();
}

template <class T>
void JsonObject::read(const std::string& key, T& value) const {
  try {
    if (!take(get(key), value)) fail_kind(key);
  } catch (const nlohmann::ordered_json::exception&) {
    fail_kind(key);
  }
}

}  // namespace gpusim
