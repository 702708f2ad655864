// The execution domain whose values are registers of the code being generated. For a chunk of
// lanes, one register of 32-bit words (JitDomain<Isa, 32>) or two of 64-bit words (JitDomain<Isa,
// 64>); for a uniform value, one of equal words (JitDomain<Isa, 64, 1>). Isa: Avx512 or Avx2. Same
// primitives as uir/scalar_domain.h.
//
// A semantic function runs once, when code is generated, and leaves instructions behind. It cannot
// branch on guest data; where it asks whether something holds in all lanes, the generated code
// checks that it does and otherwise computes the micro-op lane by lane (Emitter::cold).
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "device_sim/simd/jit/emitter.h"
#include "device_sim/uir/fp_aux.h"
#include "device_sim/uir/scalar_domain.h"
#include "device_sim/uir/semantics_int.h"

namespace gpusim::simd {

template <class Isa, int kBitsOfWord, int kRegsOfValue = kBitsOfWord / 32>
struct JitDomain {
  static constexpr int kBits = kBitsOfWord;
  static constexpr int kRegs = kRegsOfValue;
  static constexpr bool kWide = kBits == 64;
  using Reg = typename Isa::Reg;
  using Mask = typename Isa::Mask;

  // Constants are folded. They keep 64 bits, so that conditions on the floating-point state can be
  // decided in the narrow domain too.
  struct V {
    bool is_konst = false;
    uint64_t k = 0;
    std::array<Reg, kRegs> r{};
  };
  struct M {
    bool is_konst = false;
    bool k = false;
    std::array<Mask, kRegs> r{};
  };

  static Isa& isa() { return Isa::current(); }
  static x86::Compiler& cc() { return isa().cc; }
  static Reg fresh() { return isa().fresh(); }
  static Mask fresh_mask() { return isa().fresh_mask(); }

  static V konst(uint64_t x) { return {true, x, {}}; }
  static M konst_mask(bool x) { return {true, x, {}}; }

  static Reg reg(const V& a, size_t h) {
    if (!a.is_konst) return a.r[h];
    const Reg z = fresh();
    const uint64_t k = kWide ? a.k : static_cast<uint32_t>(a.k);
    if (k == 0) isa().clear(z);
    else if constexpr (kWide) isa().broadcast64(z, isa().constant(&k, 8));
    else isa().broadcast32(z, isa().constant(&k, 4));
    return z;
  }
  static V in_registers(const V& a) {
    V d;
    for (size_t h = 0; h < kRegs; ++h) d.r[h] = reg(a, h);
    return d;
  }
  static asmjit::Operand operand(const V& b, size_t h) {
    if (b.is_konst) return isa().template repeated<kBits>(b.k);
    return b.r[h];
  }

  using Id = asmjit::InstId;
  template <class Emit> static V each_of(Emit emit, const V& a) {
    V d;
    for (size_t h = 0; h < kRegs; ++h) {
      d.r[h] = fresh();
      emit(d.r[h], reg(a, h));
    }
    return d;
  }
  template <class Emit> static V each_by(Emit emit, const V& a, const V& b) {
    V d;
    for (size_t h = 0; h < kRegs; ++h) {
      d.r[h] = fresh();
      emit(d.r[h], reg(a, h), operand(b, h));
    }
    return d;
  }
  static V each(Id id, const V& a, const V& b) {
    return each_by([id](auto... x) { cc().emit(id, x...); }, a, b);
  }
  // For instructions without a broadcast form.
  static V each_register(Id id, const V& a, const V& b) { return each(id, a, in_registers(b)); }
  static V commutative(Id id, const V& a, const V& b) {
    return a.is_konst ? each(id, b, a) : each(id, a, b);
  }
  static V by_count(Id id, const V& a, int n) {
    if (n == 0) return a;
    return each_of([=](auto... x) { cc().emit(id, x..., asmjit::imm(n)); }, a);
  }
  static constexpr Id pick(Id narrow, Id wide) { return kWide ? wide : narrow; }

