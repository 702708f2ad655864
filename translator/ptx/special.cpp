#include "translator/ptx/special.h"

#include <array>
#include <utility>

namespace gpusim::ptx {

SpecialRegister special_register(std::string_view name) {
  using enum Special;
  static constexpr std::pair<std::string_view, SpecialRegister> kAll[] = {
      {"%tid.x", {kTidX}},
      {"%tid.y", {kTidY}},
      {"%tid.z", {kTidZ}},
      {"%ntid.x", {kNtidX}},
      {"%ntid.y", {kNtidY}},
      {"%ntid.z", {kNtidZ}},
      {"%ctaid.x", {kCtaidX}},
      {"%ctaid.y", {kCtaidY}},
      {"%ctaid.z", {kCtaidZ}},
      {"%nctaid.x", {kNctaidX}},
      {"%nctaid.y", {kNctaidY}},
      {"%nctaid.z", {kNctaidZ}},
      {"%laneid", {kLaneid}},
      {"%warpid", {kWarpid}},
      {"%nwarpid", {kNwarpid}},
      {"%lanemask_eq", {kLanemaskEq}},
      {"%lanemask_le", {kLanemaskLe}},
      {"%lanemask_lt", {kLanemaskLt}},
      {"%lanemask_ge", {kLanemaskGe}},
      {"%lanemask_gt", {kLanemaskGt}},
      {"WARP_SZ", {kWarpSize}},
      {"%smid", {kSmid}},
      {"%nsmid", {kNsmid}},
      {"%gridid", {kGridid, 64}},
      {"%dynamic_smem_size", {kDynamicSharedSize}},
      {"%total_smem_size", {kTotalSharedSize}},
      {"%reserved_smem_offset_1", {kReservedShared}},
      {"%clock", {kClock}},
      {"%clock_hi", {kClock, 32, true}},
      {"%clock64", {kClock, 64}},
      {"%globaltimer", {kClock, 64}},
      {"%globaltimer_lo", {kClock}},
      {"%globaltimer_hi", {kClock, 32, true}},
      {"%envreg1", {kWorkspace, 32, true}},
      {"%envreg2", {kWorkspace}},
      {"%cluster_ctaid.x", {kClusterCtaidXY}},
      {"%cluster_ctaid.y", {kClusterCtaidXY, 32, true}},
      {"%cluster_ctaid.z", {kClusterCtaidZRank}},
      {"%cluster_ctarank", {kClusterCtaidZRank, 32, true}},
      {"%cluster_nctaid.x", {kClusterNctaidXY}},
      {"%cluster_nctaid.y", {kClusterNctaidXY, 32, true}},
      {"%cluster_nctaid.z", {kClusterNctaidZCount}},
      {"%cluster_nctarank", {kClusterNctaidZCount, 32, true}},
      {"%clusterid.x", {kClusteridXY}},
      {"%clusterid.y", {kClusteridXY, 32, true}},
      {"%clusterid.z", {kClusteridZExplicit}},
      {"%is_explicit_cluster", {kClusteridZExplicit, 1, true}},
      {"%nclusterid.x", {kNclusteridXY}},
      {"%nclusterid.y", {kNclusteridXY, 32, true}},
      {"%nclusterid.z", {kNclusteridZ}},
  };
  for (const auto& [text, found] : kAll)
    if (text == name) return found;
  return {};
}

bool is_clock(std::string_view name) { return special_register(name).what == Special::kClock; }

}  // namespace gpusim::ptx
