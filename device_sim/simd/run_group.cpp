// Runs groups: the dispatch loop, control flow that leaves a block, and access to single lanes.
#include "device_sim/core/cpu_backend.h"
#include "device_sim/simd/group.h"
#include "device_sim/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device_sim/simd/run_group.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#define HWY_TARGET_TOGGLE_ACTIVE
#include "device_sim/uir/semantics.h"
#include "device_sim/simd/runner-inl.h"
#include "device_sim/simd/jit/recorder-inl.h"
#include "device_sim/simd/warps_runner-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {

void find_compact_again(Group& g) {
  for (uint32_t i = 0; i < 4; ++i) {
    for (uint64_t bits = g.lost[i]; bits; bits &= bits - 1)
      try_compact(g, static_cast<Slot>(64 * i + static_cast<uint32_t>(std::countr_zero(bits))));
    g.lost[i] = 0;
  }
  g.any_lost = false;
}

const Uop* next_of_many(Group& g, uint32_t pc) {
  const uint64_t key = simd::make_key(*g.machine, g.depth, pc);
  if (goes_on(g.turns, key, g.wait_key, g.depth)) return uop_at(g, pc);
  simd::park(g, pc);
  return resume(g, simd::schedule(g));
}

const Uop* split(Group& g, uint64_t taken, uint32_t there, uint32_t here) {
  const uint64_t key_there = simd::make_key(*g.machine, g.depth, there);
  const uint64_t key_here = simd::make_key(*g.machine, g.depth, here);
  simd::set_keys(g, taken, key_there);
  simd::set_keys(g, g.active & ~taken, key_here);
  if (g.budget <= 0) return nullptr;
  return resume(g, simd::schedule(g));
}

const Uop* run_jmp_reg(Group& g, const Uop* u) {
  complete_block(g, u);
  if (u->aux == static_cast<uint8_t>(JumpHint::kCall)) ++g.depth;
  if (u->aux == static_cast<uint8_t>(JumpHint::kReturn)) {
    if (g.depth > 0) --g.depth;
    // Who leaves a barrier meets those that it opened it for.
    if (HWY_UNLIKELY(g.waiting != 0)) simd::wake(g);
  }
  const uint64_t first = g.get_lane(u->a, static_cast<uint32_t>(std::countr_zero(g.active)));
  bool same = g.kind[u->a] == simd::kUniform;
  if (!same) {
    same = true;
    simd::for_each_lane(g.active, [&](uint32_t lane) { same &= g.get_lane(u->a, lane) == first; });
  }
  if (same) {
    const uint32_t target = g.machine->code.find(first);
    if (HWY_LIKELY(target != kNoUop)) return go_to(g, target);
    simd::stop_lanes(g, g.active, jump_event(0, index_of(g, u), first));
    g.lacks_code = true;
  } else {
    simd::for_each_lane(g.active, [&](uint32_t lane) {
      const uint64_t pc = g.get_lane(u->a, lane);
      const uint32_t target = g.machine->code.find(pc);
      if (target == kNoUop) {
        simd::stop_lane(g, lane, jump_event(g.core(lane), index_of(g, u), pc));
        g.lacks_code = true;
      } else {
        simd::set_key(g, lane, simd::make_key(*g.machine, g.depth, target));
      }
    });
  }
  if (g.budget <= 0 || g.lacks_code) return nullptr;
  return resume(g, simd::schedule(g));
}

const Uop* run_give_way(Group& g, const Uop* u) {
  const auto turn = static_cast<Turn>(u->aux);
  complete_block(g, u);
  if (turn == Turn::kSignalEvent) {
    g.machine->memory.signal_event();
    if (g.waiting) simd::wake(g);
    return go_to(g, u->target());
  }
  simd::park(g, u->target());
  if (turn == Turn::kWaitForEvent) {
    simd::wait_for_event(g, u->a);
    if ((g.active & g.runnable) == 0)
      return g.budget <= 0 ? nullptr : resume(g, simd::schedule(g));
  }
  g.budget -= kGiveWayCost;
  g.steps -= kGiveWayCost;
  if (g.active == g.runnable) {
    g.gave_way = true;
    return nullptr;
  }
  if (g.budget <= 0) {
    g.turns.end_at_next_slice();
    return nullptr;
  }
  return resume(g, simd::schedule_after_wait(g));
}

const Uop* run_service(Group& g, const Uop* u) {
  complete_block(g, u);
  simd::for_each_lane(g.active, [&](uint32_t lane) {
    simd::stop_lane(g, lane, service_event(g.core(lane), *u));
  });
  if (g.budget <= 0) return nullptr;
  return resume(g, simd::schedule(g));
}

const Uop* run_trap(Group& g, const Uop* u) {
  simd::for_each_lane(g.active, [&](uint32_t lane) {
    const StopInfo stop{static_cast<Fault>(u->aux), 0};
    simd::stop_lane(g, lane, fault_event(g.core(lane), index_of(g, u), stop));
  });
  return after_stops(g, u);
}

void run_group_here(Group& g) {
  g.chunks = static_cast<uint32_t>((g.width + kN - 1) / kN);
  // Values become compact again without anyone noticing, but seldom.
  if (std::has_single_bit(++g.slices))
    for (uint32_t s = 0; s < g.slot_count; ++s) try_compact(g, static_cast<Slot>(s));
  const Uop* u = resume(g, simd::schedule_slice(g));
  while (u != nullptr)
    u = static_cast<const HandlerTable*>(g.table)->handlers[static_cast<int>(u->op)](g, u);
}

void set_lane_here(Group& g, Slot slot, uint32_t lane, uint64_t value) {
  g.chunks = static_cast<uint32_t>((g.width + kN - 1) / kN);
  if (g.get_lane(slot, lane) == value) return;
  LaneContext{g, lane}.set(slot, value);
}

void set_compact_here(Group& g, Slot slot, simd::Compact value) { write_compact(g, slot, value); }

const char* target_name_here() { return hwy::TargetName(HWY_TARGET); }
uint32_t lanes_per_vector_here() { return static_cast<uint32_t>(kN); }

}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "device_sim/simd/dispatch.h"

namespace gpusim::simd {
void run_group(Group& g) { GPUSIM_ON_TARGET(run_group_here)(g); }
void set_lane(Group& g, Slot slot, uint32_t lane, uint64_t value) {
  GPUSIM_ON_TARGET(set_lane_here)(g, slot, lane, value);
}
void set_compact(Group& g, Slot slot, Compact value) {
  GPUSIM_ON_TARGET(set_compact_here)(g, slot, value);
}
const char* target_name() { return GPUSIM_ON_TARGET(target_name_here)(); }
uint32_t lanes_per_vector() { return GPUSIM_ON_TARGET(lanes_per_vector_here)(); }
}  // namespace gpusim::simd
#endif