  static V add(V a, V b) {
    if (b.is_konst && b.k == 0) return a;
    return commutative(pick(x86::Inst::kIdVpaddd, x86::Inst::kIdVpaddq), a, b);
  }
  static V sub(V a, V b) { return each(pick(x86::Inst::kIdVpsubd, x86::Inst::kIdVpsubq), a, b); }
  static V mul(V a, V b) {
    if constexpr (!kWide) return commutative(x86::Inst::kIdVpmulld, a, b);
    if (a.is_konst) std::swap(a, b);
    return each_by([](auto... x) { isa().mul64(x...); }, a, b);
  }
  static V mul_u32(V a, V b) {
    return commutative(pick(x86::Inst::kIdVpmulld, x86::Inst::kIdVpmuludq), a, b);
  }
  static V mul_s32(V a, V b) {
    return commutative(pick(x86::Inst::kIdVpmulld, x86::Inst::kIdVpmuldq), a, b);
  }
  // From the products of halves.
  static V mulhi_u(V a, V b) {
    if constexpr (!kWide) return unsupported(a);
    const V low = konst(0xffffffff), high_a = shr(in_registers(a), 32),
            high_b = shr(in_registers(b), 32);
    const V cross = mul_u32(high_a, b), other = mul_u32(high_b, a);
    const V middle =
        add(add(shr(mul_u32(a, b), 32), and_(cross, low)), and_(other, low));
    return add(add(mul_u32(high_a, high_b), shr(middle, 32)), add(shr(cross, 32), shr(other, 32)));
  }
  static V mulhi_s(V a, V b) {
    if constexpr (!kWide) return unsupported(a);
    const V zero = konst(0);
    return sub(sub(mulhi_u(a, b), select(lt_s(a, zero), b, zero)),
               select(lt_s(b, zero), a, zero));
  }
  static V and_(V a, V b) {
    if (a.is_konst && b.is_konst) return konst(a.k & b.k);
    if (a.is_konst) std::swap(a, b);
    const uint64_t all = kWide ? ~uint64_t{0} : 0xffffffffu;
    if (b.is_konst && (b.k & all) == all) return a;
    return each(Isa::kAnd[kWide], a, b);
  }
  static V or_(V a, V b) {
    if (a.is_konst && b.is_konst) return konst(a.k | b.k);
    if (a.is_konst) std::swap(a, b);
    if (b.is_konst && b.k == 0) return a;
    return each(Isa::kOr[kWide], a, b);
  }
  static V xor_(V a, V b) { return commutative(Isa::kXor[kWide], a, b); }
  static V andnot(V a, V b) {  // the instruction complements its first source
    if (b.is_konst) return and_(a, konst(~b.k));
    return each(Isa::kAndNot[kWide], b, a);
  }
  static V not_(V a) { return xor_(a, konst(~uint64_t{0})); }

  static V shl(V a, int n) {
    return by_count(pick(x86::Inst::kIdVpslld, x86::Inst::kIdVpsllq), a, n & (kBits - 1));
  }
  static V shr(V a, int n) {
    return by_count(pick(x86::Inst::kIdVpsrld, x86::Inst::kIdVpsrlq), a, n & (kBits - 1));
  }
  static V sar(V a, int n) {
    n &= kBits - 1;
    if constexpr (!kWide) return by_count(x86::Inst::kIdVpsrad, a, n);
    if (n == 0) return a;
    V d;
    for (size_t h = 0; h < kRegs; ++h) {
      d.r[h] = fresh();
      isa().sar64(d.r[h], reg(a, h), n);
    }
    return d;
  }
  static V count(V n) { return and_(n, konst(kBits - 1)); }
  static V shl_v(V a, V n) {
    return each(pick(x86::Inst::kIdVpsllvd, x86::Inst::kIdVpsllvq), a, count(n));
  }
  static V shr_v(V a, V n) {
    return each(pick(x86::Inst::kIdVpsrlvd, x86::Inst::kIdVpsrlvq), a, count(n));
  }
  static V sar_v(V a, V n) {
    if constexpr (!kWide) return each(x86::Inst::kIdVpsravd, a, count(n));
    return each_by([](auto... x) { isa().sar64_v(x...); }, a, count(n));
  }

