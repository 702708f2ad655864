// Integer micro-ops, one function per row of uops.def, over an execution domain D.
//
// Rules: no `if` on guest data (select); `switch` only on the micro-op's own fields; one emitted
// value per line where order could matter. Per-target include guard: see semantics_namespace.h.
#include "device_sim/uir/compare.h"
#include "device_sim/uir/scalar_domain.h"
#include "device_sim/uir/uop.h"
#include "device_sim/uir/semantics_namespace.h"

#if defined(GPUSIM_SEMANTICS_INT_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SEMANTICS_INT_H_
#undef GPUSIM_SEMANTICS_INT_H_
#else
#define GPUSIM_SEMANTICS_INT_H_
#endif

GPUSIM_SEM_BEGIN

#define GPUSIM_SEM template <class D> GPUSIM_HD_INLINE typename D::V
#define GPUSIM_MASK template <class D> GPUSIM_HD_INLINE typename D::M
// Operand lists.
#define GPUSIM_A const typename D::V a
#define GPUSIM_AB GPUSIM_A, const typename D::V b
#define GPUSIM_ABC GPUSIM_AB, const typename D::V c
#define GPUSIM_U const Uop& u

GPUSIM_SEM low32(GPUSIM_A) { return D::and_(a, D::konst(0xffffffffu)); }
GPUSIM_SEM sext32(GPUSIM_A) {
  if constexpr (D::kBits == 32) return a;
  else if constexpr (requires { D::sext32(a); }) return D::sext32(a);
  else return D::sar(D::shl(a, 32), 32);
}
GPUSIM_SEM top_bit(GPUSIM_A) { return D::shr(a, D::kBits - 1); }
// The low 32 bits at the top of the word: 32-bit flags and comparisons are the word's of these.
GPUSIM_SEM high(GPUSIM_A) {
  if constexpr (D::kBits == 32) return a;
  else return D::shl(a, 32);
}

// --- moves and constants
GPUSIM_SEM konst(GPUSIM_U) { return D::konst(u.imm); }
GPUSIM_SEM mov(GPUSIM_A) { return a; }
GPUSIM_SEM mov32(GPUSIM_A) { return low32<D>(a); }

// --- add and subtract
GPUSIM_SEM add64(GPUSIM_AB) { return D::add(a, b); }
GPUSIM_SEM addi64(GPUSIM_A, GPUSIM_U) { return D::add(a, D::konst(u.imm)); }
GPUSIM_SEM add32(GPUSIM_AB) { return low32<D>(D::add(a, b)); }
GPUSIM_SEM addi32(GPUSIM_A, GPUSIM_U) { return low32<D>(D::add(a, D::konst(u.imm))); }
GPUSIM_SEM sub64(GPUSIM_AB) { return D::sub(a, b); }
GPUSIM_SEM sub32(GPUSIM_AB) { return low32<D>(D::sub(a, b)); }
GPUSIM_SEM add_lsl64(GPUSIM_AB, GPUSIM_U) { return D::add(a, D::shl(b, int(u.imm))); }
GPUSIM_SEM add_lsl32(GPUSIM_AB, GPUSIM_U) { return low32<D>(D::add(a, D::shl(b, int(u.imm)))); }
GPUSIM_SEM sub_lsl64(GPUSIM_AB, GPUSIM_U) { return D::sub(a, D::shl(b, int(u.imm))); }
GPUSIM_SEM sub_lsl32(GPUSIM_AB, GPUSIM_U) { return low32<D>(D::sub(a, D::shl(b, int(u.imm)))); }
GPUSIM_SEM add_sxtw64(GPUSIM_AB, GPUSIM_U) { return D::add(a, D::shl(sext32<D>(b), int(u.imm))); }
GPUSIM_SEM add_uxtw64(GPUSIM_AB, GPUSIM_U) { return D::add(a, D::shl(low32<D>(b), int(u.imm))); }
GPUSIM_SEM addw(GPUSIM_AB) { return sext32<D>(D::add(a, b)); }
GPUSIM_SEM addiw(GPUSIM_A, GPUSIM_U) { return sext32<D>(D::add(a, D::konst(u.imm))); }
GPUSIM_SEM subw(GPUSIM_AB) { return sext32<D>(D::sub(a, b)); }
GPUSIM_SEM carry_of(GPUSIM_A) { return D::and_(D::shr(a, 1), D::konst(1)); }
GPUSIM_SEM adc64(GPUSIM_ABC) { return D::add(D::add(a, b), carry_of<D>(c)); }
GPUSIM_SEM adc32(GPUSIM_ABC) { return low32<D>(adc64<D>(a, b, c)); }

