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
  kCount,
};

struct SpecialRegister {
  Special what = Special::kNone;
  int bits = 32;
};

SpecialRegister special_register(std::string_view name);

}  // namespace gpusim::ptx