  template <class Emit> static M compare(Emit emit, const V& a, const V& b) {
    M m;
    for (size_t h = 0; h < kRegs; ++h) {
      m.r[h] = fresh_mask();
      emit(m.r[h], reg(a, h), operand(b, h));
    }
    return m;
  }
  static M eq(V a, V b) {
    if (a.is_konst && b.is_konst) return konst_mask(a.k == b.k);
    if (a.is_konst) std::swap(a, b);
    if (!b.is_konst && a.r == b.r) return konst_mask(true);
    return compare([](auto... x) { isa().template equal<kBits>(x...); }, a, b);
  }
  static M lt_u(V a, V b) {
    if (a.is_konst && b.is_konst) return konst_mask(a.k < b.k);
    if constexpr (Isa::kMasksAreVectors) {
      return lt_s(flip_sign(a), flip_sign(b));
    } else {
      return compare([](auto... x) { isa().template below<kBits>(x...); }, a, b);
    }
  }
  static M lt_s(V a, V b) {
    if constexpr (Isa::kMasksAreVectors) {
      return compare([](auto... x) { isa().template greater<kBits>(x...); }, b, a);
    } else {
      return compare([](auto... x) { isa().template less<kBits>(x...); }, a, b);
    }
  }
  static V flip_sign(V a) {
    constexpr uint64_t sign = uint64_t{1} << (kBits - 1);
    return a.is_konst ? konst(a.k ^ sign) : xor_(a, konst(sign));
  }
  static M m_not(M m) {
    if (m.is_konst) return konst_mask(!m.k);
    M d;
    for (size_t h = 0; h < kRegs; ++h) {
      d.r[h] = fresh_mask();
      isa().template mask_not<kBits>(d.r[h], m.r[h]);
    }
    return d;
  }
  template <class Emit> static M both(Emit emit, const M& a, const M& b) {
    M d;
    for (size_t h = 0; h < kRegs; ++h) {
      d.r[h] = fresh_mask();
      emit(d.r[h], a.r[h], b.r[h]);
    }
    return d;
  }
  static M m_and(M a, M b) {
    if (a.is_konst) return a.k ? b : a;
    if (b.is_konst) return b.k ? a : b;
    return both([](auto... x) { isa().template mask_and<kBits>(x...); }, a, b);
  }
  static M m_or(M a, M b) {
    if (a.is_konst) return a.k ? a : b;
    if (b.is_konst) return b.k ? b : a;
    return both([](auto... x) { isa().template mask_or<kBits>(x...); }, a, b);
  }
  static bool is_zero(const V& a) {
    return a.is_konst && (kWide ? a.k : static_cast<uint32_t>(a.k)) == 0;
  }
  static V select(M m, V a, V b) {
    if (m.is_konst) return m.k ? a : b;
    if (a.is_konst && b.is_konst && a.k == b.k) return a;
    V d;
    if constexpr (Isa::kMasksAreVectors) {
      if (is_zero(a) || is_zero(b)) {
        const Id id = is_zero(b) ? Isa::kAnd[kWide] : Isa::kAndNot[kWide];
        for (size_t h = 0; h < kRegs; ++h) {
          d.r[h] = fresh();
          cc().emit(id, d.r[h], m.r[h], operand(is_zero(b) ? a : b, h));
        }
        return d;
      }
      for (size_t h = 0; h < kRegs; ++h) {
        d.r[h] = fresh();
        isa().select(d.r[h], m.r[h], reg(a, h), reg(b, h));
      }
      return d;
    } else {
      // Not by a blend: the register allocator takes what it writes for something that it reads, too,
      // and keeps it from one chunk to the next.
      for (size_t h = 0; h < kRegs; ++h) {
        const Reg chosen = reg(a, h);  // emits, so before the mask is set
        if (is_zero(b)) {
          d.r[h] = fresh();
          isa().template choose_or_zero<kBits>(d.r[h], m.r[h], chosen);
          continue;
        }
        d.r[h] = b.is_konst ? reg(b, h) : fresh();
        if (!b.is_konst) isa().move(d.r[h], b.r[h]);
        isa().template choose<kBits>(d.r[h], m.r[h], chosen);
      }
      return d;
    }
  }
  // Asked by semantic functions that have a quicker way if so. Otherwise the cold path computes the
  // micro-op.
  static bool all(M m) {
    if (m.is_konst) return m.k;
    if (std::exchange(isa().is_not_quick, false)) return false;
    isa().template jump_unless_all<kBits>(m.r, take_cold());
    return true;
  }
  template <class F, class... A>
  static V map(F, V a, A... others) {
    if constexpr (kWide && std::is_same_v<F, sem::CountLeadingZeros>) return leading_zeros(a);
    else if constexpr (kWide && std::is_same_v<F, sem::DivideUnsigned>)
      return quotient64(a, others...);
    else if constexpr (kWide && std::is_same_v<F, sem::DivideSigned>)
      return signed_quotient64(a, others...);
    else return unsupported(a);
  }
  template <class F, class... A>
  static V map_state(M where, V otherwise, F, V&, A...) {
    if (where.is_konst) return where.k ? unsupported(otherwise) : otherwise;
    isa().template jump_if_any<kBits>(where.r, take_cold());
    return otherwise;
  }
  static bool always(M m) { return m.is_konst && m.k; }
  static asmjit::Label take_cold() {
    isa().cold_used = true;
    return isa().cold;
  }
  // Everything is computed lane by lane; what the semantic function goes on to emit is not used.
  static V unsupported(V any) {
    isa().always_cold = true;
    return any;
  }

