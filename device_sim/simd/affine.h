// Arithmetic on compact values: lane l of a group holds base + l * stride.
//
// Loop counters, pointers and addresses of programs that divide work by core number have this form,
// so one scalar operation serves all lanes. A rule gives the exact result in every lane 0 .. last
// or says no; then the lanes are computed one by one. Stride 0 is a uniform value.
#pragma once
#include <bit>
#include <cstdint>

#include "device_sim/uir/uop.h"

namespace gpusim::simd {

struct Compact {
  uint64_t base = 0;
  uint64_t stride = 0;
  constexpr uint64_t at(uint64_t lane) const { return base + lane * stride; }
};

__extension__ using Wide = __int128;  // differences of 64-bit values do not overflow it

// Whether the values, read as unsigned, run from the first to the last lane without wrapping.
constexpr bool runs_unsigned(Compact x, uint32_t last) {
  return Wide{x.at(last)} - Wide{x.base} == Wide{static_cast<int64_t>(x.stride)} * last;
}
constexpr bool runs_signed(Compact x, uint32_t last) {
  return Wide{static_cast<int64_t>(x.at(last))} - Wide{static_cast<int64_t>(x.base)} ==
         Wide{static_cast<int64_t>(x.stride)} * last;
}

// The low 32 bits, zero-extended or sign-extended; false if some lane wraps.
constexpr bool low32(Compact x, uint32_t last, Compact& out) {
  const uint64_t base = static_cast<uint32_t>(x.base);
  const Wide end = Wide{base} + Wide{static_cast<int64_t>(x.stride)} * last;
  out = {base, x.stride};
  return end >= 0 && end < Wide{1} << 32;
}
constexpr bool runs_in_32_bits(Compact x, uint32_t last) {
  Compact unused;
  return x.base >> 32 == 0 && low32(x, last, unused);
}
// The low `bits` bits, 0 < bits <= 64, sign-extended.
constexpr bool sign_extended(Compact x, uint32_t bits, uint32_t last, Compact& out) {
  const auto base = static_cast<int64_t>(x.base << (64 - bits)) >> (64 - bits);
  const Wide end = Wide{base} + Wide{static_cast<int64_t>(x.stride)} * last;
  const Wide limit = Wide{1} << (bits - 1);
  out = {static_cast<uint64_t>(base), x.stride};
  return end >= -limit && end < limit;
}
constexpr bool sext32(Compact x, uint32_t last, Compact& out) {
  return sign_extended(x, 32, last, out);
}

constexpr bool is_low_mask(uint64_t mask) { return (mask & (mask + 1)) == 0; }
constexpr uint64_t low_mask(uint32_t bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}
// Whether all lanes agree in what is above the low `bits` bits: no lane's carries into it.
constexpr bool agree_above(Compact x, uint32_t bits, uint32_t last) {
  const Wide end = Wide{x.base & low_mask(bits)} + Wide{static_cast<int64_t>(x.stride)} * last;
  return end >= 0 && end <= Wide{low_mask(bits)};
}
// x & mask: of the low bits, where none of them carries; or of bits that are the same in all lanes.
constexpr bool masked(Compact x, uint64_t mask, uint32_t last, Compact& out) {
  const auto bits = static_cast<uint32_t>(64 - std::countl_zero(mask));
  const auto below = static_cast<uint32_t>(mask == 0 ? 64 : std::countr_zero(mask));
  out = {x.base & mask, below == 0 ? x.stride : 0};
  if (mask == 0) return true;
  return below == 0 ? is_low_mask(mask) && agree_above(x, bits, last) : agree_above(x, below, last);
}

constexpr Compact plus(Compact a, Compact b) { return {a.base + b.base, a.stride + b.stride}; }
constexpr Compact minus(Compact a, Compact b) { return {a.base - b.base, a.stride - b.stride}; }
constexpr Compact shifted(Compact a, uint64_t n) {
  return {a.base << (n & 63), a.stride << (n & 63)};
}
constexpr bool times(Compact a, Compact b, Compact& out) {
  if (a.stride != 0 && b.stride != 0) return false;
  out = {a.base * b.base, a.stride * b.base + b.stride * a.base};
  return true;
}

// Quotients of a run that does not wrap are equal if those of its ends are. Remainders are affine
// then: neighbours that share a row of an array have their columns so.
constexpr bool quotient(Compact a, Compact b, uint32_t last, Compact& out) {
  if (b.stride != 0 || !runs_unsigned(a, last)) return false;
  out = {b.base == 0 ? 0 : a.base / b.base, 0};
  return b.base == 0 || a.at(last) / b.base == out.base;
}
constexpr bool signed_quotient(Compact a, Compact b, uint32_t last, Compact& out) {
  const auto divisor = static_cast<int64_t>(b.base);
  if (b.stride != 0 || divisor <= 0 || !runs_signed(a, last)) return false;
  const int64_t first = static_cast<int64_t>(a.base) / divisor;
  out = {static_cast<uint64_t>(first), 0};
  return static_cast<int64_t>(a.at(last)) / divisor == first;
}

// d = op(a, b, c) in every lane, or false. Rows with a rule have the trait kAffine.
template <Op op>
constexpr bool affine_rule(const Uop& u, uint32_t last, Compact a, Compact b, Compact c,
                           Compact& d) {
  const Compact i{u.imm, 0};
  Compact t;
  switch (op) {
    case Op::mov: d = a; return true;
    case Op::mov32: return low32(a, last, d);
    case Op::add64: d = plus(a, b); return true;
    case Op::addi64: d = plus(a, i); return true;
    case Op::sub64: d = minus(a, b); return true;
    case Op::add_lsl64: d = plus(a, shifted(b, u.imm)); return true;
    case Op::sub_lsl64: d = minus(a, shifted(b, u.imm)); return true;
    case Op::lsli64: d = shifted(a, u.imm); return true;
    case Op::add32: return low32(plus(a, b), last, d);
    case Op::addi32: return low32(plus(a, i), last, d);
    case Op::sub32: return low32(minus(a, b), last, d);
    case Op::add_lsl32: return low32(plus(a, shifted(b, u.imm)), last, d);
    case Op::sub_lsl32: return low32(minus(a, shifted(b, u.imm)), last, d);
    case Op::lsli32: return low32(shifted(a, u.imm), last, d);
    case Op::add_sxtw64:
      if (!sext32(b, last, t)) return false;
      d = plus(a, shifted(t, u.imm));
      return true;
    case Op::add_uxtw64:
      if (!low32(b, last, t)) return false;
      d = plus(a, shifted(t, u.imm));
      return true;
    case Op::addw: return sext32(plus(a, b), last, d);
    case Op::addiw: return sext32(plus(a, i), last, d);
    case Op::subw: return sext32(minus(a, b), last, d);
    case Op::mulw: return times(a, b, t) && sext32(t, last, d);
    // Of what all lanes have in common above the cut: a field of a packed word.
    case Op::lsri64:
      d = {a.base >> (u.imm & 63), 0};
      return agree_above(a, u.imm & 63, last);
    case Op::asri64:
      d = {static_cast<uint64_t>(static_cast<int64_t>(a.base) >> (u.imm & 63)), 0};
      return agree_above(a, u.imm & 63, last);
    case Op::lsri32:
      d = {uint64_t{static_cast<uint32_t>(a.base)} >> (u.imm & 31), 0};
      return agree_above(a, u.imm & 31, last);
    case Op::mul64: return times(a, b, d);
    case Op::mul32: return times(a, b, t) && low32(t, last, d);
    case Op::madd64:
      if (!times(a, b, t)) return false;
      d = plus(c, t);
      return true;
    case Op::madd32: return times(a, b, t) && low32(plus(c, t), last, d);
    case Op::msub64:
      if (!times(a, b, t)) return false;
      d = minus(c, t);
      return true;
    case Op::msub32: return times(a, b, t) && low32(minus(c, t), last, d);
    case Op::udiv64: return quotient(a, b, last, d);
    case Op::udiv32:
      return low32(a, last, t) && quotient(t, {b.base & 0xffffffff, b.stride}, last, d);
    case Op::sdiv64: return signed_quotient(a, b, last, d);
    case Op::sdiv32: {
      const auto divisor = static_cast<uint64_t>(int64_t{static_cast<int32_t>(b.base)});
      if (!sext32(a, last, t) || !signed_quotient(t, {divisor, b.stride}, last, d)) return false;
      d.base &= 0xffffffff;
      return true;
    }
    case Op::umaddl:
    case Op::smaddl: {
      Compact x, y;
      const bool fit = op == Op::umaddl ? low32(a, last, x) && low32(b, last, y)
                                        : sext32(a, last, x) && sext32(b, last, y);
      if (!fit || !times(x, y, t)) return false;
      d = plus(c, t);
      return true;
    }
    case Op::andi64: return masked(a, u.imm, last, d);
    case Op::ubfiz:  // the bits below the mask are zero
      return masked(shifted(a, u.aux), u.imm | low_mask(u.aux), last, d);
    case Op::ubfx:
      if (u.aux == 0) return masked(a, u.imm, last, d);
      d = {(a.base >> u.aux) & u.imm, 0};
      return agree_above(a, u.aux, last);
    case Op::sbf64: {
      const auto left = static_cast<uint32_t>(u.imm), right = uint32_t{u.aux};
      if (left >= right) return sign_extended(shifted(a, left - right), 64 - right, last, d);
      d = {static_cast<uint64_t>(static_cast<int64_t>(a.base << left) >> right), 0};
      return agree_above(a, right - left, last);
    }
    default: return false;
  }
}

// --- comparisons

enum class Relation : uint8_t { kNone, kEqual, kLess };
struct Comparison {
  Relation relation = Relation::kNone;
  bool negated = false;  // ne, ge
  bool is_signed = false;
  bool is_32bit = false;
  bool immediate = false;
};
constexpr Comparison comparison_of(Op op) {
  switch (op) {
#define GPUSIM_COMPARISONS(bits, narrow)                                          \
  case Op::br_eq##bits: return {Relation::kEqual, false, false, narrow, false};   \
  case Op::br_ne##bits: return {Relation::kEqual, true, false, narrow, false};    \
  case Op::br_lt##bits: return {Relation::kLess, false, true, narrow, false};     \
  case Op::br_ge##bits: return {Relation::kLess, true, true, narrow, false};      \
  case Op::br_ltu##bits: return {Relation::kLess, false, false, narrow, false};   \
  case Op::br_geu##bits: return {Relation::kLess, true, false, narrow, false};    \
  case Op::bri_eq##bits: return {Relation::kEqual, false, false, narrow, true};   \
  case Op::bri_ne##bits: return {Relation::kEqual, true, false, narrow, true};    \
  case Op::bri_lt##bits: return {Relation::kLess, false, true, narrow, true};     \
  case Op::bri_ge##bits: return {Relation::kLess, true, true, narrow, true};      \
  case Op::bri_ltu##bits: return {Relation::kLess, false, false, narrow, true};   \
  case Op::bri_geu##bits: return {Relation::kLess, true, false, narrow, true};
    GPUSIM_COMPARISONS(64, false)
    GPUSIM_COMPARISONS(32, true)
#undef GPUSIM_COMPARISONS
    default: return {};
  }
}

// Whether the branch goes the same way in all lanes, and which. Without wrapping, a - b runs evenly
// from its first to its last value, so its sign at both ends tells it in between.
template <Op op>
constexpr bool affine_branch(const Uop& u, uint32_t last, Compact a, Compact b, bool& taken) {
  constexpr Comparison k = comparison_of(op);
  if constexpr (k.relation == Relation::kNone) {
    return false;
  } else {
    if (k.immediate) b = {static_cast<uint64_t>(int64_t{static_cast<int16_t>(u.imm16())}), 0};
    if (k.is_32bit) {
      if (k.is_signed ? !sext32(a, last, a) || !sext32(b, last, b)
                      : !low32(a, last, a) || !low32(b, last, b))
        return false;
    } else if (k.is_signed ? !runs_signed(a, last) || !runs_signed(b, last)
                           : !runs_unsigned(a, last) || !runs_unsigned(b, last)) {
      return false;
    }
    const auto difference = [&](uint32_t lane) {
      const uint64_t x = a.at(lane), y = b.at(lane);
      return k.is_signed ? Wide{static_cast<int64_t>(x)} - Wide{static_cast<int64_t>(y)}
                         : Wide{x} - Wide{y};
    };
    const Wide first = difference(0), end = difference(last);
    if (k.relation == Relation::kLess) {
      taken = (first < 0) != k.negated;
      return (first < 0) == (end < 0);
    }
    taken = (first == 0) != k.negated;
    return (first == 0 && end == 0) || (first < 0 && end < 0) || (first > 0 && end > 0);
  }
}

}  // namespace gpusim::simd
