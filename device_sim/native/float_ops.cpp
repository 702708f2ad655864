#include "device_sim/native/float_ops.h"

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

// The immediate of VROUND, if the machine has the mode: without the inexact exception.
std::optional<int> rounding_immediate(FpRounding rounding) {
  constexpr int kQuiet = 8;
  switch (rounding) {
    case FpRounding::kNearestEven:
    case FpRounding::kFpcr:
    case FpRounding::kFpcrExact:
      return kQuiet | 0;
    case FpRounding::kMinusInf:
      return kQuiet | 1;
    case FpRounding::kPlusInf:
      return kQuiet | 2;
    case FpRounding::kZero:
      return kQuiet | 3;
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

// What does not fit becomes the least integer of 64 bits, which leaves by every way.
V to_integer(const V& a, bool is_double, FpRounding rounding, bool is_signed, bool is_64) {
  x86::Xmm x = Domain::xmm(a);
  if (rounding != FpRounding::kZero) x = rounded(x, is_double, *rounding_immediate(rounding));
  const x86::Gp r = piece().gp();
  piece().emit(is_double ? Inst::kIdVcvttsd2si : Inst::kIdVcvttss2si, r, x);
  if (is_64 && is_signed) {
    piece().emit(Inst::kIdCmp, r, asmjit::imm(1));
    piece().jump_cold(CondCode::kO);
  } else if (is_64) {
    piece().emit(Inst::kIdTest, r, r);
    piece().jump_cold(CondCode::kS);
  } else if (is_signed) {
    const x86::Gp wide = piece().gp();
    piece().emit(Inst::kIdMovsxd, wide, r.r32());
    piece().emit(Inst::kIdCmp, wide, r);
    piece().jump_cold(CondCode::kNE);
    return Domain::low(Domain::in_gp(r));
  } else {
    const x86::Gp high = piece().gp();
    piece().emit(Inst::kIdMov, high, r);
    piece().emit(Inst::kIdShr, high, asmjit::imm(32));
    piece().jump_cold(CondCode::kNE);
    return Domain::in_gp(r, true);
  }
  return Domain::in_gp(r);
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
      if (const auto immediate = rounding_immediate(static_cast<FpRounding>(u.aux >> 2)))
        return integral(a, is_double, *immediate);
      return {};
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
