// Static power of active SMs by instruction mix and active lanes (paper, sections 4.3 to 4.5
// and 4.7), and of idle SMs (4.6).
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "energy/units.h"

namespace gpusim::accelwattch {

using energy::Watts;

// The nine mixes of the paper, then those that its published code adds: SMs that only access
// memory, and everything else (the geometric mean of the categories).
enum class Mix {
  kIntAdd,
  kIntMul,
  kInt,
  kIntFp,
  kIntFpDp,
  kIntFpSfu,
  kIntFpTex,
  kIntFpTensor,
  kLight,
  kL1Only,
  kSharedOnly,
  kL2Only,
  kOther,
};
inline constexpr size_t kMixes = 13;
inline constexpr std::array<std::string_view, kMixes> kMixNames = {
    "int_add",       "int_mul", "int",     "int_fp",      "int_fp_dp", "int_fp_sfu", "int_fp_tex",
    "int_fp_tensor", "light",   "l1_only", "shared_only", "l2_only",   "other"};

std::string_view name(Mix mix);

// Which units a kernel uses at all.
struct UnitUse {
  bool int_add = false, int_mul = false, fp = false, dp = false, sfu = false, tex = false,
       tensor = false, l1 = false, shared = false, l2 = false;
};
Mix classify(const UnitUse& use);

enum class LaneForm { kLinear, kHalfWarp };

struct StaticCategory {
  Watts first_lane, added_lane;  // of the whole chip, all SMs active
  LaneForm form = LaneForm::kLinear;
};

// Equations 4 and 5: with 1 to 32 lanes active per warp, all SMs. With half-warps of 16 lanes, a
// warp of more than 16 lanes alternates between a full half and a partial one, and power falls
// behind lane 16. No active lanes count as one. Throws Error for lanes above 32.
Watts static_power_all_sms(const StaticCategory& category, double lanes);

// Equation 9 and the second term of 10.
Watts static_power(const StaticCategory& category, double lanes, double active_sms, double sms);

// Equation 4, and for half-warps its counterpart: 16 and 32 lanes take the same power, so the
// fifteen added lanes of a half make the difference.
StaticCategory make_category(Watts first_lane, Watts all_lanes, LaneForm form);

// The number of lanes at which `category` gives `power`; nullopt if it does not depend on lanes.
// For the linear form.
std::optional<double> lanes_of(const StaticCategory& category, Watts power, double active_sms,
                               double sms);

struct LanePoint {
  double lanes = 0;
  Watts power;
};
struct LaneFit {
  StaticCategory category;
  double linear_rms_percent = 0, half_warp_rms_percent = 0;  // of the points
};
// First lane and 32 lanes are taken from the points with 1 and 32 lanes, and the form is the one
// that the points between them agree with. Throws Error without those two.
LaneFit fit_lanes(std::span<const LanePoint> points);

// Equations 6 to 8: from measured power with all SMs active and with fewer.
struct IdlePoint {
  double active_sms = 0;
  Watts power;
};
// Of one workload: the mean over its points with idle SMs.
Watts idle_sm_power(std::span<const IdlePoint> points, double sms, Watts constant);
// Their geometric mean. Throws Error if one is not positive.
Watts idle_sm_power(std::span<const Watts> workloads);

}  // namespace gpusim::accelwattch
