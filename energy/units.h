// Physical quantities as types: a joule cannot be added to a watt, and a watt times a second is a
// joule. Values are kept in SI units.
#pragma once
#include <cmath>
#include <compare>

namespace gpusim::energy {

// Exponents of joule, second and byte.
template <int J, int S, int B>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double in_si) : value_(in_si) {}
  constexpr double value() const { return value_; }  // in SI units

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const { return Quantity(value_ + o.value_); }
  constexpr Quantity operator-(Quantity o) const { return Quantity(value_ - o.value_); }
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity operator*(double n) const { return Quantity(value_ * n); }
  constexpr Quantity operator/(double n) const { return Quantity(value_ / n); }
  friend constexpr Quantity operator*(double n, Quantity q) { return q * n; }
  constexpr Quantity& operator+=(Quantity o) { return *this = *this + o; }
  constexpr Quantity& operator-=(Quantity o) { return *this = *this - o; }
  bool is_finite() const { return std::isfinite(value_); }

 private:
  double value_ = 0;
};

template <int J1, int S1, int B1, int J2, int S2, int B2>
constexpr auto operator*(Quantity<J1, S1, B1> a, Quantity<J2, S2, B2> b) {
  if constexpr (J1 + J2 == 0 && S1 + S2 == 0 && B1 + B2 == 0)
    return a.value() * b.value();
  else
    return Quantity<J1 + J2, S1 + S2, B1 + B2>(a.value() * b.value());
}
template <int J1, int S1, int B1, int J2, int S2, int B2>
constexpr auto operator/(Quantity<J1, S1, B1> a, Quantity<J2, S2, B2> b) {
  if constexpr (J1 == J2 && S1 == S2 && B1 == B2)
    return a.value() / b.value();
  else
    return Quantity<J1 - J2, S1 - S2, B1 - B2>(a.value() / b.value());
}

template <int J, int S, int B>
constexpr auto operator/(double n, Quantity<J, S, B> q) {
  return Quantity<-J, -S, -B>(n / q.value());
}

using Joules = Quantity<1, 0, 0>;
using Watts = Quantity<1, -1, 0>;
using Seconds = Quantity<0, 1, 0>;
using Hertz = Quantity<0, -1, 0>;
using Bytes = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<0, -1, 1>;

constexpr Joules picojoules(double n) { return Joules(n * 1e-12); }

}  // namespace gpusim::energy
