// Vector micro-ops on 64-bit halves of vector registers, elements of 8 << aux bits.
//
// Domains have elementwise primitives for 8, 16 and 32 bits (vadd<E> ...); 64-bit elements are
// ordinary words. Permutations are shifts and masks, which every machine has.
#include "device_sim/uir/helpers.h"
#include "device_sim/uir/scalar_domain.h"
#include "device_sim/uir/semantics_int.h"
#include "device_sim/uir/semantics_namespace.h"
#include "device_sim/uir/uop.h"

#if defined(GPUSIM_SEMANTICS_VECTOR_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SEMANTICS_VECTOR_H_
#undef GPUSIM_SEMANTICS_VECTOR_H_
#else
#define GPUSIM_SEMANTICS_VECTOR_H_
#endif

GPUSIM_SEM_BEGIN

// Picks the primitive by element width.
#define GPUSIM_BY_WIDTH(primitive, wide, ...)              \
  switch (u.aux & 3) {                                     \
    case 0:                                                \
      return D::template primitive<uint8_t>(__VA_ARGS__);  \
    case 1:                                                \
      return D::template primitive<uint16_t>(__VA_ARGS__); \
    case 2:                                                \
      return D::template primitive<uint32_t>(__VA_ARGS__); \
    default:                                               \
      return wide;                                         \
  }
GPUSIM_SEM all_ones_if(const typename D::M m) {
  return D::select(m, D::konst(~uint64_t{0}), D::konst(0));
}

// --- arithmetic
GPUSIM_SEM vadd(GPUSIM_AB, GPUSIM_U){GPUSIM_BY_WIDTH(vadd, D::add(a, b), a, b)} GPUSIM_SEM
    vsub(GPUSIM_AB, GPUSIM_U){GPUSIM_BY_WIDTH(vsub, D::sub(a, b), a, b)} GPUSIM_SEM
    vmul(GPUSIM_AB, GPUSIM_U){GPUSIM_BY_WIDTH(vmul, D::mul(a, b), a, b)} GPUSIM_SEM
    vmla(GPUSIM_ABC, GPUSIM_U) {
  return vadd<D>(c, vmul<D>(a, b, u), u);
}
GPUSIM_SEM vmls(GPUSIM_ABC, GPUSIM_U) { return vsub<D>(c, vmul<D>(a, b, u), u); }
GPUSIM_SEM vneg(GPUSIM_A, GPUSIM_U) { return vsub<D>(D::konst(0), a, u); }
GPUSIM_SEM vsmin(GPUSIM_AB,
                 GPUSIM_U){GPUSIM_BY_WIDTH(vmin_s, D::select(D::lt_s(a, b), a, b), a, b)} GPUSIM_SEM
    vsmax(GPUSIM_AB,
          GPUSIM_U){GPUSIM_BY_WIDTH(vmax_s, D::select(D::lt_s(a, b), b, a), a, b)} GPUSIM_SEM
    vumin(GPUSIM_AB,
          GPUSIM_U){GPUSIM_BY_WIDTH(vmin_u, D::select(D::lt_u(a, b), a, b), a, b)} GPUSIM_SEM
    vumax(GPUSIM_AB, GPUSIM_U){GPUSIM_BY_WIDTH(vmax_u, D::select(D::lt_u(a, b), b, a), a,
                                               b)} GPUSIM_SEM vabs(GPUSIM_A, GPUSIM_U) {
  return vsmax<D>(a, vneg<D>(a, u), u);
}

