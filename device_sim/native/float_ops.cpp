#include "device_sim/native/float_ops.h"

#include <bit>

#include "device_sim/uir/fp_aux.h"

namespace gpusim::native {

namespace {

using V = Domain::V;
Piece& piece() { return Domain::piece(); }

void compare(x86::Xmm a, x86::Xmm b, bool is_double) {
  piece().emit(is_double ? Inst::kIdVucomisd : Inst::kIdVucomiss, a, b);
}
void leave_nan(x86::Xmm a, bool is_double) {
  compare(a, a, is_double);
  piece().jump_cold(CondCode::kP);
}

// NZCV of a comparison.
V flags(const V& a, const V& b, bool is_double) {
  compare(Domain::xmm(a), Domain::xmm(b), is_double);
  piece().jump_cold(CondCode::kP);
  const x86::Gp r = piece().gp(), other = piece().gp();
  const auto set = [](x86::Gp to, uint32_t value) {
    piece().emit(Inst::kIdMov, to.r32(), asmjit::imm(value));
  };
  set(r, 0b0010);
  set(other, 0b0110);
  piece().emit(Inst::cmovccFromCond(CondCode::kE), r, other);
  const x86::Gp less = piece().gp();
  set(less, 0b1000);
  piece().emit(Inst::cmovccFromCond(CondCode::kB), r, less);
  return Domain::in_gp(r, true);
}

V promoted(const V& a) {
  const x86::Xmm x = Domain::xmm(a), r = piece().xmm();
  leave_nan(x, false);
  piece().emit(Inst::kIdVcvtss2sd, r, x, x);
  return Domain::in_xmm(r);
}

V demoted(const V& a) {
  const x86::Xmm x = Domain::xmm(a), narrow = piece().xmm();
  piece().emit(Inst::kIdVcvtsd2ss, narrow, x, x);
  const V r = Domain::in_xmm(narrow);
  Domain::clear_high(r);
  // Subnormal results raise more than IXC. Zeros are exact only of zeros.
  const Domain::M normal = sem::FpOne<Domain, float>::in_range(r, 2);
  if (!Domain::all(Domain::m_or(normal, sem::FpOne<Domain, double>::is_zero(a))))
    return Domain::unsupported();
  return r;
}

// c + a * b. A zero is exact if something cancels that is far above the least number, as the
// product's last bit is then, or if both parts are zero.
template <class T>
V fused(const V& a, const V& b, const V& c) {
  using K = sem::FpOne<Domain, T>;
  const V r = K::fma(a, b, c);
  const Domain::M normal = K::in_range(r, 2);
  const Domain::M cancels = K::in_range(c, 2 * K::kPrecision + 4);
  const Domain::M zeros =
      Domain::m_and(K::is_zero(c), Domain::m_or(K::is_zero(a), K::is_zero(b)));
  const Domain::M exact = Domain::m_and(K::is_zero(r), Domain::m_or(cancels, zeros));
  if (!Domain::all(Domain::m_or(normal, exact))) return Domain::unsupported();
  return r;
}

// The immediate of VROUND, if the machine has the mode: with the inexact exception.
constexpr int kQuiet = 8;  // without it
std::optional<int> rounding_immediate(FpRounding rounding) {
  switch (rounding) {
    case FpRounding::kNearestEven:
    case FpRounding::kFpcr:
    case FpRounding::kFpcrExact:
      return 0;
    case FpRounding::kMinusInf:
      return 1;
    case FpRounding::kPlusInf:
      return 2;
    case FpRounding::kZero:
      return 3;
    case FpRounding::kNearestAway:
      break;
  }
  return {};
}

x86::Xmm rounded(x86::Xmm x, bool is_double, int immediate) {
  const x86::Xmm r = piece().xmm();
  piece().emit(is_double ? Inst::kIdVroundsd : Inst::kIdVroundss, r, x, x, asmjit::imm(immediate));
  return r;
}

V integral(const V& a, bool is_double, int immediate) {
  const x86::Xmm x = Domain::xmm(a);
  leave_nan(x, is_double);
  const V r = Domain::in_xmm(rounded(x, is_double, immediate));
  if (!is_double) Domain::clear_high(r);
  return r;
}

x86::Xmm constant(double value, bool is_double) {
  const x86::Gp bits = piece().gp();
  const x86::Xmm r = piece().xmm();
  Domain::load_konst(bits, is_double ? std::bit_cast<uint64_t>(value)
                                     : std::bit_cast<uint32_t>(static_cast<float>(value)));
  piece().emit(Inst::kIdVmovq, r, bits);
  return r;
}

// What does not fit is invalid and not inexact: it leaves before the machine looks at fractions,
// except where that finds the same. The least integer, which the machine gives then, leaves, too.
V to_integer(const V& a, bool is_double, FpRounding rounding, bool is_signed, bool is_64) {
  x86::Xmm x = Domain::xmm(a);
  const bool rounds = rounding != FpRounding::kZero;
  if (!is_signed || (!is_64 && rounds)) {
    // Floats next to the greatest integers of 32 bits.
    const double most = is_signed ? (is_double ? 2147483647.0 : 2147483520.0)
                                  : (is_double ? 4294967295.0 : 4294967040.0);
    compare(x, constant(is_signed ? -most : 0, is_double), is_double);
    piece().jump_cold(CondCode::kB);  // or not a number
    if (!is_64) {
      compare(constant(most, is_double), x, is_double);
      piece().jump_cold(CondCode::kB);
    }
  }
  if (rounds) x = rounded(x, is_double, *rounding_immediate(rounding));
  const x86::Gp r = piece().gp();
  const InstId convert = is_double ? Inst::kIdVcvttsd2si : Inst::kIdVcvttss2si;
  if (is_signed) {
    const x86::Gp sized = is_64 ? r : r.r32();
    piece().emit(convert, sized, x);
    piece().emit(Inst::kIdCmp, sized, asmjit::imm(1));
    piece().jump_cold(CondCode::kO);
    return Domain::in_gp(r, !is_64);
  }
  piece().emit(convert, r, x);
  if (is_64) {
    piece().emit(Inst::kIdTest, r, r);
    piece().jump_cold(CondCode::kS);
  }
  return Domain::in_gp(r, !is_64);
}

V from_integer(const V& a, bool is_double, bool is_signed, bool is_64) {
  const V value = is_64 ? a : is_signed ? Domain::sar(Domain::shl(a, 32), 32) : Domain::low(a);
  const x86::Gp x = Domain::gp(value);
  if (is_64 && !is_signed) {
    piece().emit(Inst::kIdTest, x, x);
    piece().jump_cold(CondCode::kS);
  }
  const x86::Xmm zero = piece().xmm(), r = piece().xmm();
  piece().emit(Inst::kIdVpxor, zero, zero, zero);
  piece().emit(is_double ? Inst::kIdVcvtsi2sd : Inst::kIdVcvtsi2ss, r, zero, x);
  return Domain::in_xmm(r);
}

}  // namespace

std::optional<V> machine_float(const Uop& u, const V& a, const V& b, const V& c) {
  if (u.op == Op::fma32) return fused<float>(a, b, c);
  if (u.op == Op::fma64) return fused<double>(a, b, c);
  const auto format = static_cast<FpFormat>(u.aux & 3);
  if (format == FpFormat::kF16) return {};
  const bool is_double = format == FpFormat::kF64;
  switch (u.op) {
    case Op::fcmp:
      return flags(a, b, is_double);
    case Op::fconvert:
      switch (static_cast<FpFormat>(u.aux >> 2 & 3)) {
        case FpFormat::kF64:
          if (is_double) return {};
          return promoted(a);
        case FpFormat::kF32:
          if (!is_double || u.aux >> 4 != 0) return {};  // the same, or rounded to odd
          return demoted(a);
        default:
          return {};
      }
    case Op::fround:
      if (const auto rounding = static_cast<FpRounding>(u.aux >> 2);
          const auto immediate = rounding_immediate(rounding))
        return integral(a, is_double,
                        rounding == FpRounding::kFpcrExact ? *immediate : *immediate | kQuiet);
      return {};
    case Op::i2f:
      if (u.imm != 0) return {};
      return from_integer(a, is_double, u.aux & 32, u.aux & 64);
    case Op::f2i: {
      const auto rounding = static_cast<FpRounding>(u.aux >> 2 & 7);
      if (u.imm != 0 || !rounding_immediate(rounding)) return {};
      return to_integer(a, is_double, rounding, u.aux & 32, u.aux & 64);
    }
    default:
      return {};
  }
}

}  // namespace gpusim::native
