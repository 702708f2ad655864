// Checked reading of JSON objects: quantities with units, and no key that nobody asked for.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "device_sim/base/nearest_name.h"
#include "energy/error.h"
#include "energy/units.h"

namespace gpusim::energy {

// One object of a file. Messages begin with where it is: "fermi.json: measurements.add".
class JsonObject {
 public:
  JsonObject(const nlohmann::ordered_json& json, std::string where)
      : json_(&json), where_(std::move(where)) {
    if (!json.is_object()) fail("an object is expected");
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error(where_ + ": " + what); }
  const std::string& where() const { return where_; }
  std::string at(const std::string& key) const { return where_ + "." + key; }

  bool has(const std::string& key) const {
    seen_.insert(key);
    return json_->contains(key);
  }
  const nlohmann::ordered_json& get(const std::string& key) const {
    if (!has(key)) fail(fmt::format("\"{}\" is missing", key));
    return (*json_)[key];
  }
  JsonObject object(const std::string& key) const { return {get(key), at(key)}; }
  std::string text(const std::string& key) const {
    const auto& v = get(key);
    if (!v.is_string() || v.get_ref<const std::string&>().empty())
      fail(fmt::format("\"{}\" must be a text", key));
    return v.get<std::string>();
  }
  std::string text_or(const std::string& key, const std::string& fallback) const {
    return has(key) ? text(key) : fallback;
  }
  bool flag(const std::string& key) const {
    if (!has(key)) return false;
    if (!get(key).is_boolean()) fail(fmt::format("\"{}\" must be true or false", key));
    return get(key).get<bool>();
  }
  std::vector<std::string> texts(const std::string& key) const {
    std::vector<std::string> list;
    if (!has(key)) return list;
    if (!get(key).is_array()) fail(fmt::format("\"{}\" must be a list of texts", key));
    for (const auto& v : get(key)) {
      if (!v.is_string()) fail(fmt::format("\"{}\" must be a list of texts", key));
      list.push_back(v.get<std::string>());
    }
    return list;
  }
  double number(const std::string& key) const {
    const auto& v = get(key);
    if (!v.is_number()) fail(fmt::format("\"{}\" must be a number", key));
    const double n = v.get<double>();
    if (!std::isfinite(n) || n < 0)
      fail(fmt::format("\"{}\" is {}; it must be finite and not negative", key, n));
    return n;
  }
  // After all keys have been read that mean something.
  void no_other_keys() const {
    for (const auto& item : json_->items())
      if (!seen_.contains(item.key()))
        fail(fmt::format("unknown key \"{}\"{}", item.key(), did_you_mean(item.key(), seen_)));
  }
  const nlohmann::ordered_json& json() const { return *json_; }

 private:
  const nlohmann::ordered_json* json_;
  std::string where_;
  mutable std::set<std::string> seen_;
};

// What units a quantity may have; throws if `unit` is another kind's.
template <class T>
struct UnitNames;
double unit_scale(const char* kind, const std::string& unit, const std::string& where);
template <>
struct UnitNames<Joules> {
  static constexpr const char* kKind = "energy";
};
template <>
struct UnitNames<Watts> {
  static constexpr const char* kKind = "power";
};
template <>
struct UnitNames<Seconds> {
  static constexpr const char* kKind = "time";
};
template <>
struct UnitNames<Hertz> {
  static constexpr const char* kKind = "frequency";
};
template <>
struct UnitNames<Bytes> {
  static constexpr const char* kKind = "size";
};
template <>
struct UnitNames<BytesPerSecond> {
  static constexpr const char* kKind = "bandwidth";
};

template <class T>
T scaled(double number, const std::string& unit, const std::string& where) {
  return T(number * unit_scale(UnitNames<T>::kKind, unit, where));
}
// {"value": 10, "unit": "s"}
template <class T>
T quantity(const JsonObject& o) {
  return scaled<T>(o.number("value"), o.text("unit"), o.where());
}

}  // namespace gpusim::energy