// --- comparisons
GPUSIM_SEM vcmeq(GPUSIM_AB,
                 GPUSIM_U){GPUSIM_BY_WIDTH(veq, all_ones_if<D>(D::eq(a, b)), a, b)} GPUSIM_SEM
    vcmgt(GPUSIM_AB,
          GPUSIM_U){GPUSIM_BY_WIDTH(vgt_s, all_ones_if<D>(D::lt_s(b, a)), a, b)} GPUSIM_SEM
    vcmhi(GPUSIM_AB, GPUSIM_U){GPUSIM_BY_WIDTH(vgt_u, all_ones_if<D>(D::lt_u(b, a)), a,
                                               b)} GPUSIM_SEM vcmge(GPUSIM_AB, GPUSIM_U) {
  return D::not_(vcmgt<D>(b, a, u));
}
GPUSIM_SEM vcmhs(GPUSIM_AB, GPUSIM_U) { return D::not_(vcmhi<D>(b, a, u)); }
GPUSIM_SEM vcmtst(GPUSIM_AB, GPUSIM_U) { return D::not_(vcmeq<D>(D::and_(a, b), D::konst(0), u)); }
GPUSIM_SEM vbsl(GPUSIM_ABC) { return D::or_(D::and_(a, c), D::andnot(b, c)); }

// --- shifts; a right shift may be by the whole width
GPUSIM_SEM vshl(GPUSIM_A,
                GPUSIM_U){GPUSIM_BY_WIDTH(vshl, D::shl(a, int(u.imm)), a, int(u.imm))} GPUSIM_SEM
    vushr(GPUSIM_A, GPUSIM_U) {
  if (u.imm >= (8u << (u.aux & 3))) return D::konst(0);
  GPUSIM_BY_WIDTH(vshr, D::shr(a, int(u.imm)), a, int(u.imm))
}
GPUSIM_SEM vsshr(GPUSIM_A, GPUSIM_U) {
  const int last = (8 << (u.aux & 3)) - 1;
  const int n = u.imm < uint64_t(last) ? int(u.imm) : last;
  GPUSIM_BY_WIDTH(vsar, D::sar(a, n), a, n)
}

// --- single elements
constexpr int element_bits(const Uop& u) { return 8 << (u.aux & 3); }
constexpr uint64_t element_mask(const Uop& u) { return ~uint64_t{0} >> (64 - element_bits(u)); }
constexpr int element_position(const Uop& u) { return int(u.imm) * element_bits(u) & 63; }

GPUSIM_SEM vumov(GPUSIM_A, GPUSIM_U) {
  return D::and_(D::shr(a, element_position(u)), D::konst(element_mask(u)));
}
GPUSIM_SEM vsmov(GPUSIM_A, GPUSIM_U) {
  const int above = 64 - element_bits(u);
  return D::sar(D::shl(a, above - element_position(u)), above);
}
GPUSIM_SEM vdup(GPUSIM_A, GPUSIM_U) {
  typename D::V r = vumov<D>(a, u);
  for (int n = element_bits(u); n < 64; n *= 2) r = D::or_(r, D::shl(r, n));
  return r;
}
GPUSIM_SEM vins(GPUSIM_AB, GPUSIM_U) {
  const uint64_t mask = element_mask(u) << element_position(u);
  const typename D::V element = D::shl(a, element_position(u));
  return D::or_(D::and_(element, D::konst(mask)), D::and_(b, D::konst(~mask)));
}

// --- permutations
GPUSIM_SEM vext(GPUSIM_AB, GPUSIM_U) {
  const int n = int(u.imm) * 8;
  return D::or_(D::shr(a, n), D::shl(b, 64 - n));
}
constexpr uint64_t spread_mask(int bits) {  // every other run of `bits` ones, the lowest included
  return ~uint64_t{0} / ((uint64_t{1} << bits) + 1);
}
// The low half's elements, each followed by a gap of its own size, which is zero.
GPUSIM_SEM spread(GPUSIM_A, GPUSIM_U) {
  typename D::V r = low32<D>(a);
  for (int n = 16; n >= element_bits(u); n /= 2) {
    r = D::and_(D::or_(r, D::shl(r, n)), D::konst(spread_mask(n)));
  }
  return r;
}
// The inverse: even elements, in the low half.
GPUSIM_SEM gather_even(GPUSIM_A, GPUSIM_U) {
  typename D::V r = D::and_(a, D::konst(spread_mask(element_bits(u))));
  for (int n = element_bits(u); n < 32; n *= 2) {
    r = D::and_(D::or_(r, D::shr(r, n)), D::konst(spread_mask(2 * n)));
  }
  return r;
}
GPUSIM_SEM vzip1(GPUSIM_AB, GPUSIM_U) {
  return D::or_(spread<D>(a, u), D::shl(spread<D>(b, u), element_bits(u)));
}
GPUSIM_SEM vzip2(GPUSIM_AB, GPUSIM_U) { return vzip1<D>(D::shr(a, 32), D::shr(b, 32), u); }
GPUSIM_SEM vuzp1(GPUSIM_AB, GPUSIM_U) {
  return D::or_(gather_even<D>(a, u), high<D>(gather_even<D>(b, u)));
}
GPUSIM_SEM vuzp2(GPUSIM_AB, GPUSIM_U) {
  return vuzp1<D>(D::shr(a, element_bits(u)), D::shr(b, element_bits(u)), u);
}

