// Quantities with units in JSON.
#pragma once
#include <string>

#include "device_sim/base/json_object.h"
#include "energy/units.h"

namespace gpusim::energy {

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
