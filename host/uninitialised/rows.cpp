#include "host/uninitialised/rows.h"

#include "device_sim/core/atomics.h"
#include "device_sim/uir/semantics.h"

namespace gpusim::host::uninitialised {
namespace {

using D = Domain;
using SD = sem::ScalarDomain;

}  // namespace

Bits value_of(const Uop& u, const Operands& in) {
  const auto a = [&] { return in.get(u.a); };
  const auto b = [&] { return in.get(u.b); };
  const auto c = [&] { return in.get(u.c); };
  // Few of the ways to set them show on which side of a number it is.
  if (u.op == Op::fcmp) {
    const uint64_t read = size_mask((u.aux & 3) + 1);
    const bool is_defined = ((a().undefined | b().undefined) & read) == 0;
    uint64_t state = in.values[u.e];
    return {sem::fcmp<SD>(a().value, b().value, state, u), is_defined ? uint64_t{0} : 15};
  }
  switch (u.op) {
#define VALUE(name, ...) \
  case Op::name:         \
    return sem::name<D>(__VA_ARGS__);
#define VALUE_kDI(name) VALUE(name, u)
#define VALUE_kDA(name) VALUE(name, a())
#define VALUE_kDAI(name) VALUE(name, a(), u)
#define VALUE_kDAB(name) VALUE(name, a(), b())
#define VALUE_kDABI(name) VALUE(name, a(), b(), u)
#define VALUE_kDABC(name) VALUE(name, a(), b(), c())
#define VALUE_kDABCI(name) VALUE(name, a(), b(), c(), u)
#define VALUE_kSel VALUE_kDABCI
#define VALUE_kSelCmp(name) VALUE(name, a(), b(), c(), in.get(u.e), u)
#define VALUE_kSelCmpI VALUE_kDABCI
    // With the state as it is, whose changes nobody looks at.
#define FLOAT(name, parameters, arguments, ...) \
  case Op::name:                                \
    return D::map(                              \
        [&] parameters {                        \
          uint64_t state = in.values[u.e];      \
          return sem::name<SD> arguments;       \
        },                                      \
        __VA_ARGS__);
#define VALUE_kFA(name) FLOAT(name, (uint64_t x), (x, state, u), a())
#define VALUE_kFAB(name) FLOAT(name, (uint64_t x, uint64_t y), (x, y, state, u), a(), b())
#define VALUE_kFABC(name) \
  FLOAT(name, (uint64_t x, uint64_t y, uint64_t z), (x, y, z, state, u), a(), b(), c())
#define VALUE_kGA VALUE_kFA
#define VALUE_kGAB VALUE_kFAB
#define VALUE_kGABC VALUE_kFABC
#define VALUE_kLdI(name)
#define VALUE_kLdX(name)
#define VALUE_kLdW(name)
#define VALUE_kStI(name)
#define VALUE_kStX(name)
#define VALUE_kStW(name)
#define VALUE_kAmo(name)
#define VALUE_kCas(name)
#define VALUE_kCas128(name)
#define VALUE_kStx(name)
#define VALUE_kStx128(name)
#define VALUE_kAlign(name)
#define VALUE_kFence(name)
#define VALUE_kNote(name)
#define VALUE_kVector(name)
#define VALUE_kWarp(name)
#define VALUE_kWarpSync(name)
#define VALUE_kCtaSync(name)
#define VALUE_kCtaReduce(name)
#define VALUE_kJmp(name)
#define VALUE_kLink(name)
#define VALUE_kJmpReg(name)
#define VALUE_kBrAB(name)
#define VALUE_kBrAI(name)
#define VALUE_kGiveWay(name)
#define VALUE_kEnd(name)
#define VALUE_kService(name)
#define VALUE_kTrap(name)
#define GPUSIM_UOP(name, shape, fields, traits) VALUE_##shape(name)
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
    default:
      return {};
  }
}

Truth branch_of(const Uop& u, const Operands& in) {
  const auto a = [&] { return in.get(u.a); };
  const auto b = [&] { return in.get(u.b); };
#define BRANCH(op, ...) \
  case Op::op:          \
    return sem::op<D>(__VA_ARGS__);
#define BRANCHES(condition)        \
  BRANCH(br_##condition, a(), b()) \
  BRANCH(bri_##condition, a(), u)
  switch (u.op) {
    BRANCHES(eq64)
    BRANCHES(ne64)
    BRANCHES(lt64)
    BRANCHES(ge64)
    BRANCHES(ltu64)
    BRANCHES(geu64)
    BRANCHES(eq32)
    BRANCHES(ne32)
    BRANCHES(lt32)
    BRANCHES(ge32)
    BRANCHES(ltu32)
    BRANCHES(geu32)
    BRANCH(br_bit0, a(), u)
    BRANCH(br_bit1, a(), u)
    BRANCH(br_cond, a(), u)
    default:
      return {};
  }
}

Bits stored_by_atomic(const Uop& u, Bits old, Bits operand) {
  const int up = 64 - (8 << (u.aux & 3));
  const auto least = [&](Truth is_less) { return D::select(is_less, old, operand); };
  const auto most = [&](Truth is_less) { return D::select(is_less, operand, old); };
  const Truth below_s = D::lt_s(D::shl(old, up), D::shl(operand, up));
  const Truth below_u = D::lt_u(D::shl(old, up), D::shl(operand, up));
  switch (u.op) {
    case Op::amo_add:
      return D::add(old, operand);
    case Op::amo_clr:
      return D::andnot(old, operand);
    case Op::amo_xor:
      return D::xor_(old, operand);
    case Op::amo_or:
      return D::or_(old, operand);
    case Op::amo_smax:
      return most(below_s);
    case Op::amo_smin:
      return least(below_s);
    case Op::amo_umax:
      return most(below_u);
    case Op::amo_umin:
      return least(below_u);
    case Op::amo_swp:
      return operand;
    default:  // of PTX alone
      return {0, (old.undefined | operand.undefined) != 0 ? ~uint64_t{0} : 0};
  }
}

}  // namespace gpusim::host::uninitialised