// --- logic
GPUSIM_SEM and64(GPUSIM_AB) { return D::and_(a, b); }
GPUSIM_SEM and32(GPUSIM_AB) { return low32<D>(D::and_(a, b)); }
GPUSIM_SEM andi64(GPUSIM_A, GPUSIM_U) { return D::and_(a, D::konst(u.imm)); }
GPUSIM_SEM or64(GPUSIM_AB) { return D::or_(a, b); }
GPUSIM_SEM or32(GPUSIM_AB) { return low32<D>(D::or_(a, b)); }
GPUSIM_SEM ori64(GPUSIM_A, GPUSIM_U) { return D::or_(a, D::konst(u.imm)); }
GPUSIM_SEM ori32(GPUSIM_A, GPUSIM_U) { return low32<D>(D::or_(a, D::konst(u.imm))); }
GPUSIM_SEM xor64(GPUSIM_AB) { return D::xor_(a, b); }
GPUSIM_SEM xor32(GPUSIM_AB) { return low32<D>(D::xor_(a, b)); }
GPUSIM_SEM xori64(GPUSIM_A, GPUSIM_U) { return D::xor_(a, D::konst(u.imm)); }
GPUSIM_SEM xori32(GPUSIM_A, GPUSIM_U) { return low32<D>(D::xor_(a, D::konst(u.imm))); }
GPUSIM_SEM bic64(GPUSIM_AB) { return D::andnot(a, b); }
GPUSIM_SEM orn64(GPUSIM_AB) { return D::or_(a, D::not_(b)); }
GPUSIM_SEM eon64(GPUSIM_AB) { return D::xor_(a, D::not_(b)); }

// --- shifts
GPUSIM_SEM count32(GPUSIM_A) { return D::and_(a, D::konst(31)); }
GPUSIM_SEM lsl64(GPUSIM_AB) { return D::shl_v(a, b); }
GPUSIM_SEM lsl32(GPUSIM_AB) { return low32<D>(D::shl_v(a, count32<D>(b))); }
GPUSIM_SEM lsr64(GPUSIM_AB) { return D::shr_v(a, b); }
GPUSIM_SEM lsr32(GPUSIM_AB) { return D::shr_v(low32<D>(a), count32<D>(b)); }
GPUSIM_SEM asr64(GPUSIM_AB) { return D::sar_v(a, b); }
GPUSIM_SEM sllw(GPUSIM_AB) { return sext32<D>(D::shl_v(a, count32<D>(b))); }
GPUSIM_SEM srlw(GPUSIM_AB) { return sext32<D>(D::shr_v(low32<D>(a), count32<D>(b))); }
GPUSIM_SEM sraw(GPUSIM_AB) { return D::sar_v(sext32<D>(a), count32<D>(b)); }
GPUSIM_SEM asr32(GPUSIM_AB) { return low32<D>(D::sar_v(sext32<D>(a), count32<D>(b))); }
GPUSIM_SEM ror64(GPUSIM_AB) {
  return D::or_(D::shr_v(a, b), D::shl_v(a, D::sub(D::konst(0), b)));
}
GPUSIM_SEM doubled32(GPUSIM_A) { return D::or_(low32<D>(a), high<D>(a)); }
GPUSIM_SEM ror32(GPUSIM_AB) { return low32<D>(D::shr_v(doubled32<D>(a), count32<D>(b))); }
GPUSIM_SEM unless_beyond(GPUSIM_AB, int width, const typename D::V otherwise) {
  return D::select(D::lt_u(high<D>(b), high<D>(D::konst(uint64_t(width)))), a, otherwise);
}
GPUSIM_SEM lslc64(GPUSIM_AB) { return unless_beyond<D>(lsl64<D>(a, b), b, 64, D::konst(0)); }
GPUSIM_SEM lslc32(GPUSIM_AB) { return unless_beyond<D>(lsl32<D>(a, b), b, 32, D::konst(0)); }
GPUSIM_SEM lsrc64(GPUSIM_AB) { return unless_beyond<D>(lsr64<D>(a, b), b, 64, D::konst(0)); }
GPUSIM_SEM lsrc32(GPUSIM_AB) { return unless_beyond<D>(lsr32<D>(a, b), b, 32, D::konst(0)); }
GPUSIM_SEM asrc64(GPUSIM_AB) { return unless_beyond<D>(asr64<D>(a, b), b, 64, D::sar(a, 63)); }
GPUSIM_SEM asrc32(GPUSIM_AB) {
  return unless_beyond<D>(asr32<D>(a, b), b, 32, low32<D>(D::sar(sext32<D>(a), 31)));
}
GPUSIM_SEM lsli64(GPUSIM_A, GPUSIM_U) { return D::shl(a, int(u.imm)); }
GPUSIM_SEM lsli32(GPUSIM_A, GPUSIM_U) { return low32<D>(D::shl(a, int(u.imm))); }
GPUSIM_SEM lsri64(GPUSIM_A, GPUSIM_U) { return D::shr(a, int(u.imm)); }
GPUSIM_SEM lsri32(GPUSIM_A, GPUSIM_U) { return D::shr(low32<D>(a), int(u.imm)); }
GPUSIM_SEM asri64(GPUSIM_A, GPUSIM_U) { return D::sar(a, int(u.imm)); }
GPUSIM_SEM asri32(GPUSIM_A, GPUSIM_U) { return low32<D>(D::sar(sext32<D>(a), int(u.imm))); }
GPUSIM_SEM rori64(GPUSIM_A, GPUSIM_U) {
  return D::or_(D::shr(a, int(u.imm)), D::shl(a, int(-u.imm & 63)));
}
GPUSIM_SEM rori32(GPUSIM_A, GPUSIM_U) { return low32<D>(D::shr(doubled32<D>(a), int(u.imm))); }

