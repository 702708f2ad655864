// Meetings of lanes: votes, shuffles, reductions and barriers.
#include <bit>
#include <cstdio>

#include "emulated/preemption.h"

#include "standin/lanes.h"
#include "standin/places.h"
#include "standin/random.h"

namespace cuda_emulated {
namespace {

const char* name_of(Meeting kind) {
  static constexpr const char* kNames[] = {
      "__syncwarp", "__ballot_sync", "__any_sync", "__all_sync", "__match_any_sync",
      "__match_all_sync", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync",
      "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync", "__reduce_max_sync",
      "__reduce_add_sync", "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync",
      "__activemask"};
  return kNames[static_cast<uint32_t>(kind)];
}

std::string hex(uint32_t x) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", x);
  return text;
}

// "lanes 0-6, 9".
std::string lanes_text(uint32_t mask) {
  std::string text;
  for (uint32_t first = 0; first < kLanes; ++first) {
    if (!(mask >> first & 1)) continue;
    uint32_t last = first;
    while (last + 1 < kLanes && mask >> (last + 1) & 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
    first = last;
  }
  return (std::has_single_bit(mask) ? "lane " : "lanes ") + text;
}

std::string text_of(const Gathering& g) {
  return std::string(name_of(g.kind)) + "(" + hex(g.mask) + ") " + describe_place(g.place);
}

// Calls f(lane) for each of a mask.
template <class F>
void for_lanes(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<uint32_t>(std::countr_zero(mask)));
}

// Which lane a shuffle reads from: PTX ISA, "shfl.sync"; beyond the section it is the lane itself.
uint32_t source_lane(Meeting kind, uint32_t lane, uint32_t argument) {
  const uint32_t width = argument >> 8, n = argument & 0xff;
  const uint32_t first = lane & ~(width - 1), offset = lane & (width - 1);
  switch (kind) {
    case Meeting::kShflUp: return n > offset ? lane : lane - n;
    case Meeting::kShflDown: return n + offset >= width ? lane : lane + n;
    case Meeting::kShflXor: {
      const uint32_t other = lane ^ n;
      return other >= first + width ? lane : other & 31;
    }
    default: return first + (n & (width - 1));
  }
}

uint64_t reduced(const Warp& warp, Meeting kind, uint32_t lanes) {
  uint32_t result = static_cast<uint32_t>(warp.values[std::countr_zero(lanes)]);
  for_lanes(lanes & (lanes - 1), [&](uint32_t lane) {
    const auto x = static_cast<uint32_t>(warp.values[lane]);
    const auto sx = static_cast<int32_t>(x), sr = static_cast<int32_t>(result);
    switch (kind) {
      case Meeting::kMin: result = x < result ? x : result; break;
      case Meeting::kMax: result = x > result ? x : result; break;
      case Meeting::kSignedMin: result = sx < sr ? x : result; break;
      case Meeting::kSignedMax: result = sx > sr ? x : result; break;
      case Meeting::kAdd: result += x; break;
      case Meeting::kAnd: result &= x; break;
      case Meeting::kOr: result |= x; break;
      default: result ^= x;
    }
  });
  return result;
}

void compute(Warp& warp, const Gathering& g) {
  const uint32_t lanes = g.arrived;
  uint64_t all = 0;
  switch (g.kind) {
    case Meeting::kSyncwarp: return;
    case Meeting::kActive: all = lanes; break;
    case Meeting::kBallot:
    case Meeting::kAny:
    case Meeting::kAll: {
      uint32_t votes = 0;
      for_lanes(lanes, [&](uint32_t l) { votes |= static_cast<uint32_t>(warp.values[l]) << l; });
      all = g.kind == Meeting::kBallot ? votes
            : g.kind == Meeting::kAny  ? votes != 0
                                       : votes == lanes;
      break;
    }
    case Meeting::kMatchAny:
    case Meeting::kMatchAll:
      for_lanes(lanes, [&](uint32_t l) {
        uint32_t same = 0;
        for_lanes(lanes,
                  [&](uint32_t m) { same |= (warp.values[m] == warp.values[l] ? 1u : 0) << m; });
        warp.results[l] = g.kind == Meeting::kMatchAny || same == lanes ? same : 0;
      });
      return;
    case Meeting::kShfl:
    case Meeting::kShflUp:
    case Meeting::kShflDown:
    case Meeting::kShflXor:
      for_lanes(lanes, [&](uint32_t l) {
        const uint32_t from = source_lane(g.kind, l, warp.arguments[l]);
        // What an absent lane gives is undefined.
        warp.results[l] = lanes >> from & 1 ? warp.values[from]
                                            : uint64_t{chance().next()} << 32 | chance().next();
      });
      return;
    default: all = reduced(warp, g.kind, lanes);
  }
  for_lanes(lanes, [&](uint32_t lane) { warp.results[lane] = all; });
}

// The lanes go on.
void complete(Warp& warp, size_t index) {
  const Gathering g = warp.gatherings[index];
  compute(warp, g);
  warp.waiting &= ~g.arrived;
  warp.ready |= g.arrived;
  warp.gatherings[index] = warp.gatherings.back();
  warp.gatherings.pop_back();
}

// Unless lanes go in step, those that __activemask finds together are random: one that comes waits for
// more, or not.
constexpr uint32_t kStaysApartOneIn = 8;

bool is_complete(const Warp& warp, const Gathering& g) {
  return g.arrived == (g.mask & ~warp.ended) ||
         (g.kind == Meeting::kActive && !in_step() && chance().below(kStaysApartOneIn) == 0);
}

size_t gathering_at(Warp& warp, Meeting kind, uint32_t mask, const void* place) {
  for (size_t i = 0; i < warp.gatherings.size(); ++i) {
    const Gathering& g = warp.gatherings[i];
    if (g.kind == kind && g.mask == mask && is_same_place(g.place, place)) return i;
  }
  warp.gatherings.push_back({kind, mask, place, 0});
  return warp.gatherings.size() - 1;
}

void open_barrier(Block& block) {
  block.arrived = 0;
  for (Warp& warp : block.warps) {
    warp.ready |= warp.at_barrier;
    warp.at_barrier = 0;
  }
}

}  // namespace

