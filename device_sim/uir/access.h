// What memory micro-ops access: the type in memory and how a loaded value fills its slot.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

enum class Extend : uint8_t { kZero, kSign64, kSign32 };

template <Op op> struct Access;  // Type, kExtend (loads), kAddress

// How the address is formed from a, b and the immediate.
enum class AddressMode : uint8_t { kImmediate, kIndex, kIndex32 };

#define GPUSIM_ACCESS(op, type, extend, mode)                     \
  template <> struct Access<Op::op> {                             \
    using Type = type;                                            \
    static constexpr Extend kExtend = Extend::extend;             \
    static constexpr AddressMode kMode = AddressMode::mode;       \
  };
#define GPUSIM_LOAD_ACCESS(name, type, extend)          \
  GPUSIM_ACCESS(name, type, extend, kImmediate)         \
  GPUSIM_ACCESS(name##_x, type, extend, kIndex)         \
  GPUSIM_ACCESS(name##_w, type, extend, kIndex32)
GPUSIM_LOAD_ACCESS(ldu8, uint8_t, kZero)
GPUSIM_LOAD_ACCESS(ldu16, uint16_t, kZero)
GPUSIM_LOAD_ACCESS(ldu32, uint32_t, kZero)
GPUSIM_LOAD_ACCESS(ld64, uint64_t, kZero)
GPUSIM_LOAD_ACCESS(lds8x, uint8_t, kSign64)
GPUSIM_LOAD_ACCESS(lds16x, uint16_t, kSign64)
GPUSIM_LOAD_ACCESS(lds32x, uint32_t, kSign64)
GPUSIM_LOAD_ACCESS(lds8w, uint8_t, kSign32)
GPUSIM_LOAD_ACCESS(lds16w, uint16_t, kSign32)
GPUSIM_LOAD_ACCESS(st8, uint8_t, kZero)
GPUSIM_LOAD_ACCESS(st16, uint16_t, kZero)
GPUSIM_LOAD_ACCESS(st32, uint32_t, kZero)
GPUSIM_LOAD_ACCESS(st64, uint64_t, kZero)
#undef GPUSIM_LOAD_ACCESS
#undef GPUSIM_ACCESS

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

// The same of any micro-op; no bytes if it is neither a load nor a store.
struct AccessInfo {
  int size = 0;
  Extend extend = Extend::kZero;
  AddressMode mode = AddressMode::kImmediate;
  // Whether loaded values fit 32 bits.
  bool is_narrow() const { return size <= 4 && extend != Extend::kSign64; }
};
inline AccessInfo access_info(Op op) {
  switch (op) {
#define GPUSIM_INFO(name) \
  case Op::name:          \
    return {sizeof(Access<Op::name>::Type), Access<Op::name>::kExtend, Access<Op::name>::kMode};
#define GPUSIM_INFOS(name) GPUSIM_INFO(name) GPUSIM_INFO(name##_x) GPUSIM_INFO(name##_w)
    GPUSIM_INFOS(ldu8) GPUSIM_INFOS(ldu16) GPUSIM_INFOS(ldu32) GPUSIM_INFOS(ld64)
    GPUSIM_INFOS(lds8x) GPUSIM_INFOS(lds16x) GPUSIM_INFOS(lds32x) GPUSIM_INFOS(lds8w)
    GPUSIM_INFOS(lds16w) GPUSIM_INFOS(st8) GPUSIM_INFOS(st16) GPUSIM_INFOS(st32)
    GPUSIM_INFOS(st64)
#undef GPUSIM_INFOS
#undef GPUSIM_INFO
    default: return {};
  }
}

}  // namespace gpusim
