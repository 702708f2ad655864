// Canonical context slots of a RISC-V core, before a module's slots are renumbered.
#pragma once
#include "device_sim/uir/uop.h"

namespace gpusim::riscv {

inline constexpr Slot kZero = 0;  // x0 as a source: always zero. x1 .. x31 are 1 .. 31
inline constexpr Slot kRa = 1;
inline constexpr Slot kSp = 2;
inline constexpr Slot kGp = 3;
inline constexpr Slot kTp = 4;
inline constexpr Slot kT0 = 5;
inline constexpr Slot kFp = 8;
inline constexpr Slot kA0 = 10;
inline constexpr Slot kA7 = 17;
inline constexpr Slot kSink = 32;  // x0 as a destination: never read
inline constexpr Slot kF0 = 33;    // f0 .. f31 are 33 .. 64
inline constexpr Slot kFa0 = kF0 + 10;
inline constexpr Slot kFpState = 65;  // float_state.h
inline constexpr Slot kFrm = 66;      // frm as written, in the low 3 bits
inline constexpr Slot kCoreId = 67;   // core count << 32 | core number
inline constexpr Slot kMonitor = 68;  // address marked by a load-reserved, or ~0; then its data:
inline constexpr Slot kMonitorLow = 69;
inline constexpr Slot kMonitorHigh = 70;
inline constexpr Slot kFirstTemp = 71;
inline constexpr int kTempCount = 16;  // 71 .. 86
// vl, vtype, vstart, vcsr and v0 .. v31 (uir/vector.h); only in modules of programs with such.
inline constexpr Slot kVectorState = 87;
inline constexpr int kSlotCount = kVectorState + vector::kSlotCount;

// Register numbers as in encodings.
constexpr Slot x_src(uint32_t r) { return static_cast<Slot>(r); }
constexpr Slot x_dst(uint32_t r) { return r == 0 ? kSink : static_cast<Slot>(r); }
constexpr Slot vector_slot(vector::Slots s) { return static_cast<Slot>(kVectorState + s); }
constexpr Slot f_reg(uint32_t r) { return static_cast<Slot>(kF0 + r); }

}  // namespace gpusim::riscv
