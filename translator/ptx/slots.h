// Context slots of a kernel before they are renumbered: what is fixed, and where registers begin.
#pragma once
#include "device_sim/uir/softfloat/format.h"
#include "device_sim/uir/uop.h"
#include "translator/ptx/special.h"

namespace gpusim::ptx {

inline constexpr Slot kZeroSlot = 0, kOneSlot = 1;

// One state word of floating point per mode, never changed: all flags are set already. The first
// four are the rounding modes in the order of softfloat::Rounding; behind them the same with
// flushing.
inline constexpr Slot kFpSlots = 2;
inline constexpr int kFpSlotCount = 8;
constexpr Slot fp_slot(softfloat::Rounding mode, bool flushes) {
  return static_cast<Slot>(kFpSlots + static_cast<int>(mode) + (flushes ? 4 : 0));
}
constexpr uint64_t fp_state(int number) {
  return softfloat::kFpFullNan | softfloat::kFpsrIoc | softfloat::kFpsrDzc | softfloat::kFpsrOfc |
         softfloat::kFpsrUfc | softfloat::kFpsrIxc | softfloat::kFpsrIdc |
         uint64_t(number & 3) << softfloat::kFpcrRmodeShift |
         (number >= 4 ? softfloat::kFpcrFz | softfloat::kFpcrFz16 : 0);
}

// kNone has no slot.
inline constexpr Slot kSpecialSlots = 9;
constexpr Slot special_slot(Special s) {
  return static_cast<Slot>(kSpecialSlots + static_cast<int>(s));
}
static_assert(kSpecialSlots + static_cast<int>(Special::kCount) <= 49);

// The address of the launch's parameters.
inline constexpr Slot kParamBase = 49;
// Arguments and result of what the host does for a thread.
inline constexpr Slot kCallSlots = 50;
inline constexpr int kCallSlotCount = 4;
// CC.CF: 0 or 1.
inline constexpr Slot kCarrySlot = 54;
inline constexpr Slot kFirstTemp = 55;
inline constexpr int kTempCount = 16;
inline constexpr Slot kFirstRegister = 71;
inline constexpr int kMostRegisters = 256 - kFirstRegister;
// Constants have what registers leave, but not more than these.
inline constexpr int kMostConstants = 32;

}  // namespace gpusim::ptx