// --- bit fields
GPUSIM_SEM ubfx(GPUSIM_A, GPUSIM_U) { return D::and_(D::shr(a, u.aux), D::konst(u.imm)); }
GPUSIM_SEM ubfiz(GPUSIM_A, GPUSIM_U) { return D::and_(D::shl(a, u.aux), D::konst(u.imm)); }
GPUSIM_SEM sbf64(GPUSIM_A, GPUSIM_U) { return D::sar(D::shl(a, int(u.imm)), u.aux); }
GPUSIM_SEM sbf32(GPUSIM_A, GPUSIM_U) { return low32<D>(sbf64<D>(a, u)); }
GPUSIM_SEM insert(GPUSIM_AB, GPUSIM_U) {
  return D::or_(D::and_(b, D::konst(~u.imm)), D::and_(a, D::konst(u.imm)));
}
GPUSIM_SEM bfi64(GPUSIM_AB, GPUSIM_U) { return insert<D>(D::shl(a, u.aux), b, u); }
GPUSIM_SEM bfi32(GPUSIM_AB, GPUSIM_U) { return low32<D>(bfi64<D>(a, b, u)); }
GPUSIM_SEM bfxil64(GPUSIM_AB, GPUSIM_U) { return insert<D>(D::shr(a, u.aux), b, u); }
GPUSIM_SEM bfxil32(GPUSIM_AB, GPUSIM_U) { return low32<D>(bfxil64<D>(a, b, u)); }
GPUSIM_SEM extr64(GPUSIM_AB, GPUSIM_U) {
  return D::or_(D::shr(b, int(u.imm)), D::shl(a, int(64 - u.imm)));
}
GPUSIM_SEM extr32(GPUSIM_AB, GPUSIM_U) {
  return low32<D>(D::shr(D::or_(high<D>(a), low32<D>(b)), int(u.imm)));
}

