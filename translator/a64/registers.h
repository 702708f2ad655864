// Canonical context slots of an AArch64 core, before a module's slots are renumbered.
#pragma once
#include "device_sim/uir/uop.h"

namespace gpusim::a64 {

inline constexpr Slot kX0 = 0;     // X0 .. X30 are 0 .. 30
inline constexpr Slot kLink = 30;  // X30
inline constexpr Slot kSp = 31;
inline constexpr Slot kZero = 32;     // always zero: XZR as a source
inline constexpr Slot kSink = 33;     // never read: XZR as a destination
inline constexpr Slot kNzcv = 34;     // N<<3 | Z<<2 | C<<1 | V
inline constexpr Slot kFpState = 35;  // FPCR << 32 | FPSR
inline constexpr Slot kTpidr = 36;    // TPIDR_EL0
inline constexpr Slot kCoreId = 37;   // TPIDRRO_EL0: core count << 32 | core number
inline constexpr Slot kMonitor = 38;  // address marked by a load-exclusive, or ~0; then its data:
inline constexpr Slot kMonitorLow = 39;
inline constexpr Slot kMonitorHigh = 40;
inline constexpr Slot kPstate = 41;    // DIT and SSBS, where MRS has them
inline constexpr Slot kRandom = 42;    // state of RNDR
inline constexpr Slot kFirstTemp = 43;
inline constexpr int kTempCount = 21;  // 43 .. 63
inline constexpr Slot kV0 = 64;        // Vn: low half at 64 + 2n, high half at 65 + 2n
inline constexpr int kSlotCount = 128;

// Register numbers as in encodings: 31 is the zero register, or the stack pointer where said so.
constexpr Slot x_src(uint32_t r) { return r == 31 ? kZero : static_cast<Slot>(r); }
constexpr Slot x_dst(uint32_t r) { return r == 31 ? kSink : static_cast<Slot>(r); }
constexpr Slot x_or_sp(uint32_t r) { return r == 31 ? kSp : static_cast<Slot>(r); }
constexpr Slot v_low(uint32_t r) { return static_cast<Slot>(kV0 + 2 * r); }
constexpr Slot v_high(uint32_t r) { return static_cast<Slot>(kV0 + 2 * r + 1); }

// The 16-bit truth table that conditional micro-ops want for an AArch64 condition code
// (Arm ARM, ConditionHolds): bit f says whether flags f = NZCV satisfy it.
constexpr uint16_t condition_mask(uint32_t cond) {
  uint32_t mask = 0;
  for (uint32_t f = 0; f < 16; ++f) {
    const bool n = f & 8, z = f & 4, c = f & 2, v = f & 1;
    bool holds = true;  // AL and NV
    switch (cond >> 1) {
      case 0:
        holds = z;
        break;
      case 1:
        holds = c;
        break;
      case 2:
        holds = n;
        break;
      case 3:
        holds = v;
        break;
      case 4:
        holds = c && !z;
        break;
      case 5:
        holds = n == v;
        break;
      case 6:
        holds = n == v && !z;
        break;
    }
    if ((cond & 1) && cond != 15) holds = !holds;
    mask |= static_cast<uint32_t>(holds) << f;
  }
  return static_cast<uint16_t>(mask);
}

}  // namespace gpusim::a64
