// Rows of warps and CTAs (uir/warp.h) on a group's lanes. Where all living lanes that a mask names
// are there, as they nearly always are, a row is a few vector steps. Otherwise lanes wait, and
// core/ctas.h says who goes on. Included by run_group.cpp, once per SIMD target.
#if defined(GPUSIM_SIMD_WARPS_RUNNER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SIMD_WARPS_RUNNER_INL_H_
#undef GPUSIM_SIMD_WARPS_RUNNER_INL_H_
#else
#define GPUSIM_SIMD_WARPS_RUNNER_INL_H_
#endif

#include <array>
#include <optional>

#include "device_sim/core/warp_results.h"
#include "device_sim/simd/grouped_threads.h"

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {

// Calls f(first lane, active lanes of the warp) for each warp of the group that has some.
template <class F>
HWY_INLINE void for_warps(uint64_t lanes, F f) {
  for (uint32_t first = 0; first < kMaxLanes; first += kWarpLanes) {
    const auto of_warp = static_cast<uint32_t>(lanes >> first);
    if (of_warp != 0) f(first, of_warp);
  }
}

// The active lanes have done the row at `u` together.
HWY_INLINE const Uop* go_on(Group& g, const Uop* u) {
  return HWY_LIKELY(g.active == g.runnable) ? u + 1 : next_of_many(g, index_of(g, u + 1));
}

// What lanes wait at. The row itself may be one that enters native code, with the fields of the one
// that it replaced.
enum class Waiting { kForWarp, kAtBarrier, kForCluster };

// The active lanes wait at `u` for others; who can go on does so.
HWY_NOINLINE inline const Uop* wait_for_others(Group& g, const Uop* u, Waiting waiting) {
  Ctas& ctas = g.machine->ctas->ctas();
  uint64_t lanes = g.active;
  simd::park(g, index_of(g, u));
  const auto stop = [&](uint32_t lane) {
    lanes &= ~(uint64_t{1} << lane);
    simd::stop_lane(g, lane, fault_event(g.core(lane), index_of(g, u), {Fault::kBarrier, 0}));
  };
  if (waiting == Waiting::kForCluster)
    for_warps(lanes, [&](uint32_t first, uint32_t of_warp) {
      const uint32_t misusing = ctas.misusing(g.first_core + first, of_warp, *u);
      simd::for_each_lane(misusing, [&](uint32_t lane) { stop(first + lane); });
    });
  else if (waiting == Waiting::kAtBarrier)
    simd::for_each_lane(g.active, [&](uint32_t lane) {
      const BarrierUse use = barrier_of(*u, [&](Slot slot) { return g.get_lane(slot, lane); });
      if (!use.is_valid()) stop(lane);
    });
  g.runnable &= ~lanes;
  for_warps(lanes,
            [&](uint32_t first, uint32_t of_warp) { ctas.wait(g.first_core + first, of_warp); });
  return g.budget <= 0 ? nullptr : resume(g, simd::schedule(g));
}

// Whether the active lanes are all that their masks name and that live, so that none has to wait.
HWY_INLINE bool are_all_there(const Group& g, const Uop* u, const WarpFields& f) {
  constexpr uint64_t kLow = 0xffffffff;
  const uint64_t warps =
      ((g.active & kLow) != 0 ? kLow : 0) | ((g.active & ~kLow) != 0 ? ~kLow : 0);
  const uint64_t alive = g.machine->ctas->alive(g) & warps;
  if (!f.mask_in_slot || g.kind[u->c] == simd::kUniform) {
    const uint64_t mask = f.mask_in_slot ? static_cast<uint32_t>(g.base[u->c]) : f.mask;
    return (alive & (mask | mask << kWarpLanes)) == g.active;
  }
  bool are_there = true;
  for_warps(g.active, [&](uint32_t first, uint32_t lanes) {
    const auto mask_of = [&](uint32_t lane) {
      return static_cast<uint32_t>(g.get_lane(u->c, first + lane));
    };
    const uint32_t mask = mask_of(static_cast<uint32_t>(std::countr_zero(lanes)));
    are_there = are_there && (static_cast<uint32_t>(alive >> first) & mask) == lanes;
    simd::for_each_lane(lanes, [&](uint32_t lane) { are_there &= mask_of(lane) == mask; });
  });
  return are_there;
}

// Writes 32-bit results to the active lanes.
HWY_INLINE void write_words(Group& g, Slot d, const uint32_t* words) {
  if (g.width == 1) return write_uniform<true>(g, d, words[0]);
  if (g.active == g.exists) {
    for_narrow_chunks([&](size_t v) HWY_ATTR {
      store_narrow(load_narrow(words + v * ND::kLanes), narrow_row(g, d) + v * ND::kLanes);
    });
    g.kind[d] = simd::kNarrow;
  } else if (spread_narrow(g, d, simd::kNarrow)) {
    write_narrow_part(g, d, words);
  } else {
    spread(g, d);
    for_lanes<false>(g, [&](uint32_t lane) HWY_ATTR { row(g, d)[lane] = words[lane]; });
  }
}

HWY_INLINE void read_words(Group& g, Slot s, int k, uint32_t* words) {
  const NarrowSource source(g, s, k);
  for_narrow_chunks([&](size_t v) HWY_ATTR { store_narrow(source.at(v), words + v * ND::kLanes); });
}

// Lanes whose a is not zero.
HWY_INLINE uint64_t true_lanes(Group& g, Slot s) {
  if (g.kind[s] == simd::kUniform) return g.base[s] != 0 ? ~uint64_t{0} : 0;
  const Source a(g, s, 0);
  uint64_t bits = 0;
  for (size_t v = 0; v < g.chunks; ++v)
    bits |= VD::mask_bits(VD::m_not(VD::eq(a.at(v), VD::konst(0)))) << (v * kN);
  return bits;
}

// Where each lane reads, and whether that is in range.
struct WarpSources {
  uint32_t lane = 0, clamp = 0;  // of whom, if all lanes say the same
  int op = -1;
  uint8_t from[kMaxLanes] = {}, in_range[kMaxLanes] = {};
};

// Kept where all lanes say the same, for programs repeat few of these; else in `own`.
HWY_INLINE const WarpSources& sources_of(Group& g, const Uop* u, WarpOp op, const WarpFields& f,
                                         WarpSources& own) {
  const auto find = [&](WarpSources& s, uint32_t lane, uint64_t b) HWY_ATTR {
    const ShuffleSource source =
        shuffle_source(op, lane % kWarpLanes, f.lane_in_slot ? static_cast<uint32_t>(b) : f.lane,
                       f.clamp_in_slot ? static_cast<uint32_t>(b >> 32) : f.clamp);
    s.from[lane] = static_cast<uint8_t>(source.lane);
    s.in_range[lane] = source.in_range;
  };
  const bool is_uniform = (!f.lane_in_slot && !f.clamp_in_slot) || g.kind[u->b] == simd::kUniform;
  if (!is_uniform) {
    for (uint32_t lane = 0; lane < g.width; ++lane) find(own, lane, g.get_lane(u->b, lane));
    return own;
  }
  static thread_local std::array<WarpSources, 32> known;
  const uint64_t b = g.base[u->b];
  const uint32_t lane = f.lane_in_slot ? static_cast<uint32_t>(b) : f.lane;
  const uint32_t clamp = f.clamp_in_slot ? static_cast<uint32_t>(b >> 32) : f.clamp;
  WarpSources& s = known[(lane ^ clamp ^ static_cast<uint32_t>(op) * 7) % known.size()];
  if (HWY_LIKELY(s.op == static_cast<int>(op) && s.lane == lane && s.clamp == clamp)) return s;
  s.op = static_cast<int>(op);
  s.lane = lane;
  s.clamp = clamp;
  for (uint32_t k = 0; k < kMaxLanes; ++k) find(s, k, b);
  return s;
}

// Where the active lanes are all members.
HWY_NOINLINE inline void shuffle(Group& g, const Uop* u, WarpOp op, const WarpFields& f) {
  HWY_ALIGN uint32_t a[kMaxLanes];
  HWY_ALIGN uint32_t d[kMaxLanes];
  WarpSources own;
  const uint8_t* const from = sources_of(g, u, op, f, own).from;
  read_words(g, u->a, 0, a);
  if (g.active == ~uint64_t{0}) {
    for (uint32_t lane = 0; lane < kMaxLanes; ++lane)
      d[lane] = a[(lane & ~(kWarpLanes - 1)) + from[lane]];
  } else {
    for (uint32_t lane = 0; lane < kMaxLanes; ++lane) {
      const uint32_t source = (lane & ~(kWarpLanes - 1)) + from[lane];
      d[lane] = a[g.active >> source & 1 ? source : lane];
    }
  }
  write_words(g, u->d, d);
}

// The members of a warp that have `value`: of words from its first lane's on.
HWY_INLINE uint32_t lanes_with(const uint32_t* words, uint32_t value) {
  uint64_t bits = 0;
  for (uint32_t lane = 0; lane < kWarpLanes; lane += ND::kLanes)
    bits |= ND::mask_bits(ND::eq(load_narrow(words + lane), ND::konst(value))) << lane;
  return static_cast<uint32_t>(bits);
}
HWY_INLINE uint32_t lanes_with(const uint64_t* words, uint64_t value) {
  uint64_t bits = 0;
  for (uint32_t lane = 0; lane < kWarpLanes; lane += static_cast<uint32_t>(kN))
    bits |= VD::mask_bits(VD::eq(load_vec(words + lane), VD::konst(value))) << lane;
  return static_cast<uint32_t>(bits);
}
template <class Word>
HWY_INLINE void find_matches_of(uint64_t active, WarpOp op, const Word* words, uint32_t* d) {
  for_warps(active, [&](uint32_t first, uint32_t members) HWY_ATTR {
    for (uint32_t left = members; left != 0;) {
      const auto lowest = static_cast<uint32_t>(std::countr_zero(left));
      const uint32_t same = lanes_with(words + first, words[first + lowest]) & members;
      if (op == WarpOp::kMatchAll) {
        std::fill_n(d + first, kWarpLanes, same == members ? members : 0);
        return;
      }
      simd::for_each_lane(same, [&](uint32_t lane) { d[first + lane] = same; });
      left &= ~same;
    }
  });
}
HWY_NOINLINE inline void find_matches(Group& g, const Uop* u, WarpOp op, const WarpFields& f,
                                      uint32_t* d) {
  if (f.wide) {
    HWY_ALIGN uint64_t words[kMaxLanes] = {};
    for (uint32_t lane = 0; lane < g.width; ++lane) words[lane] = g.get_lane(u->a, lane);
    return find_matches_of(g.active, op, words, d);
  }
  HWY_ALIGN uint32_t words[kMaxLanes];
  read_words(g, u->a, 0, words);
  find_matches_of(g.active, op, words, d);
}

HWY_NOINLINE inline void run_together(Group& g, const Uop* u, WarpOp op, const WarpFields& f) {
  HWY_ALIGN uint32_t d[kMaxLanes] = {};
  const uint64_t active = g.active;
  if (is_vote(op)) {
    const uint64_t is_true = (f.negated ? ~true_lanes(g, u->a) : true_lanes(g, u->a)) & active;
    for_warps(active, [&](uint32_t first, uint32_t members) HWY_ATTR {
      const auto ballot = static_cast<uint32_t>(is_true >> first);
      uint32_t result = ballot;
      if (op == WarpOp::kVoteAll) result = ballot == members;
      if (op == WarpOp::kVoteAny) result = ballot != 0;
      if (op == WarpOp::kVoteUni) result = ballot == members || ballot == 0;
      std::fill_n(d + first, kWarpLanes, result);
    });
  } else if (is_match(op)) {
    find_matches(g, u, op, f, d);
  } else {
    HWY_ALIGN uint32_t a[kMaxLanes];
    read_words(g, u->a, 0, a);
    for_warps(active, [&](uint32_t first, uint32_t members) HWY_ATTR {
      const auto lowest = static_cast<uint32_t>(std::countr_zero(members));
      uint32_t result = lowest;
      if (op != WarpOp::kElect) {
        result = a[first + lowest];
        simd::for_each_lane(members & (members - 1),
                            [&](uint32_t lane) { result = reduced(op, result, a[first + lane]); });
      }
      std::fill_n(d + first, kWarpLanes, result);
    });
  }
  write_words(g, u->d, d);
}

// Results that lanes have without others.
HWY_NOINLINE inline void run_apart(Group& g, const Uop* u, WarpOp op, const WarpFields& f) {
  HWY_ALIGN uint32_t d[kMaxLanes];
  if (op == WarpOp::kActiveMask) {
    std::fill_n(d, kWarpLanes, static_cast<uint32_t>(g.active));
    std::fill_n(d + kWarpLanes, kWarpLanes, static_cast<uint32_t>(g.active >> kWarpLanes));
  } else {
    WarpSources own;
    const uint8_t* const in_range = sources_of(g, u, op, f, own).in_range;
    for (uint32_t lane = 0; lane < kMaxLanes; ++lane) d[lane] = in_range[lane];
  }
  write_words(g, u->d, d);
}

const Uop* run_warp(Group& g, const Uop* u) {
  const auto op = static_cast<WarpOp>(u->aux);
  const WarpFields f = WarpFields::unpack(u->imm);
  if (!converges(op)) {
    run_apart(g, u, op, f);
    return u + 1;
  }
  if (HWY_UNLIKELY(!are_all_there(g, u, f))) return wait_for_others(g, u, Waiting::kForWarp);
  if (is_shuffle(op))
    shuffle(g, u, op, f);
  else
    run_together(g, u, op, f);
  return go_on(g, u);
}

const Uop* run_warp_sync(Group& g, const Uop* u) {
  if (HWY_UNLIKELY(!are_all_there(g, u, WarpFields::unpack(u->imm))))
    return wait_for_others(g, u, Waiting::kForWarp);
  return go_on(g, u);
}

// All living lanes of the group are at a barrier that the row names, `is_true` of them with a true
// predicate; nullopt: they have none.
HWY_NOINLINE inline const Uop* arrive(Group& g, const Uop* u, const BarrierFields& f,
                                      std::optional<uint64_t> is_true) {
  Ctas& ctas = g.machine->ctas->ctas();
  const uint64_t lanes = g.active;
  simd::park(g, index_of(g, u));
  g.runnable &= ~lanes;
  for_warps(lanes, [&](uint32_t first, uint32_t of_warp) {
    ctas.arrive(g.first_core + first, of_warp, f.barrier, f.threads,
                is_true ? std::optional(static_cast<uint32_t>(*is_true >> first)) : std::nullopt);
  });
  return g.budget <= 0 ? nullptr : resume(g, simd::schedule(g));
}

// Whether all living lanes of the group are here, and the row names the barrier.
HWY_INLINE bool is_plain_barrier(const Group& g, const BarrierFields& f) {
  return !f.barrier_in_slot && !f.threads_in_slot && g.active == g.machine->ctas->alive(g);
}
HWY_INLINE bool opens_barrier(const Group& g, const BarrierFields& f) {
  return g.machine->ctas->ctas().opens(g.first_core, g.width, g.active, f.barrier, f.threads);
}

const Uop* run_cta_sync(Group& g, const Uop* u) {
  const BarrierFields f = BarrierFields::unpack(u->imm);
  const bool differs = u->aux != static_cast<uint8_t>(CtaSync::kSync);
  if (HWY_UNLIKELY(differs || !is_plain_barrier(g, f)))
    return wait_for_others(g, u,
                           is_of_cluster(u->aux) ? Waiting::kForCluster : Waiting::kAtBarrier);
  return opens_barrier(g, f) ? go_on(g, u) : arrive(g, u, f, std::nullopt);
}

const Uop* run_cta_reduce(Group& g, const Uop* u) {
  const BarrierFields f = BarrierFields::unpack(u->imm);
  if (HWY_UNLIKELY(!is_plain_barrier(g, f))) return wait_for_others(g, u, Waiting::kAtBarrier);
  const uint64_t of_slot = true_lanes(g, u->a);
  const uint64_t is_true = (f.negated ? ~of_slot : of_slot) & g.active;
  if (!opens_barrier(g, f)) return arrive(g, u, f, is_true);
  auto result = static_cast<uint32_t>(std::popcount(is_true));
  if (u->aux == static_cast<uint8_t>(CtaReduce::kAnd)) result = is_true == g.active;
  if (u->aux == static_cast<uint8_t>(CtaReduce::kOr)) result = is_true != 0;
  HWY_ALIGN uint32_t d[kMaxLanes];
  std::fill_n(d, kMaxLanes, result);
  write_words(g, u->d, d);
  return go_on(g, u);
}

const Uop* run_end_thread(Group& g, const Uop* u) {
  complete_block(g, u);
  Ctas& ctas = g.machine->ctas->ctas();
  const uint64_t lanes = g.active;
  g.runnable &= ~lanes;
  for_warps(lanes, [&](uint32_t first, uint32_t of_warp) {
    const uint32_t core = g.first_core + first;
    if (ctas.end(core, of_warp))
      g.events->push_back(
          {.core = ctas.place_of(core) << ctas.shift(), .status = CoreStatus::kCtaEnd});
  });
  return g.budget <= 0 ? nullptr : resume(g, simd::schedule(g));
}

}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();
#endif
