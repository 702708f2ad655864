#include "device_sim/simd/lane_keys.h"

#include "device_sim/simd/group.h"
#include "device_sim/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device_sim/simd/lane_keys.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Keys = hn::ScalableTag<uint64_t>;
constexpr uint32_t kKeys = HWY_LANES(uint64_t);

// The lanes of `mask` from lane `first` on, as a mask of a vector.
HWY_INLINE hn::Mask<Keys> lanes_of(uint64_t mask, uint32_t first) {
  const uint8_t bytes[8] = {static_cast<uint8_t>(mask >> first)};
  return hn::LoadMaskBits(Keys(), bytes);
}

uint64_t least_key_here(const uint64_t* keys, uint64_t mask) {
  const auto none = hn::Set(Keys(), ~uint64_t{0});
  auto best = none;
  for (uint32_t lane = 0; lane < simd::kMaxLanes; lane += kKeys)
    best = hn::Min(best, hn::IfThenElse(lanes_of(mask, lane), hn::Load(Keys(), keys + lane), none));
  return hn::GetLane(hn::MinOfLanes(Keys(), best));
}

uint64_t lanes_with_rank_here(const uint64_t* keys, uint32_t rank) {
  const auto wanted = hn::Set(Keys(), uint64_t{rank}), low = hn::Set(Keys(), uint64_t{0xffffffff});
  uint64_t mask = 0;
  for (uint32_t lane = 0; lane < simd::kMaxLanes; lane += kKeys) {
    const auto ranks = hn::And(hn::Load(Keys(), keys + lane), low);
    uint8_t bytes[8] = {};
    hn::StoreMaskBits(Keys(), hn::Eq(ranks, wanted), bytes);
    mask |= uint64_t{bytes[0]} << lane;
  }
  return mask;
}

void fill_keys_here(uint64_t* keys, uint64_t mask, uint64_t key) {
  const auto all = hn::Set(Keys(), key);
  for (uint32_t lane = 0; lane < simd::kMaxLanes; lane += kKeys)
    hn::BlendedStore(all, lanes_of(mask, lane), Keys(), keys + lane);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "device_sim/simd/dispatch.h"

namespace gpusim::simd {
uint64_t least_key(const uint64_t* keys, uint64_t mask) {
  return GPUSIM_ON_TARGET(least_key_here)(keys, mask);
}
uint64_t lanes_with_rank(const uint64_t* keys, uint32_t rank) {
  return GPUSIM_ON_TARGET(lanes_with_rank_here)(keys, rank);
}
void fill_keys(uint64_t* keys, uint64_t mask, uint64_t key) {
  GPUSIM_ON_TARGET(fill_keys_here)(keys, mask, key);
}
}  // namespace gpusim::simd
#endif
