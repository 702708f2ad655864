// Truth tables over flags N<<3 | Z<<2 | C<<1 | V, as conditional micro-ops hold them in imm16:
// bit f says whether flags f satisfy the condition.
#pragma once
#include <cstdint>

namespace gpusim::conditions {

template <class F>
constexpr uint16_t table(F holds) {
  uint32_t mask = 0;
  for (uint32_t f = 0; f < 16; ++f)
    if (holds((f & 8) != 0, (f & 4) != 0, (f & 2) != 0, (f & 1) != 0)) mask |= 1u << f;
  return static_cast<uint16_t>(mask);
}

inline constexpr uint16_t kEq = table([](bool, bool z, bool, bool) { return z; });
inline constexpr uint16_t kNe = table([](bool, bool z, bool, bool) { return !z; });
inline constexpr uint16_t kHs = table([](bool, bool, bool c, bool) { return c; });
inline constexpr uint16_t kLo = table([](bool, bool, bool c, bool) { return !c; });
inline constexpr uint16_t kMi = table([](bool n, bool, bool, bool) { return n; });
inline constexpr uint16_t kPl = table([](bool n, bool, bool, bool) { return !n; });
inline constexpr uint16_t kHi = table([](bool, bool z, bool c, bool) { return c && !z; });
inline constexpr uint16_t kLs = table([](bool, bool z, bool c, bool) { return !c || z; });
inline constexpr uint16_t kGe = table([](bool n, bool, bool, bool v) { return n == v; });
inline constexpr uint16_t kLt = table([](bool n, bool, bool, bool v) { return n != v; });
inline constexpr uint16_t kGt = table([](bool n, bool z, bool, bool v) { return !z && n == v; });
inline constexpr uint16_t kLe = table([](bool n, bool z, bool, bool v) { return z || n != v; });

}  // namespace gpusim::conditions