uint64_t meet(Meeting kind, uint32_t mask, uint64_t value, uint32_t argument) {
  const void* const place = __builtin_return_address(0);
  const Running& now = running();
  if (!in_kernel()) {
    preempt();  // reports
    return 0;
  }
  Warp& warp = *now.warp;
  const uint32_t lane = now.lane, bit = 1u << lane;
  const size_t i = gathering_at(warp, kind, mask, place);
  Gathering& g = warp.gatherings[i];
  if (!(mask & bit)) give_up(lanes_text(bit) + " is not in the mask of its own " + text_of(g));
  warp.values[lane] = value;
  warp.arguments[lane] = argument;
  g.arrived |= bit;
  warp.ready &= ~bit;
  warp.waiting |= bit;
  if (is_complete(warp, warp.gatherings[i])) complete(warp, i);
  switch_away();
  return warp.results[lane];
}

void meet_block() {
  const void* const place = __builtin_return_address(0);
  if (!in_kernel()) return preempt();
  const Running& now = running();
  Block& block = *now.block;
  const uint32_t bit = 1u << now.lane;
  if (block.arrived == 0) block.barrier = place;
  if (!is_same_place(block.barrier, place))
    give_up(lanes_text(bit) + " waits in __syncthreads " + describe_place(place) +
            ", others " + describe_place(block.barrier));
  now.warp->ready &= ~bit;
  now.warp->at_barrier |= bit;
  if (++block.arrived == block.live) open_barrier(block);
  switch_away();
}

void nap() { preempt(); }

void lane_ended(Warp& warp, Block& block, uint32_t lane) {
  const uint32_t bit = 1u << lane;
  warp.ended |= bit;
  warp.ready &= ~bit;
  if (--block.live != 0 && block.arrived == block.live) open_barrier(block);
  for (size_t i = 0; i < warp.gatherings.size();) {
    if (is_complete(warp, warp.gatherings[i])) complete(warp, i);
    else ++i;
  }
}

bool release_active(Warp& warp) {
  for (size_t i = 0; i < warp.gatherings.size(); ++i) {
    if (warp.gatherings[i].kind != Meeting::kActive) continue;
    complete(warp, i);
    return true;
  }
  return false;
}

std::string deadlock(const Warp& warp) {
  std::string text = "deadlock:";
  for (const Gathering& g : warp.gatherings)
    text += " " + lanes_text(g.arrived) + " wait in " + text_of(g) + ";";
  if (warp.at_barrier) text += " " + lanes_text(warp.at_barrier) + " wait in __syncthreads;";
  if (warp.ended) text += " " + lanes_text(warp.ended) + " have ended;";
  text.pop_back();
  return text;
}

}  // namespace cuda_emulated