// --- bit counts and reversals
struct CountLeadingZeros {
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a) const {
#ifdef __CUDA_ARCH__
    return static_cast<uint64_t>(__clzll(static_cast<long long>(a)));
#else
    return a ? static_cast<uint64_t>(__builtin_clzll(a)) : 64;
#endif
  }
};
GPUSIM_SEM swap_bits(GPUSIM_A, uint64_t mask, int n) {
  return D::or_(D::and_(D::shr(a, n), D::konst(mask)), D::shl(D::and_(a, D::konst(mask)), n));
}
GPUSIM_SEM clz64(GPUSIM_A) { return D::map(CountLeadingZeros{}, a); }
GPUSIM_SEM clz32(GPUSIM_A) { return clz64<D>(D::or_(high<D>(a), D::konst(0x80000000u))); }
// The leading sign bits after the first are the leading zeros of a ^ (a shifted right by one).
GPUSIM_SEM cls64(GPUSIM_A) {
  return clz64<D>(D::or_(D::shl(D::xor_(a, D::sar(a, 1)), 1), D::konst(1)));
}
GPUSIM_SEM cls32(GPUSIM_A) {
  const typename D::V s = high<D>(a);
  return clz64<D>(D::or_(D::shl(D::xor_(s, D::sar(s, 1)), 1), D::konst(uint64_t{1} << 32)));
}
GPUSIM_SEM rev16(GPUSIM_A) { return swap_bits<D>(a, 0x00ff00ff00ff00ff, 8); }
GPUSIM_SEM rev32(GPUSIM_A) { return swap_bits<D>(rev16<D>(a), 0x0000ffff0000ffff, 16); }
GPUSIM_SEM rev64(GPUSIM_A) { return swap_bits<D>(rev32<D>(a), 0x00000000ffffffff, 32); }
GPUSIM_SEM rbit64(GPUSIM_A) {
  const typename D::V r1 = swap_bits<D>(a, 0x5555555555555555, 1);
  const typename D::V r2 = swap_bits<D>(r1, 0x3333333333333333, 2);
  return rev64<D>(swap_bits<D>(r2, 0x0f0f0f0f0f0f0f0f, 4));
}
GPUSIM_SEM rbit32(GPUSIM_A) { return D::shr(rbit64<D>(a), 32); }

// --- multiply and divide
GPUSIM_SEM mul64(GPUSIM_AB) { return D::mul(a, b); }
GPUSIM_SEM mul32(GPUSIM_AB) { return low32<D>(D::mul_u32(a, b)); }
GPUSIM_SEM mulw(GPUSIM_AB) { return sext32<D>(D::mul_u32(a, b)); }
GPUSIM_SEM madd64(GPUSIM_ABC) { return D::add(c, D::mul(a, b)); }
GPUSIM_SEM madd32(GPUSIM_ABC) { return low32<D>(D::add(c, D::mul_u32(a, b))); }
GPUSIM_SEM msub64(GPUSIM_ABC) { return D::sub(c, D::mul(a, b)); }
GPUSIM_SEM msub32(GPUSIM_ABC) { return low32<D>(D::sub(c, D::mul_u32(a, b))); }
GPUSIM_SEM smaddl(GPUSIM_ABC) { return D::add(c, D::mul_s32(a, b)); }
GPUSIM_SEM umaddl(GPUSIM_ABC) { return D::add(c, D::mul_u32(a, b)); }
GPUSIM_SEM smsubl(GPUSIM_ABC) { return D::sub(c, D::mul_s32(a, b)); }
GPUSIM_SEM umsubl(GPUSIM_ABC) { return D::sub(c, D::mul_u32(a, b)); }
GPUSIM_SEM smulh(GPUSIM_AB) { return D::mulhi_s(a, b); }
GPUSIM_SEM umulh(GPUSIM_AB) { return D::mulhi_u(a, b); }
struct DivideUnsigned {
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b) const { return b ? a / b : 0; }
};
struct DivideSigned {
  GPUSIM_HD_INLINE uint64_t operator()(uint64_t a, uint64_t b) const {
    if (b == 0) return 0;
    if (b == ~uint64_t{0}) return 0 - a;  // also INT_MIN / -1
    return static_cast<uint64_t>(static_cast<int64_t>(a) / static_cast<int64_t>(b));
  }
};
GPUSIM_SEM udiv64(GPUSIM_AB) { return D::map(DivideUnsigned{}, a, b); }
GPUSIM_SEM udiv32(GPUSIM_AB) { return D::quotient33(low32<D>(a), low32<D>(b)); }
GPUSIM_SEM sdiv64(GPUSIM_AB) { return D::map(DivideSigned{}, a, b); }
GPUSIM_SEM sdiv32(GPUSIM_AB) { return low32<D>(D::quotient33(sext32<D>(a), sext32<D>(b))); }

