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
  std::string text(const std::string& key) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;
  bool flag_or(const std::string& key, bool fallback) const;
  std::vector<std::string> texts(const std::string& key) const;  // none: empty
  double number(const std::string& key, double least = 0) const;
  double number_or(const std::string& key, double fallback, double least = 0) const;
  // Into what has a type already; numbers without a sign must be whole ones that fit.
  template <class T>
  void read(const std::string& key, T& value) const;
  // After all keys have been read that mean something. `hint` ends the message: " (docs/power.md
  // lists them)".
  void no_other_keys(const std::string& hint = "") const;

 private:
  const nlohmann::ordered_json* json_;
  std::string where_;
  [[noreturn]] void fail_kind(const std::string& key) const;

  mutable std::set<std::string> seen_;
};

template <class T>
void JsonObject::read(const std::string& key, T& value) const {
  const nlohmann::ordered_json& v = get(key);
  if constexpr (std::unsigned_integral<T> && !std::same_as<T, bool>)
    if (!v.is_number_unsigned() || v.get<uint64_t>() > std::numeric_limits<T>::max())
      fail_kind(key);
  try {
    v.get_to(value);
  } catch (const nlohmann::ordered_json::exception&) {
    fail_kind(key);
  }
}

}  // namespace gpusim
