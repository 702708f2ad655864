// One handler per micro-op, from uops.def and the semantics; included once per SIMD target, in the
// two files that instantiate them for full and for partial masks.
#if defined(GPUSIM_SIMD_HANDLERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SIMD_HANDLERS_INL_H_
#undef GPUSIM_SIMD_HANDLERS_INL_H_
#else
#define GPUSIM_SIMD_HANDLERS_INL_H_
#endif

#define HWY_TARGET_TOGGLE_ACTIVE
#include "device_sim/core/vector.h"
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
#define GPUSIM_VALUE_HANDLER(name, call, ...)                                        \
  GPUSIM_HANDLER(name) {                                                      \
    return run_value<kFull, Op::name>(                                        \
        g, u, [u](auto domain, auto... x) HWY_ATTR {                          \
          (void)u;                                                            \
          return sem::name<decltype(domain)> call;                            \
        }, __VA_ARGS__);                                                      \
  }
#define GPUSIM_RUN_kDA(name) GPUSIM_VALUE_HANDLER(name, (x...), u->a)
#define GPUSIM_RUN_kDAI(name) GPUSIM_VALUE_HANDLER(name, (x..., *u), u->a)
#define GPUSIM_RUN_kDAB(name) GPUSIM_VALUE_HANDLER(name, (x...), u->a, u->b)
#define GPUSIM_RUN_kDABI(name) GPUSIM_VALUE_HANDLER(name, (x..., *u), u->a, u->b)
#define GPUSIM_RUN_kDABC(name) GPUSIM_VALUE_HANDLER(name, (x...), u->a, u->b, u->c)
#define GPUSIM_RUN_kDABCI(name) GPUSIM_VALUE_HANDLER(name, (x..., *u), u->a, u->b, u->c)
#define GPUSIM_RUN_kSel GPUSIM_RUN_kDABCI
#define GPUSIM_RUN_kSelCmp(name) \
  GPUSIM_VALUE_HANDLER(name, (x..., *u), u->a, u->b, u->c, u->e)
#define GPUSIM_RUN_kSelCmpI GPUSIM_RUN_kDABCI
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
  GPUSIM_HANDLER(name) {        \
    if (!kFull) g.turns.charge_polls(1); \
    return run_amo<kFull, Op::name>(g, u); \
  }
#define GPUSIM_RUN_kCas(name) \
  GPUSIM_HANDLER(name) {        \
    if (!kFull) g.turns.charge_polls(1); \
    return run_lanes(g, u, execute_##name<LaneContext, MemoryView>); \
  }
#define GPUSIM_RUN_kCas128 GPUSIM_RUN_kCas
#define GPUSIM_RUN_kStx GPUSIM_RUN_kCas
#define GPUSIM_RUN_kStx128 GPUSIM_RUN_kCas
#define GPUSIM_RUN_kVector(name) \
  GPUSIM_HANDLER(name) { return run_lanes(g, u, execute_##name<LaneContext, MemoryView>); }
#define GPUSIM_RUN_kAlign(name) \
  GPUSIM_HANDLER(name) { return run_check_align(g, u); }
#define GPUSIM_RUN_kFence(name) \
  GPUSIM_HANDLER(name) {          \
    if (!kFull) g.turns.charge_polls(1);   \
    if (!g.machine->is_alone) fence_all(); \
    return u + 1;                 \
  }
#define GPUSIM_RUN_kNote(name) \
  GPUSIM_HANDLER(name) { return run_note(g, u); }
#define GPUSIM_RUN_kWarp(name) \
  GPUSIM_HANDLER(name) { return run_warp(g, u); }
#define GPUSIM_RUN_kWarpSync(name) \
  GPUSIM_HANDLER(name) { return run_warp_sync(g, u); }
#define GPUSIM_RUN_kCtaSync(name) \
  GPUSIM_HANDLER(name) { return run_cta_sync(g, u); }
#define GPUSIM_RUN_kCtaReduce(name) \
  GPUSIM_HANDLER(name) { return run_cta_reduce(g, u); }
#define GPUSIM_RUN_kEnd(name) \
  GPUSIM_HANDLER(name) { return run_end_thread(g, u); }
#define GPUSIM_BRANCH_HANDLER(name, call, ...)                                        \
  GPUSIM_HANDLER(name) {                                                      \
    return run_branch<Op::name>(                                              \
        g, u, [u](auto domain, auto... x) HWY_ATTR {                          \
          (void)u;                                                            \
          return sem::name<decltype(domain)> call;                            \
        }, __VA_ARGS__);                                                      \
  }
#define GPUSIM_RUN_kBrAB(name) GPUSIM_BRANCH_HANDLER(name, (x...), u->a, u->b)
#define GPUSIM_RUN_kBrAI(name) GPUSIM_BRANCH_HANDLER(name, (x..., *u), u->a)
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
#define GPUSIM_UOP(name, shape, fields, traits) GPUSIM_RUN_##shape(name)
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
};

template <bool kFull>
constexpr HandlerTable make_table() {
  HandlerTable t{};
  for (Handler& h : t.handlers) h = &Handlers<kFull>::trap;
#define GPUSIM_UOP(name, shape, fields, traits) t.handlers[static_cast<int>(Op::name)] = &Handlers<kFull>::name;
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
  t.handlers[static_cast<int>(simd::kEntryOp)] = kFull ? run_marked_full : run_marked_part;
  return t;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();
#endif