// --- flags
GPUSIM_SEM nz(GPUSIM_A) {
  const typename D::V n = D::and_(D::shr(a, D::kBits - 4), D::konst(8));
  return D::or_(n, D::select(D::eq(a, D::konst(0)), D::konst(4), D::konst(0)));
}
// Flags of r = a + b + carry-in: the carry is the majority of a, b and not r at the top bit.
GPUSIM_SEM flags_of_sum(GPUSIM_AB, const typename D::V r) {
  const typename D::V carries = D::or_(D::and_(a, b), D::andnot(D::or_(a, b), r));
  const typename D::V c = D::and_(D::shr(carries, D::kBits - 2), D::konst(2));
  const typename D::V v = top_bit<D>(D::andnot(D::xor_(a, r), D::xor_(a, b)));
  return D::or_(nz<D>(r), D::or_(c, v));
}
GPUSIM_SEM fl_add64(GPUSIM_AB) { return flags_of_sum<D>(a, b, D::add(a, b)); }
GPUSIM_SEM fl_add32(GPUSIM_AB) { return fl_add64<D>(high<D>(a), high<D>(b)); }
GPUSIM_SEM fl_sub64(GPUSIM_AB) {
  const typename D::V r = D::sub(a, b);
  const typename D::V c = D::select(D::lt_u(a, b), D::konst(0), D::konst(2));
  const typename D::V v = top_bit<D>(D::and_(D::xor_(a, b), D::xor_(a, r)));
  return D::or_(nz<D>(r), D::or_(c, v));
}
GPUSIM_SEM fl_sub32(GPUSIM_AB) { return fl_sub64<D>(high<D>(a), high<D>(b)); }
GPUSIM_SEM fl_adc64(GPUSIM_ABC) { return flags_of_sum<D>(a, b, adc64<D>(a, b, c)); }
GPUSIM_SEM fl_adc32(GPUSIM_ABC) {
  const typename D::V r = D::add(D::add(high<D>(a), high<D>(b)), high<D>(carry_of<D>(c)));
  return flags_of_sum<D>(high<D>(a), high<D>(b), r);
}
GPUSIM_SEM fl_nz64(GPUSIM_A) { return nz<D>(a); }
GPUSIM_SEM fl_nz32(GPUSIM_A) { return nz<D>(high<D>(a)); }

// --- conditions
GPUSIM_SEM truth(GPUSIM_A, GPUSIM_U) {
  const typename D::V flags = D::and_(a, D::konst(15));
  return D::and_(D::shr_v(D::konst(u.imm16()), flags), D::konst(1));
}
GPUSIM_MASK holds(GPUSIM_A, GPUSIM_U) { return D::eq(truth<D>(a, u), D::konst(1)); }
GPUSIM_SEM cset(GPUSIM_A, GPUSIM_U) { return truth<D>(a, u); }
GPUSIM_SEM csel64(GPUSIM_ABC, GPUSIM_U) { return D::select(holds<D>(c, u), a, b); }
GPUSIM_SEM csel32(GPUSIM_ABC, GPUSIM_U) { return low32<D>(csel64<D>(a, b, c, u)); }
GPUSIM_SEM csinc64(GPUSIM_ABC, GPUSIM_U) { return csel64<D>(a, D::add(b, D::konst(1)), c, u); }
GPUSIM_SEM csinc32(GPUSIM_ABC, GPUSIM_U) { return low32<D>(csinc64<D>(a, b, c, u)); }
GPUSIM_SEM csinv64(GPUSIM_ABC, GPUSIM_U) { return csel64<D>(a, D::not_(b), c, u); }
GPUSIM_SEM csinv32(GPUSIM_ABC, GPUSIM_U) { return low32<D>(csinv64<D>(a, b, c, u)); }
GPUSIM_SEM csneg64(GPUSIM_ABC, GPUSIM_U) { return csel64<D>(a, D::sub(D::konst(0), b), c, u); }
GPUSIM_SEM csneg32(GPUSIM_ABC, GPUSIM_U) { return low32<D>(csneg64<D>(a, b, c, u)); }

