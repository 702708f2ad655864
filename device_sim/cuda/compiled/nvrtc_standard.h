// NVRTC has no standard library. It gets this text under the names of the headers that gpusim's own
// include (nvrtc.cpp): integers and a few functions that device code uses, and of the host's types
// that stand beside it as much as their declarations need.
#pragma once

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;  // as the host's
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using intptr_t = long;
using uintptr_t = unsigned long;
using size_t = decltype(sizeof 0);
using ptrdiff_t = long;

// Builtins of GCC, also for constants.
constexpr int __builtin_clzll(unsigned long long x) {
  if (!__builtin_is_constant_evaluated()) return __clzll(static_cast<long long>(x));
  int n = 0;
  for (; n < 64 && (x >> (63 - n) & 1) == 0; ++n) {
  }
  return n;
}
constexpr int __builtin_popcount(unsigned x) {
  if (!__builtin_is_constant_evaluated()) return __popc(x);
  int n = 0;
  for (; x != 0; x &= x - 1) ++n;
  return n;
}
inline void* __builtin_memcpy(void* to, const void* from, size_t size) {
  return memcpy(to, from, size);
}

namespace std {

using ::memcpy;
using ::memset;
using ::size_t;

template <class T>
struct make_signed {
  using type = T;
};
template <>
struct make_signed<uint8_t> {
  using type = int8_t;
};
template <>
struct make_signed<uint16_t> {
  using type = int16_t;
};
template <>
struct make_signed<uint32_t> {
  using type = int32_t;
};
template <>
struct make_signed<uint64_t> {
  using type = int64_t;
};
template <class T>
using make_signed_t = typename make_signed<T>::type;

constexpr int countr_zero(unsigned x) { return x == 0 ? 32 : __builtin_popcount((x & -x) - 1); }

template <class T, size_t n>
struct array {
  T values[n];
  constexpr T& operator[](size_t i) { return values[i]; }
  constexpr const T& operator[](size_t i) const { return values[i]; }
  constexpr size_t size() const { return n; }
  T* begin() { return values; }
  T* end() { return values + n; }
  const T* begin() const { return values; }
  const T* end() const { return values + n; }
};
template <class T>
struct span {
  T* begin() const;
  T* end() const;
};
template <class T>
struct vector {
  size_t size() const;
  bool empty() const;
  const T& operator[](size_t i) const;
  bool operator==(const vector&) const;
};
struct string {
  size_t rfind(char c) const;
  string substr(size_t first) const;
  bool operator==(const string&) const;
};
template <class T>
struct unique_ptr {};

template <class T, class U>
T exchange(T& x, U&& value) {
  T old = x;
  x = value;
  return old;
}
template <class T>
const T& as_const(T& x) {
  return x;
}

}  // namespace std
