// Longs and pointers in guests' structures: words of 8 or 4 bytes.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "host/linux/kernel.h"

namespace gpusim::host {

/// A structure of longs, cut to the guest's words. False is EFAULT.
template <size_t N>
bool store_longs(const Call& call, uint64_t address, const std::array<int64_t, N>& values) {
  if (call.word_bytes == 8) return call.memory.store(address, values);
  std::array<int32_t, N> narrow;
  std::ranges::transform(values, narrow.begin(),
                         [](int64_t v) { return static_cast<int32_t>(v); });
  return call.memory.store(address, narrow);
}

/// The same, with their signs extended.
template <size_t N>
bool load_longs(const Call& call, uint64_t address, std::array<int64_t, N>* values) {
  if (call.word_bytes == 8) return call.memory.load(address, values);
  std::array<int32_t, N> narrow;
  if (!call.memory.load(address, &narrow)) return false;
  std::ranges::copy(narrow, values->begin());
  return true;
}

}  // namespace gpusim::host
