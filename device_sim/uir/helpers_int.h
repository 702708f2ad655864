// Helpers on integers (helpers.def).
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim::helpers {

// A bit-reflected CRC of `bytes` bytes of `value`, without the usual inversions: what CRC32 of
// AArch64 and of SSE4.2 compute. By nibbles: no table in memory on a device.
template <uint32_t kPolynomial>
struct ReflectedCrc {
  static constexpr uint32_t step(uint32_t crc, int bits) {
    for (int i = 0; i < bits; ++i) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    return crc;
  }
  GPUSIM_HD static uint64_t run(uint64_t acc, uint64_t value, uint64_t bytes) {
    uint32_t crc = static_cast<uint32_t>(acc);
    for (uint64_t i = 0; i < 8 && i < bytes; ++i) {
      crc ^= static_cast<uint32_t>(value >> (8 * i)) & 0xff;
      crc = (crc >> 4) ^ by_nibble(crc & 15);
      crc = (crc >> 4) ^ by_nibble(crc & 15);
    }
    return crc;
  }
  // The contribution of each of the four bits, masked in.
  GPUSIM_HD_INLINE static uint32_t by_nibble(uint32_t n) {
    constexpr uint32_t k0 = step(1, 4), k1 = step(2, 4), k2 = step(4, 4), k3 = step(8, 4);
    return (k0 & (0u - (n & 1))) ^ (k1 & (0u - (n >> 1 & 1))) ^ (k2 & (0u - (n >> 2 & 1))) ^
           (k3 & (0u - (n >> 3 & 1)));
  }
};

GPUSIM_HD inline uint64_t crc32(uint64_t acc, uint64_t value, const Uop& u) {
  return ReflectedCrc<0xedb88320>::run(acc, value, u.imm);
}
GPUSIM_HD inline uint64_t crc32c(uint64_t acc, uint64_t value, const Uop& u) {
  return ReflectedCrc<0x82f63b78>::run(acc, value, u.imm);
}

}  // namespace gpusim::helpers
