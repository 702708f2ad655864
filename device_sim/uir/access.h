// What memory micro-ops access: the type in memory and how a loaded value fills its slot.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

enum class Extend : uint8_t { kZero, kSign64, kSign32 };

// How the address is formed from a, b and the immediate.
enum class AddressMode : uint8_t { kImmediate, kIndex, kIndex32 };

// What a row says; no bytes if it is neither a load nor a store.
struct AccessInfo {
  int size = 0;
  Extend extend = Extend::kZero;
  AddressMode mode = AddressMode::kImmediate;
  // Whether loaded values fit 32 bits.
  constexpr bool is_narrow() const { return size <= 4 && extend != Extend::kSign64; }
};
constexpr AccessInfo access_info(Op op) {
  const OpInfo& row = op_info(op);
  AccessInfo info;
  const uint32_t width = (row.traits & traits::kWidthMask) >> traits::kWidthShift;
  if (width != 0) info.size = 1 << (width - 1);
  if (row.traits & traits::kSign64) info.extend = Extend::kSign64;
  if (row.traits & traits::kSign32) info.extend = Extend::kSign32;
  if (row.shape == Shape::kLdX || row.shape == Shape::kStX) info.mode = AddressMode::kIndex;
  if (row.shape == Shape::kLdW || row.shape == Shape::kStW) info.mode = AddressMode::kIndex32;
  return info;
}

constexpr bool is_plain_access(Shape s) { return s >= Shape::kLdI && s <= Shape::kStW; }
static_assert([] {
  for (int i = 0; i < kOpCount; ++i)
    if (is_plain_access(kOpInfo[i].shape) != (access_info(static_cast<Op>(i)).size != 0)) return false;
  return true;
}(), "loads and stores, and no others, say how wide they are");

template <int bytes> struct AccessType;
template <> struct AccessType<1> { using Type = uint8_t; };
template <> struct AccessType<2> { using Type = uint16_t; };
template <> struct AccessType<4> { using Type = uint32_t; };
template <> struct AccessType<8> { using Type = uint64_t; };

template <Op op>
struct Access {
  using Type = typename AccessType<access_info(op).size>::Type;
  static constexpr Extend kExtend = access_info(op).extend;
  static constexpr AddressMode kMode = access_info(op).mode;
};

// A loaded value as its slot holds it.
template <Extend extend, class T>
GPUSIM_HD_INLINE uint64_t extend_loaded(T value) {
  constexpr int kShift = 64 - 8 * static_cast<int>(sizeof(T));
  if constexpr (extend == Extend::kZero) return value;
  const uint64_t x = static_cast<uint64_t>(
      static_cast<int64_t>(static_cast<uint64_t>(value) << kShift) >> kShift);
  return extend == Extend::kSign64 ? x : static_cast<uint32_t>(x);
}

template <AddressMode mode>
GPUSIM_HD_INLINE uint64_t access_address(uint64_t a, uint64_t b, uint64_t imm) {
  if constexpr (mode == AddressMode::kImmediate) return a + imm;
  if constexpr (mode == AddressMode::kIndex) return a + (b << (imm & 63));
  return a + (static_cast<uint64_t>(int64_t{static_cast<int32_t>(b)}) << (imm & 63));
}

}  // namespace gpusim