  // Of floats in 64-bit words, the high halves of sources may be anything; those of results are 0.
  template <class T> static V result(V r) {
    return kWide && sizeof(T) == 4 ? and_(r, konst(0xffffffffu)) : r;
  }
  template <class T> static V float_op(Id ps, Id pd, const V& a, const V& b) {
    const Id id = sizeof(T) == 8 ? pd : ps;
    const auto emit = [id](auto... x) {
      isa().round_next();
      cc().emit(id, x...);
    };
    // A single's broadcast would be the whole word; one that rounds itself has no memory operand.
    const bool by_memory = sizeof(T) == 8 && isa().rounding == softfloat::Rounding::kTieEven;
    return result<T>(each_by(emit, a, by_memory ? b : in_registers(b)));
  }
  // What `op` computes, rounded in this direction.
  template <class F> static V in_mode(softfloat::Rounding mode, F op) {
    if (mode == softfloat::Rounding::kTieEven) return op();
    isa().begin_rounding(mode);
    const V r = op();
    isa().end_rounding();
    return r;
  }
  template <class T> static V fadd(V a, V b) {
    return float_op<T>(x86::Inst::kIdVaddps, x86::Inst::kIdVaddpd, a, b);
  }
  template <class T> static V fsub(V a, V b) {
    return float_op<T>(x86::Inst::kIdVsubps, x86::Inst::kIdVsubpd, a, b);
  }
  template <class T> static V fmul(V a, V b) {
    return float_op<T>(x86::Inst::kIdVmulps, x86::Inst::kIdVmulpd, a, b);
  }
  // See the interpreter's (simd_domain-inl.h).
  static V quotient33(V a, V b) {
    if constexpr (!kWide) return unsupported(a);
    V q;
    for (size_t h = 0; h < kRegs; ++h) {
      q.r[h] = fresh();
      isa().quotient33(q.r[h], reg(a, h), reg(b, h));
    }
    return select(eq(b, konst(0)), konst(0), q);
  }
  template <class T> static V fdiv(V a, V b) {
    return float_op<T>(x86::Inst::kIdVdivps, x86::Inst::kIdVdivpd, a, b);
  }
  static V of_double(double x) { return konst(std::bit_cast<uint64_t>(x)); }
  // By the exponent of the upper 32 bits, or of the lower ones if there are none.
  static V leading_zeros(V a) {
    const V upper = shr(a, 32);
    const M is_low = eq(upper, konst(0));
    const V part = select(is_low, and_(a, konst(0xffffffff)), upper);
    const V number = fsub<double>(or_(part, of_double(0x1p52)), of_double(0x1p52));
    const V exponent = shr(number, 52);
    const V zeros = sub(select(is_low, konst(1023 + 63), konst(1023 + 31)), exponent);
    return select(eq(exponent, konst(0)), konst(64), zeros);
  }
  // Unsigned words of 64 bits as the nearest doubles, and doubles below 2^52, or whole ones up to
  // 2^64, cut off.
  static V to_double(V a) {
    const V upper = or_(shr(a, 32), of_double(0x1p84));
    const V lower = or_(and_(a, konst(0xffffffff)), of_double(0x1p52));
    return fadd<double>(fsub<double>(upper, of_double(0x1p84 + 0x1p52)), lower);
  }
  static V cut_small(V a) {
    const V whole = fround<double>(a, FpRounding::kZero);
    return and_(fadd<double>(whole, of_double(0x1p52)), konst((uint64_t{1} << 52) - 1));
  }
  static V cut(V a) {
    const V upper = fround<double>(fmul<double>(a, of_double(0x1p-32)), FpRounding::kZero);
    const V lower = fma<double>(upper, of_double(-0x1p32), a);
    return add(shl(cut_small(upper), 32), cut_small(lower));
  }
  // With the sign that `s`, all ones or zeros, says.
  static V signed_by(V a, V s) { return sub(xor_(a, s), s); }
  // a / b, unsigned; 0 if b is 0. A quotient of doubles is wrong by 2^-51 of it and 1 at most, and
  // what it leaves of a, divided again, by 1. Then the remainder lies between -2 b and 2 b.
  static V quotient64(V a, V b) {
    const M is_large = m_not(lt_u(b, konst(uint64_t{1} << 62)));
    const V of_large = few_times(a, b);
    b = select(is_large, konst(1), b);
    const V divisor = to_double(b);
    V q = cut(fdiv<double>(to_double(a), divisor));
    V rest = sub(a, mul(q, b));
    const V sign = sar(rest, 63);
    const V more =
        signed_by(cut_small(fdiv<double>(to_double(signed_by(rest, sign)), divisor)), sign);
    q = add(q, more);
    rest = sub(rest, mul(more, b));
    for (int k = 0; k < 2; ++k) {
      const V below = sar(rest, 63);
      q = add(q, below);
      rest = add(rest, and_(below, b));
    }
    q = select(lt_s(rest, b), q, add(q, konst(1)));
    return select(is_large, of_large, select(eq(b, konst(0)), konst(0), q));
  }
  // How many times a has b, which is 2^62 at least.
  static V few_times(V a, V b) {
    V q = konst(0);
    for (int k = 0; k < 3; ++k) {
      const M has = m_not(lt_u(a, b));
      q = select(has, konst(static_cast<uint64_t>(k) + 1), q);
      a = select(has, sub(a, b), a);
    }
    return q;
  }
  static V signed_quotient64(V a, V b) {
    const V sign_a = sar(a, 63), sign_b = sar(b, 63);
    const V q = quotient64(signed_by(a, sign_a), signed_by(b, sign_b));
    return signed_by(q, xor_(sign_a, sign_b));
  }
  static V each_sqrt(Id id, const V& a) {
    const auto emit = [id](auto... x) {
      isa().round_next();
      cc().emit(id, x...);
    };
    return each_of(emit, a);
  }
  template <class T> static V fsqrt(V a) {
    return result<T>(each_sqrt(sizeof(T) == 8 ? x86::Inst::kIdVsqrtpd : x86::Inst::kIdVsqrtps, a));
  }
  static V each_fma(Id id, const V& a, const V& b, const V& c) {
    V d;
    for (size_t h = 0; h < kRegs; ++h) {
      d.r[h] = c.is_konst ? reg(c, h) : fresh();
      if (!c.is_konst) isa().move(d.r[h], c.r[h]);
      const auto x = reg(a, h), y = reg(b, h);
      isa().round_next();
      cc().emit(id, d.r[h], x, y);
    }
    return d;
  }
  template <class T> static V fma(V a, V b, V c) {
    return result<T>(
        each_fma(sizeof(T) == 8 ? x86::Inst::kIdVfmadd231pd : x86::Inst::kIdVfmadd231ps, a, b, c));
  }
  // To an integer, in one of the four directions that the machine has.
  template <class T> static V fround(V a, FpRounding direction) {
    constexpr int kModes[] = {0, 2, 1, 3}, kQuietly = 8;
    const int mode = kModes[static_cast<int>(direction)] | kQuietly;
    return each_of(
        [mode](auto... x) { isa().template round_floats<8 * sizeof(T)>(x..., mode); }, a);
  }
  // Between floats in the low halves of words of 64 bits and doubles.
  static V widened(V a) {
    return each_of([](auto... x) { isa().widen_floats(x...); }, a);
  }
  static V narrowed(V a) {
    return each_of([](auto... x) { isa().narrow_doubles(x...); }, a);
  }
  // Between floats in the low halves of words of 64 bits and halves, whose words are zero above.
  static V of_halves(V a) {
    return each_of([](auto... x) { isa().widen_halves(x...); }, a);
  }
  static V to_halves(V a, softfloat::Rounding mode) {
    using enum softfloat::Rounding;
    const int rounding = mode == kNegInf ? 1 : mode == kPosInf ? 2 : mode == kZero ? 3 : 0;
    return each_of([rounding](auto... x) { isa().narrow_floats(x..., rounding); }, a);
  }
  // Quiet ordered comparisons.
  template <class T> static M float_compare(const V& a, const V& b, int predicate) {
    M m;
    for (size_t h = 0; h < kRegs; ++h) {
      m.r[h] = fresh_mask();
      isa().template compare_floats<kBits, 8 * sizeof(T)>(m.r[h], reg(a, h), reg(b, h), predicate);
    }
    return m;
  }
  template <class T> static M flt(V a, V b) { return float_compare<T>(a, b, 0x11); }
  template <class T> static M feq(V a, V b) { return float_compare<T>(a, b, 0x00); }