GPUSIM_SEM select_by_comparison(GPUSIM_ABC, const typename D::V e, GPUSIM_U) {
  const CompareKind kind = CompareKind::unpack(u.aux);
  const int up = kind.is_32bit ? D::kBits - 32 : 0;
  const typename D::V x = D::shl(c, up);
  const typename D::V y = D::shl(e, up);
  const typename D::V mask = D::konst(kind.narrow_result ? 0xffffffffu : ~uint64_t{0});
  switch (kind.relation) {
    case CompareRelation::kEqual: return D::and_(D::select(D::eq(x, y), a, b), mask);
    case CompareRelation::kLessSigned: return D::and_(D::select(D::lt_s(x, y), a, b), mask);
    default: return D::and_(D::select(D::lt_u(x, y), a, b), mask);
  }
}
GPUSIM_SEM sel_cmp(GPUSIM_ABC, const typename D::V e, GPUSIM_U) {
  return select_by_comparison<D>(a, b, c, e, u);
}
GPUSIM_SEM sel_cmpi(GPUSIM_ABC, GPUSIM_U) {
  return select_by_comparison<D>(a, b, c, D::konst(u.imm), u);
}

// --- branch conditions
GPUSIM_MASK br_eq64(GPUSIM_AB) { return D::eq(a, b); }
GPUSIM_MASK br_ne64(GPUSIM_AB) { return D::m_not(D::eq(a, b)); }
GPUSIM_MASK br_lt64(GPUSIM_AB) { return D::lt_s(a, b); }
GPUSIM_MASK br_ge64(GPUSIM_AB) { return D::m_not(D::lt_s(a, b)); }
GPUSIM_MASK br_ltu64(GPUSIM_AB) { return D::lt_u(a, b); }
GPUSIM_MASK br_geu64(GPUSIM_AB) { return D::m_not(D::lt_u(a, b)); }
GPUSIM_MASK br_eq32(GPUSIM_AB) { return D::eq(high<D>(a), high<D>(b)); }
GPUSIM_MASK br_ne32(GPUSIM_AB) { return D::m_not(br_eq32<D>(a, b)); }
GPUSIM_MASK br_lt32(GPUSIM_AB) { return D::lt_s(high<D>(a), high<D>(b)); }
GPUSIM_MASK br_ge32(GPUSIM_AB) { return D::m_not(br_lt32<D>(a, b)); }
GPUSIM_MASK br_ltu32(GPUSIM_AB) { return D::lt_u(high<D>(a), high<D>(b)); }
GPUSIM_MASK br_geu32(GPUSIM_AB) { return D::m_not(br_ltu32<D>(a, b)); }
GPUSIM_SEM small_imm(GPUSIM_U) {
  return D::konst(static_cast<uint64_t>(int64_t{static_cast<int16_t>(u.imm16())}));
}
#define GPUSIM_BRANCH_IMM(cond) \
  GPUSIM_MASK bri_##cond(GPUSIM_A, GPUSIM_U) { return br_##cond<D>(a, small_imm<D>(u)); }
GPUSIM_BRANCH_IMM(eq64)
GPUSIM_BRANCH_IMM(ne64)
GPUSIM_BRANCH_IMM(lt64)
GPUSIM_BRANCH_IMM(ge64)
GPUSIM_BRANCH_IMM(ltu64)
GPUSIM_BRANCH_IMM(geu64)
GPUSIM_BRANCH_IMM(eq32)
GPUSIM_BRANCH_IMM(ne32)
GPUSIM_BRANCH_IMM(lt32)
GPUSIM_BRANCH_IMM(ge32)
GPUSIM_BRANCH_IMM(ltu32)
GPUSIM_BRANCH_IMM(geu32)
#undef GPUSIM_BRANCH_IMM
GPUSIM_MASK br_bit0(GPUSIM_A, GPUSIM_U) {
  return D::eq(D::and_(a, D::konst(uint64_t{1} << (u.imm16() & 63))), D::konst(0));
}
GPUSIM_MASK br_bit1(GPUSIM_A, GPUSIM_U) { return D::m_not(br_bit0<D>(a, u)); }
GPUSIM_MASK br_cond(GPUSIM_A, GPUSIM_U) { return holds<D>(a, u); }

GPUSIM_SEM_END
#endif
