// The handlers, compiled once per SIMD target by Highway and chosen at run time.
#include "device_sim/core/cpu_backend.h"
#include "device_sim/simd/group.h"

// Three targets on x86-64: SSSE3 (the baseline of this file), AVX2 and AVX-512. The others gain
// little for 64-bit lanes and cost a minute of compilation each.
#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device_sim/simd/simd_targets.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#define HWY_TARGET_TOGGLE_ACTIVE
#include "device_sim/uir/semantics.h"
#include "device_sim/simd/runner-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {
namespace {

template <bool kFull>
struct Handlers {
#define GPUSIM_HANDLER(name) static const Uop* name(Group& g, const Uop* u)
#define GPUSIM_RUN_kDI(name) \
  GPUSIM_HANDLER(name) { write_uniform<kFull>(g, u->d, sem::name<SD>(*u)); return u + 1; }
#define GPUSIM_RUN_kDA(name)                                                             \
  GPUSIM_HANDLER(name) {                                                                 \
    return run_value<kFull>(g, u, [](V a) HWY_ATTR { return sem::name<VD>(a); },         \
                            [](uint64_t a) HWY_ATTR { return sem::name<SD>(a); }, u->a); \
  }
#define GPUSIM_RUN_kDAI(name)                                                                \
  GPUSIM_HANDLER(name) {                                                                     \
    return run_value<kFull>(g, u, [u](V a) HWY_ATTR { return sem::name<VD>(a, *u); },        \
                            [u](uint64_t a) HWY_ATTR { return sem::name<SD>(a, *u); }, u->a); \
  }
#define GPUSIM_RUN_kDAB(name)                                                                  \
  GPUSIM_HANDLER(name) {                                                                       \
    return run_value<kFull>(                                                                   \
        g, u, [](V a, V b) HWY_ATTR { return sem::name<VD>(a, b); },                           \
        [](uint64_t a, uint64_t b) HWY_ATTR { return sem::name<SD>(a, b); }, u->a, u->b);      \
  }
#define GPUSIM_RUN_kDABI(name)                                                                 \
  GPUSIM_HANDLER(name) {                                                                       \
    return run_value<kFull>(                                                                   \
        g, u, [u](V a, V b) HWY_ATTR { return sem::name<VD>(a, b, *u); },                      \
        [u](uint64_t a, uint64_t b) HWY_ATTR { return sem::name<SD>(a, b, *u); }, u->a, u->b); \
  }
#define GPUSIM_RUN_kDABC(name)                                                           \
  GPUSIM_HANDLER(name) {                                                                 \
    return run_value<kFull>(                                                             \
        g, u, [](V a, V b, V c) HWY_ATTR { return sem::name<VD>(a, b, c); },             \
        [](uint64_t a, uint64_t b, uint64_t c) HWY_ATTR { return sem::name<SD>(a, b, c); }, \
        u->a, u->b, u->c);                                                               \
  }
#define GPUSIM_RUN_kDABCI(name)                                                                  \
  GPUSIM_HANDLER(name) {                                                                         \
    return run_value<kFull>(                                                                     \
        g, u, [u](V a, V b, V c) HWY_ATTR { return sem::name<VD>(a, b, c, *u); },                \
        [u](uint64_t a, uint64_t b, uint64_t c) HWY_ATTR { return sem::name<SD>(a, b, c, *u); }, \
        u->a, u->b, u->c);                                                                       \
  }
#define GPUSIM_RUN_kSel GPUSIM_RUN_kDABCI
#define GPUSIM_RUN_kFA(name)                                                                    \
  GPUSIM_HANDLER(name) {                                                                        \
    return run_fp<kFull>(                                                                       \
        g, u, [u](V a, V& fp) HWY_ATTR { return sem::name<VD>(a, fp, *u); },                    \
        [u](uint64_t a, uint64_t& fp) HWY_ATTR { return sem::name<SD>(a, fp, *u); }, u->a);     \
  }
#define GPUSIM_RUN_kFAB(name)                                                                   \
  GPUSIM_HANDLER(name) {                                                                        \
    return run_fp<kFull>(                                                                       \
        g, u, [u](V a, V b, V& fp) HWY_ATTR { return sem::name<VD>(a, b, fp, *u); },            \
        [u](uint64_t a, uint64_t b, uint64_t& fp)                                               \
            HWY_ATTR { return sem::name<SD>(a, b, fp, *u); },                                   \
        u->a, u->b);                                                                            \
  }
#define GPUSIM_RUN_kFABC(name)                                                                  \
  GPUSIM_HANDLER(name) {                                                                        \
    return run_fp<kFull>(                                                                       \
        g, u, [u](V a, V b, V c, V& fp) HWY_ATTR { return sem::name<VD>(a, b, c, fp, *u); },    \
        [u](uint64_t a, uint64_t b, uint64_t c, uint64_t& fp)                                   \
            HWY_ATTR { return sem::name<SD>(a, b, c, fp, *u); },                                \
        u->a, u->b, u->c);                                                                      \
  }
#define GPUSIM_RUN_kGA GPUSIM_RUN_kFA
#define GPUSIM_RUN_kGAB GPUSIM_RUN_kFAB
#define GPUSIM_RUN_kGABC GPUSIM_RUN_kFABC
#define GPUSIM_RUN_kLdI(name) \
  GPUSIM_HANDLER(name) { return run_load<kFull, Op::name>(g, u); }
#define GPUSIM_RUN_kLdX GPUSIM_RUN_kLdI
#define GPUSIM_RUN_kLdW GPUSIM_RUN_kLdI
#define GPUSIM_RUN_kStI(name) \
  GPUSIM_HANDLER(name) { return run_store<kFull, Op::name>(g, u); }
#define GPUSIM_RUN_kStX GPUSIM_RUN_kStI
#define GPUSIM_RUN_kStW GPUSIM_RUN_kStI
#define GPUSIM_RUN_kAmo(name) \
  GPUSIM_HANDLER(name) { return run_lanes(g, u, execute_amo<Op::name, LaneContext>); }
#define GPUSIM_RUN_kCas(name) \
  GPUSIM_HANDLER(name) { return run_lanes(g, u, execute_##name<LaneContext>); }
#define GPUSIM_RUN_kCas128 GPUSIM_RUN_kCas
#define GPUSIM_RUN_kStx GPUSIM_RUN_kCas
#define GPUSIM_RUN_kStx128 GPUSIM_RUN_kCas
#define GPUSIM_RUN_kAlign(name) \
  GPUSIM_HANDLER(name) { return run_check_align(g, u); }
#define GPUSIM_RUN_kFence(name) \
  GPUSIM_HANDLER(name) { (void)g; PairLock::fence(); return u + 1; }
#define GPUSIM_RUN_kBrAB(name)                                                                   \
  GPUSIM_HANDLER(name) {                                                                         \
    return run_branch(g, u, [](V a, V b) HWY_ATTR { return sem::name<VD>(a, b); },               \
                      [](uint64_t a, uint64_t b) HWY_ATTR { return sem::name<SD>(a, b); }, u->a, \
                      u->b);                                                                     \
  }
#define GPUSIM_RUN_kBrAI(name)                                                              \
  GPUSIM_HANDLER(name) {                                                                    \
    return run_branch(g, u, [u](V a) HWY_ATTR { return sem::name<VD>(a, *u); },             \
                      [u](uint64_t a) HWY_ATTR { return sem::name<SD>(a, *u); }, u->a);     \
  }
#define GPUSIM_RUN_kJmp(name) \
  GPUSIM_HANDLER(name) { return run_jmp(g, u); }
#define GPUSIM_RUN_kLink(name) \
  GPUSIM_HANDLER(name) { return uop_at(g, u->target()); }
#define GPUSIM_RUN_kJmpReg(name) \
  GPUSIM_HANDLER(name) { return run_jmp_reg(g, u); }
#define GPUSIM_RUN_kGiveWay(name) \
  GPUSIM_HANDLER(name) { return run_give_way(g, u); }
#define GPUSIM_RUN_kService(name) \
  GPUSIM_HANDLER(name) { return run_service(g, u); }
#define GPUSIM_RUN_kTrap(name) \
  GPUSIM_HANDLER(name) { return run_trap(g, u); }
#define GPUSIM_UOP(name, shape) GPUSIM_RUN_##shape(name)
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
};

template <bool kFull>
constexpr HandlerTable make_table() {
  HandlerTable t{};
  for (Handler& h : t.handlers) h = &Handlers<kFull>::trap;
#define GPUSIM_UOP(name, shape) t.handlers[static_cast<int>(Op::name)] = &Handlers<kFull>::name;
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
  return t;
}

}  // namespace

const HandlerTable kFullTable = make_table<true>();
const HandlerTable kPartTable = make_table<false>();

HWY_NOINLINE const Uop* run_jmp_reg(Group& g, const Uop* u) {
  complete_block(g, u);
  if (u->aux == static_cast<uint8_t>(JumpHint::kCall)) ++g.depth;
  if (u->aux == static_cast<uint8_t>(JumpHint::kReturn) && g.depth > 0) --g.depth;
  const uint64_t first = g.get_lane(u->a, static_cast<uint32_t>(std::countr_zero(g.active)));
  bool same = g.step[u->a] == 0;
  if (!same) {
    same = true;
    simd::for_each_lane(g.active, [&](uint32_t lane) { same &= g.get_lane(u->a, lane) == first; });
  }
  if (same) {
    const uint32_t target = g.machine->code.find(first);
    if (HWY_LIKELY(target != kNoUop)) return go_to(g, target);
  }
  simd::for_each_lane(g.active, [&](uint32_t lane) {
    const uint64_t pc = g.get_lane(u->a, lane);
    const uint32_t target = g.machine->code.find(pc);
    if (target == kNoUop)
      simd::stop_lane(g, lane, jump_event(g.first_core + lane, index_of(g, u), pc));
    else
      g.lane_key[lane] = simd::make_key(g.depth, target);
  });
  if (g.budget <= 0) return nullptr;
  return resume(g, simd::schedule(g));
}

HWY_NOINLINE const Uop* run_give_way(Group& g, const Uop* u) {
  // What a round of waiting takes off the slice, so that lanes that all wait for another group
  // do not poll until the slice is over.
  constexpr int64_t kCost = 256;
  complete_block(g, u);
  g.budget -= kCost;
  simd::park(g, u->target());
  if (g.active == g.runnable) {
    g.gave_way = true;
    return nullptr;
  }
  if (g.budget <= 0) return nullptr;
  return resume(g, simd::schedule_turn(g));
}

HWY_NOINLINE const Uop* run_service(Group& g, const Uop* u) {
  complete_block(g, u);
  simd::for_each_lane(g.active, [&](uint32_t lane) {
    simd::stop_lane(g, lane, service_event(g.first_core + lane, *u));
  });
  if (g.budget <= 0) return nullptr;
  return resume(g, simd::schedule(g));
}

HWY_NOINLINE const Uop* run_trap(Group& g, const Uop* u) {
  simd::for_each_lane(g.active, [&](uint32_t lane) {
    const StopInfo stop{static_cast<Fault>(u->aux), 0};
    simd::stop_lane(g, lane, fault_event(g.first_core + lane, index_of(g, u), stop));
  });
  return after_stops(g, u);
}

void run_group_here(Group& g) {
  g.chunks = static_cast<uint32_t>((g.width + kN - 1) / kN);
  const Uop* u = resume(g, simd::schedule(g));
  while (u != nullptr)
    u = static_cast<const HandlerTable*>(g.table)->handlers[static_cast<int>(u->op)](g, u);
}

void set_lane_here(Group& g, Slot slot, uint32_t lane, uint64_t value) {
  g.chunks = static_cast<uint32_t>((g.width + kN - 1) / kN);
  if (g.get_lane(slot, lane) == value) return;
  LaneContext{g, lane}.set(slot, value);
}

void set_uniform_here(Group& g, Slot slot, uint64_t value) { write_uniform<true>(g, slot, value); }

const char* target_name_here() { return hwy::TargetName(HWY_TARGET); }
uint32_t lanes_per_vector_here() { return static_cast<uint32_t>(kN); }

}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpusim {
HWY_EXPORT(run_group_here);
HWY_EXPORT(set_lane_here);
HWY_EXPORT(set_uniform_here);
HWY_EXPORT(target_name_here);
HWY_EXPORT(lanes_per_vector_here);

namespace simd {
void run_group(Group& g) { HWY_DYNAMIC_DISPATCH(run_group_here)(g); }
void set_lane(Group& g, Slot slot, uint32_t lane, uint64_t value) {
  HWY_DYNAMIC_DISPATCH(set_lane_here)(g, slot, lane, value);
}
void set_uniform(Group& g, Slot slot, uint64_t value) {
  HWY_DYNAMIC_DISPATCH(set_uniform_here)(g, slot, value);
}
const char* target_name() { return HWY_DYNAMIC_DISPATCH(target_name_here)(); }
uint32_t lanes_per_vector() { return HWY_DYNAMIC_DISPATCH(lanes_per_vector_here)(); }
}  // namespace simd
}  // namespace gpusim
#endif