  // Two floats, one in each half of the word.
  static V fadd2(V a, V b) { return each_register(x86::Inst::kIdVaddps, a, b); }
  static V fsub2(V a, V b) { return each_register(x86::Inst::kIdVsubps, a, b); }
  static V fmul2(V a, V b) { return each_register(x86::Inst::kIdVmulps, a, b); }
  static V fdiv2(V a, V b) { return each_register(x86::Inst::kIdVdivps, a, b); }
  static V fma2(V a, V b, V c) { return each_fma(x86::Inst::kIdVfmadd231ps, a, b, c); }

  // Elements E: uint8_t, uint16_t or uint32_t.
  template <class E> static constexpr Id by_element(Id b, Id w, Id d) {
    return sizeof(E) == 1 ? b : sizeof(E) == 2 ? w : d;
  }
  template <class E> static V vadd(V a, V b) {
    return each_register(by_element<E>(x86::Inst::kIdVpaddb, x86::Inst::kIdVpaddw, x86::Inst::kIdVpaddd), a, b);
  }
  template <class E> static V vsub(V a, V b) {
    return each_register(by_element<E>(x86::Inst::kIdVpsubb, x86::Inst::kIdVpsubw, x86::Inst::kIdVpsubd), a, b);
  }
  template <class E> static V vmul(V a, V b) {
    if constexpr (sizeof(E) == 1) {  // no 8-bit multiply: even and odd bytes as 16-bit elements
      const V bytes = konst(0x00ff00ff00ff00ff);
      const V even = and_(vmul<uint16_t>(a, b), bytes);
      const V odd = vmul<uint16_t>(and_(shr(a, 8), bytes), and_(shr(b, 8), bytes));
      return or_(even, shl(and_(odd, bytes), 8));
    } else {
      return each_register(by_element<E>(0, x86::Inst::kIdVpmullw, x86::Inst::kIdVpmulld), a, b);
    }
  }
  template <class E> static V vmin_s(V a, V b) {
    return each_register(by_element<E>(x86::Inst::kIdVpminsb, x86::Inst::kIdVpminsw, x86::Inst::kIdVpminsd), a, b);
  }
  template <class E> static V vmax_s(V a, V b) {
    return each_register(by_element<E>(x86::Inst::kIdVpmaxsb, x86::Inst::kIdVpmaxsw, x86::Inst::kIdVpmaxsd), a, b);
  }
  template <class E> static V vmin_u(V a, V b) {
    return each_register(by_element<E>(x86::Inst::kIdVpminub, x86::Inst::kIdVpminuw, x86::Inst::kIdVpminud), a, b);
  }
  template <class E> static V vmax_u(V a, V b) {
    return each_register(by_element<E>(x86::Inst::kIdVpmaxub, x86::Inst::kIdVpmaxuw, x86::Inst::kIdVpmaxud), a, b);
  }
  template <class Emit> static V compare_elements(Emit emit, const V& a, const V& b) {
    V d;
    for (size_t h = 0; h < kRegs; ++h) {
      d.r[h] = fresh();
      emit(d.r[h], reg(a, h), reg(b, h));
    }
    return d;
  }
  template <class E> static V veq(V a, V b) {
    return compare_elements([](auto... x) { isa().template equal_elements<E>(x...); }, a, b);
  }
  template <class E> static V vgt_s(V a, V b) {
    return compare_elements([](auto... x) { isa().template greater_elements<E>(x...); }, a, b);
  }
  template <class E> static V vgt_u(V a, V b) {
    return compare_elements([](auto... x) { isa().template above_elements<E>(x...); }, a, b);
  }
  template <class E> static V ones(E x) { return konst(sem::ScalarDomain::kOnes<E> * x); }
  template <class E> static V vshl(V a, int n) {
    return and_(shl(a, n), ones<E>(static_cast<E>(static_cast<E>(-1) << n)));
  }
  template <class E> static V vshr(V a, int n) {
    return and_(shr(a, n), ones<E>(static_cast<E>(static_cast<E>(-1) >> n)));
  }
  template <class E> static V vsar(V a, int n) {
    const V sign = konst(sem::ScalarDomain::kOnes<E> << (8 * sizeof(E) - 1) >> n);
    return vsub<E>(xor_(vshr<E>(a, n), sign), sign);
  }
};

}  // namespace gpusim::simd
