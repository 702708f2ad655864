// Emits the value of one micro-op, or the condition of a branch, in a domain of registers.
#pragma once
#include "device_sim/simd/jit/lower_kinds.h"
#include "device_sim/simd/jit/quiet_float.h"
#include "device_sim/uir/semantics.h"

namespace gpusim::simd {

#define GPUSIM_LOWER(name, ...)                                                    \
  case Op::name:                                                                   \
    if constexpr (D::kWide || may_be_narrow(Op::name)) return sem::name<D>(__VA_ARGS__); \
    break;
#define GPUSIM_NOT_HERE(name) case Op::name: break;

#define GPUSIM_LOWER_kDI(name) GPUSIM_LOWER(name, u)
#define GPUSIM_LOWER_kDA(name) GPUSIM_LOWER(name, a)
#define GPUSIM_LOWER_kDAI(name) GPUSIM_LOWER(name, a, u)
#define GPUSIM_LOWER_kDAB(name) GPUSIM_LOWER(name, a, b)
#define GPUSIM_LOWER_kDABI(name) GPUSIM_LOWER(name, a, b, u)
#define GPUSIM_LOWER_kDABC(name) GPUSIM_LOWER(name, a, b, c)
#define GPUSIM_LOWER_kDABCI(name) GPUSIM_LOWER(name, a, b, c, u)
#define GPUSIM_LOWER_kSel GPUSIM_LOWER_kDABCI
#define GPUSIM_LOWER_kSelCmp(name) GPUSIM_LOWER(name, a, b, c, e, u)
#define GPUSIM_LOWER_kSelCmpI GPUSIM_LOWER_kDABCI
#define GPUSIM_LOWER_kFA(name) GPUSIM_LOWER(name, a, fp, u)
#define GPUSIM_LOWER_kFAB(name) GPUSIM_LOWER(name, a, b, fp, u)
#define GPUSIM_LOWER_kFABC(name) GPUSIM_LOWER(name, a, b, c, fp, u)
#define GPUSIM_LOWER_kGA GPUSIM_LOWER_kFA
#define GPUSIM_LOWER_kGAB GPUSIM_LOWER_kFAB
#define GPUSIM_LOWER_kGABC GPUSIM_LOWER_kFABC
#define GPUSIM_LOWER_kLdI GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kLdX GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kLdW GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kStI GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kStX GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kStW GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kAmo GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kCas GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kCas128 GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kStx GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kStx128 GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kAlign GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kFence GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kNote GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kVector GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kWarp GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kWarpSync GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kCtaSync GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kCtaReduce GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kEnd GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kJmp GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kLink GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kJmpReg GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kBrAB GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kBrAI GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kGiveWay GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kService GPUSIM_NOT_HERE
#define GPUSIM_LOWER_kTrap GPUSIM_NOT_HERE

// The value of `u` from its sources; `e` is the fourth. `any_nan`: any NaN will do for another.
template <class D>
typename D::V lower_value(const Uop& u, typename D::V a, typename D::V b, typename D::V c,
                          typename D::V e, typename D::V& fp, bool any_nan = false) {
  // To fixed point: scaled first, which is exact, as what overflows is too large anyway. The common
  // semantics leave it to a scalar function.
  if constexpr (D::kWide) {
    if (u.op == Op::f2i && u.imm != 0 && static_cast<FpFormat>(u.aux & 3) == FpFormat::kF64) {
      Uop whole = u;
      whole.imm = 0;
      return sem::f2i<D>(D::template fmul<double>(a, D::konst((1023 + u.imm) << 52)), fp, whole);
    }
  }
  if constexpr (requires { fp.is_konst ? fp.k : 0; }) {  // not in strands (device_sim/native)
    if (fp.is_konst && tells_nothing_new(fp.k)) {
      if (const auto r = QuietFloat<D, float>(fp.k, any_nan).value(u, a, b, c)) return *r;
      if constexpr (D::kWide)
        if (const auto r = QuietFloat<D, double>(fp.k).value(u, a, b, c)) return *r;
    }
  }
  switch (u.op) {
#define GPUSIM_UOP(name, shape, fields, traits) GPUSIM_LOWER_##shape(name)
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
  }
  return D::konst(0);
}

// Whether a conditional branch is taken.
template <class D>
typename D::M lower_branch(const Uop& u, typename D::V a, typename D::V b) {
  switch (u.op) {
#define GPUSIM_LOWER_BRANCH(cond)                          \
  case Op::br_##cond: return sem::br_##cond<D>(a, b);      \
  case Op::bri_##cond: return sem::bri_##cond<D>(a, u);
    GPUSIM_LOWER_BRANCH(eq64) GPUSIM_LOWER_BRANCH(ne64) GPUSIM_LOWER_BRANCH(lt64)
    GPUSIM_LOWER_BRANCH(ge64) GPUSIM_LOWER_BRANCH(ltu64) GPUSIM_LOWER_BRANCH(geu64)
    GPUSIM_LOWER_BRANCH(eq32) GPUSIM_LOWER_BRANCH(ne32) GPUSIM_LOWER_BRANCH(lt32)
    GPUSIM_LOWER_BRANCH(ge32) GPUSIM_LOWER_BRANCH(ltu32) GPUSIM_LOWER_BRANCH(geu32)
#undef GPUSIM_LOWER_BRANCH
    case Op::br_bit0: return sem::br_bit0<D>(a, u);
    case Op::br_bit1: return sem::br_bit1<D>(a, u);
    case Op::br_cond: return sem::br_cond<D>(a, u);
    default: return D::konst_mask(false);
  }
}

}  // namespace gpusim::simd
