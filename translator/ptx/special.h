// Special registers (PTX ISA, "Special Registers").
#pragma once
#include <cstdint>
#include <string_view>

namespace gpusim::ptx {

enum class Special : uint8_t {
  kNone,
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kWarpSize,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kZero,
  kDynamicSharedSize,
  kTotalSharedSize,
  kReservedShared,
  kClock,      // instructions of the thread, from the launch's beginning in the device's time on
  kWorkspace,  // address of what the CTAs of a cooperative grid share; 0: of no such grid
  // Of clusters, two in a slot: the second in the upper half.
  kClusterCtaidXY,
  kClusterCtaidZRank,
  kClusterNctaidXY,
  kClusterNctaidZCount,
  kClusteridXY,
  kClusteridZExplicit,
  kNclusteridXY,
  kNclusteridZ,
  kStackTop,  // alloca's stack pointer: a thread changes it
  kCount,
};

struct SpecialRegister {
  Special what = Special::kNone;
  int bits = 32;         // 1: a predicate
  bool is_high = false;  // the upper 32 bits of its slot
};

SpecialRegister special_register(std::string_view name);

/// Whether reading it tells how far the thread is.
bool is_clock(std::string_view name);

}  // namespace gpusim::ptx