// --- widening, narrowing, pairs
GPUSIM_SEM vuxtl(GPUSIM_A, GPUSIM_U) { return spread<D>(u.imm ? D::shr(a, 32) : a, u); }
GPUSIM_SEM vsxtl(GPUSIM_A, GPUSIM_U) {
  // With the elements in the upper halves of their new places, an arithmetic shift does the rest.
  const typename D::V placed = D::shl(vuxtl<D>(a, u), element_bits(u));
  switch (u.aux & 3) {
    case 0:
      return D::template vsar<uint16_t>(placed, 8);
    case 1:
      return D::template vsar<uint32_t>(placed, 16);
    default:
      return D::sar(placed, 32);
  }
}
GPUSIM_SEM vxtn(GPUSIM_AB, GPUSIM_U) { return vuzp1<D>(a, b, u); }
GPUSIM_SEM vaddp(GPUSIM_AB, GPUSIM_U) {
  if ((u.aux & 3) == 3) return D::add(a, b);
  return vadd<D>(vuzp1<D>(a, b, u), vuzp2<D>(a, b, u), u);
}
GPUSIM_SEM vcnt(GPUSIM_A) {
  const uint64_t m1 = spread_mask(1), m2 = spread_mask(2), m4 = spread_mask(4);
  const typename D::V pairs = D::sub(a, D::and_(D::shr(a, 1), D::konst(m1)));
  const typename D::V quads =
      D::add(D::and_(pairs, D::konst(m2)), D::and_(D::shr(pairs, 2), D::konst(m2)));
  return D::and_(D::add(quads, D::shr(quads, 4)), D::konst(m4));
}

// --- helpers
struct CallHelper {
  const Uop* u;
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a) const { return helpers::call1(a, *u); }
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b) const {
    return helpers::call2(a, b, *u);
  }
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t c) const {
    return helpers::call3(a, b, c, *u);
  }
};
GPUSIM_SEM help1(GPUSIM_A, GPUSIM_U) { return D::map(CallHelper{&u}, a); }
GPUSIM_SEM help2(GPUSIM_AB, GPUSIM_U) { return D::map(CallHelper{&u}, a, b); }
GPUSIM_SEM help3(GPUSIM_ABC, GPUSIM_U) { return D::map(CallHelper{&u}, a, b, c); }

struct CallFpHelper {
  const Uop* u;
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t& fp) const {
    return helpers::fcall1(a, *u, fp);
  }
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t& fp) const {
    return helpers::fcall2(a, b, *u, fp);
  }
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b, uint64_t c, uint64_t& fp) const {
    return helpers::fcall3(a, b, c, *u, fp);
  }
};
GPUSIM_SEM fhelp1(GPUSIM_A, typename D::V& fp, GPUSIM_U) {
  return D::map_state(D::eq(a, a), a, CallFpHelper{&u}, fp, a);
}
GPUSIM_SEM fhelp2(GPUSIM_AB, typename D::V& fp, GPUSIM_U) {
  return D::map_state(D::eq(a, a), a, CallFpHelper{&u}, fp, a, b);
}
GPUSIM_SEM fhelp3(GPUSIM_ABC, typename D::V& fp, GPUSIM_U) {
  return D::map_state(D::eq(a, a), a, CallFpHelper{&u}, fp, a, b, c);
}

#undef GPUSIM_BY_WIDTH

GPUSIM_SEM_END
#endif
