// ex2, lg2, sin, cos, tanh of floats: computed in double by micro-ops and rounded once, so that all
// backends agree. Within the bounds that the PTX ISA gives; not the bits of a GPU, but for ex2 of
// f16, which is an H100's.
#include <bit>
#include <cmath>

#include "device_sim/uir/compare.h"
#include "device_sim/uir/fp_aux.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

constexpr Type kF32{Kind::kFloat, 32};
constexpr uint8_t kWiden =
    static_cast<uint8_t>(FpFormat::kF32) | static_cast<uint8_t>(FpFormat::kF64) << 2;
constexpr uint8_t kNarrow =
    static_cast<uint8_t>(FpFormat::kF64) | static_cast<uint8_t>(FpFormat::kF32) << 2;
constexpr uint16_t kUnordered = 1 << 0b0011;

// Arithmetic on doubles in slots.
class Doubles {
 public:
  explicit Doubles(Emitter& e) : e_(e), constant_(e.temp()) {}
  Slot number(double x) {
    e_.b.konst(constant_, std::bit_cast<uint64_t>(x));
    return constant_;
  }
  void add(Slot d, Slot a, Slot b) { e_.fp(Op::fadd64, Emitter::kExact, d, a, b); }
  void sub(Slot d, Slot a, Slot b) { e_.fp(Op::fsub64, Emitter::kExact, d, a, b); }
  void mul(Slot d, Slot a, Slot b) { e_.fp(Op::fmul64, Emitter::kExact, d, a, b); }
  void div(Slot d, Slot a, Slot b) { e_.fp(Op::fdiv64, Emitter::kExact, d, a, b); }
  void fma(Slot d, Slot a, Slot b, Slot c) { e_.fp(Op::fma64, Emitter::kExact, d, a, b, c); }
  // d = a's nearest integer, whose low bits are those of `bits`, for |a| < 2^51: next to 1.5 * 2^52
  // a double's last bit is 1.
  void round(Slot d, Slot bits, Slot a) {
    constexpr double kMagic = 0x1.8p52;
    add(bits, a, number(kMagic));
    sub(d, bits, number(kMagic));
  }
  // To least … most; NaN becomes least.
  void clamp(Slot d, double least, double most) {
    const auto aux = [](FpMinMax kind) {
      return static_cast<uint8_t>(static_cast<int>(FpFormat::kF64) | static_cast<int>(kind) << 2);
    };
    e_.fp(Op::fminmax, Emitter::kExact, d, d, number(least), 0, aux(FpMinMax::kMaximumNumber));
    e_.fp(Op::fminmax, Emitter::kExact, d, d, number(most), 0, aux(FpMinMax::kMinimumNumber));
  }
  // sum = c[0] + x * (c[1] + x * (…))
  template <size_t n>
  void polynomial(Slot sum, Slot x, const double (&c)[n]) {
    e_.b.konst(sum, std::bit_cast<uint64_t>(c[n - 1]));
    for (size_t k = n - 1; k-- > 0;) fma(sum, sum, x, number(c[k]));
  }
  // sum = 2^x, for |x| <= 1022; x is lost.
  void exp2(Slot sum, Slot x) {
    const Slot n = e_.temp(), bits = e_.temp();
    round(n, bits, x);
    sub(x, x, n);
    // ln(2)^k / k!: the first that is left out is below 2^-57 of the sum.
    static constexpr double kSeries[] = {1.0,
                                         0.6931471805599453,
                                         0.2402265069591007,
                                         0.05550410866482158,
                                         0.009618129107628477,
                                         0.0013333558146428443,
                                         0.00015403530393381609,
                                         1.5252733804059841e-05,
                                         1.3215486790144307e-06,
                                         1.0178086009239699e-07,
                                         7.054911620801123e-09,
                                         4.4455382718708116e-10,
                                         2.5678435993488206e-11,
                                         1.3691488853904128e-12};
    polynomial(sum, x, kSeries);
    e_.b.add_lsl64(sum, sum, bits, 52);
  }

 private:
  Emitter& e_;
  Slot constant_;
};

// The argument as a double, and what is NaN for it.
Slot widened(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], kF32), x = e.temp();
  e.fp(Op::fconvert, e.state(i), x, a, 0, 0, kWiden);
  return x;
}

// d = the rounded double, or NaN where `flags`, of a comparison with itself, are unordered.
void finish(Emitter& e, I i, Slot result, Slot flags) {
  const Slot nan = e.temp();
  e.fp(Op::fconvert, e.state(i), result, result, 0, 0, kNarrow);
  e.b.konst(nan, 0x7fffffff);
  e.b.csel64(e.dst(i.operands[0]), nan, result, flags, kUnordered);
}

Slot compare(Emitter& e, Slot a, Slot b) {
  const Slot flags = e.temp();
  e.fp(Op::fcmp, Emitter::kExact, flags, a, b, 0, static_cast<uint8_t>(FpFormat::kF64));
  return flags;
}

// sum = 2^x; x is lost.
void power_of_two(Emitter& e, Slot sum, Slot x) {
  Doubles f(e);
  // Beyond, floats overflow or become zero.
  f.clamp(x, -200, 200);
  f.exp2(sum, x);
}

void ex2(Emitter& e, I i) {
  const Slot x = widened(e, i), flags = compare(e, x, x), sum = e.temp();
  power_of_two(e, sum, x);
  finish(e, i, sum, flags);
}

void lg2(Emitter& e, I i) {
  const Slot x = widened(e, i), with_zero = compare(e, x, kZeroSlot);
  Doubles f(e);
  const Slot exponent = e.temp(), m = e.temp(), s = e.temp(), t = e.temp(), sum = e.temp();
  // x = 2^exponent * m, m from sqrt(1/2) to sqrt(2): the distance from sqrt(1/2) in bits tells.
  constexpr uint64_t kRootOfHalf = 0x3fe6a09e667f3bcd, kFraction = (uint64_t{1} << 52) - 1;
  e.b.addi64(t, x, 0 - kRootOfHalf);
  e.b.asri64(exponent, t, 52);
  e.b.andi64(m, t, kFraction);
  e.b.addi64(m, m, kRootOfHalf);
  // log2(m) = 2 / ln(2) * artanh(s), s = (m - 1) / (m + 1), |s| < 0.1716.
  f.sub(s, m, f.number(1));
  f.add(t, m, f.number(1));
  f.div(s, s, t);
  f.mul(t, s, s);
  static constexpr double kScale = 2.8853900817779268;  // 2 / ln(2)
  static constexpr double kSeries[] = {kScale,      kScale / 3,  kScale / 5,  kScale / 7,
                                       kScale / 9,  kScale / 11, kScale / 13, kScale / 15,
                                       kScale / 17, kScale / 19, kScale / 21, kScale / 23};
  f.polynomial(sum, t, kSeries);
  e.fp(Op::i2f, Emitter::kExact, t, exponent, 0, 0, i2f_aux(FpFormat::kF64, true, true));
  f.fma(sum, sum, s, t);
  // Infinity stays; zero gives -infinity; what is negative or NaN, NaN.
  const CompareKind equal{CompareRelation::kEqual, false, false};
  const Slot infinity = f.number(HUGE_VAL);
  e.b.sel_cmp(sum, infinity, sum, x, infinity, equal.pack());
  e.b.csel64(sum, f.number(-HUGE_VAL), sum, with_zero, 1 << 0b0110);
  // Below zero counts as unordered.
  e.b.set_if(t, with_zero, kUnordered | 1 << 0b1000);
  e.b.add_lsl64(t, t, t, 1);  // 3: C and V, as unordered operands leave them
  finish(e, i, sum, t);
}

// sin and cos: the nearest multiple of pi / 2 is taken off, in three parts.
void sin_cos(Emitter& e, I i) {
  const Slot x = widened(e, i), n = e.temp(), r2 = e.temp(), sine = e.temp(), cosine = e.temp();
  Doubles f(e);
  const Slot given = e.temp(), quarters = e.temp();
  e.b.mov(given, x);
  f.mul(n, x, f.number(0.6366197723675814));
  f.round(n, quarters, n);
  f.fma(x, n, f.number(-1.5707963267948966), x);
  f.fma(x, n, f.number(-6.123233995736766e-17), x);
  f.fma(x, n, f.number(1.4973849048591833e-33), x);
  const Slot flags = compare(e, x, x);
  f.mul(r2, x, x);
  static constexpr double kSine[] = {1.0,
                                     -1.0 / 6,
                                     1.0 / 120,
                                     -1.0 / 5040,
                                     1.0 / 362880,
                                     -1.0 / 39916800,
                                     1.0 / 6227020800,
                                     -1.0 / 1307674368000,
                                     1.0 / 355687428096000};
  static constexpr double kCosine[] = {1.0,
                                       -1.0 / 2,
                                       1.0 / 24,
                                       -1.0 / 720,
                                       1.0 / 40320,
                                       -1.0 / 3628800,
                                       1.0 / 479001600,
                                       -1.0 / 87178291200,
                                       1.0 / 20922789888000};
  f.polynomial(sine, r2, kSine);
  f.mul(sine, sine, x);
  f.polynomial(cosine, r2, kCosine);
  // Quarters: sine, cosine, -sine, -cosine; the cosine begins at the second.
  if (i.base == "cos") e.b.addi64(quarters, quarters, 1);
  const CompareKind is_zero{CompareRelation::kEqual, false, false};
  e.b.andi64(r2, quarters, 1);
  e.b.sel_cmpi(sine, sine, cosine, r2, 0, is_zero.pack());
  e.b.andi64(n, quarters, 2);
  e.b.lsli64(n, n, 62);
  e.b.xor64(sine, sine, n);
  // Arguments of 2^51 and more are not reduced well; the result still lies where it must.
  f.clamp(sine, -1, 1);
  // The sine of a zero has its sign.
  if (i.base == "sin") e.b.csel64(sine, given, sine, compare(e, given, kZeroSlot), 1 << 0b0110);
  finish(e, i, sine, flags);
}

// sum = tanh(x) = 1 - 2 / (e^2x + 1); near zero by its series.
void hyperbolic_tangent(Emitter& e, Slot sum, Slot x) {
  const Slot t = e.temp();
  Doubles f(e);
  const Slot small = e.temp(), square = e.temp();
  f.mul(square, x, x);
  static constexpr double kSeries[] = {1.0, -1.0 / 3, 2.0 / 15, -17.0 / 315, 62.0 / 2835};
  f.polynomial(small, square, kSeries);
  f.mul(small, small, x);
  f.mul(t, x, f.number(2.8853900817779268));  // 2 / ln(2)
  f.clamp(t, -200, 200);
  f.exp2(sum, t);
  f.add(sum, sum, f.number(1));
  f.div(sum, f.number(-2), sum);
  f.add(sum, sum, f.number(1));
  const Slot is_near = compare(e, square, f.number(1e-4));
  e.b.csel64(sum, small, sum, is_near, 1 << 0b1000);
}

void tanh(Emitter& e, I i) {
  const Slot x = widened(e, i), flags = compare(e, x, x), sum = e.temp();
  hyperbolic_tangent(e, sum, x);
  finish(e, i, sum, flags);
}

// ex2 and tanh of f16 and bf16, alone or in pairs. An H100's ex2 is the float's, cut off.
void of_halves(Emitter& e, I i) {
  const bool is_bfloat = i.has("bf16") || i.has("bf16x2"), is_ex2 = i.base == "ex2";
  const bool is_pair = i.has("f16x2") || i.has("bf16x2");
  const auto aux = [](FpFormat from, FpFormat to) {
    return static_cast<uint8_t>(static_cast<int>(from) | static_cast<int>(to) << 2);
  };
  const Slot word = e.src(i.operands[1], i.type()), nan = e.temp();
  Slot result[2] = {e.temp(), kZeroSlot};
  if (is_pair) result[1] = e.temp();
  for (int half = 0; half < (is_pair ? 2 : 1); ++half) {
    const BlockBuilder::Temporaries own(e.b);
    const Slot r = result[half], x = e.temp(), t = e.temp();
    e.b.ubfx(x, word, 0xffff, static_cast<uint8_t>(16 * half));
    if (is_bfloat) e.b.lsli64(x, x, 16);
    if (!is_bfloat) e.fp(Op::fconvert, e.state(i), x, x, 0, 0, aux(FpFormat::kF16, FpFormat::kF32));
    e.fp(Op::fconvert, e.state(i), x, x, 0, 0, kWiden);
    const Slot flags = compare(e, x, x);
    if (is_ex2)
      power_of_two(e, r, x);
    else
      hyperbolic_tangent(e, r, x);
    e.fp(Op::fconvert, e.state(i), r, r, 0, 0, kNarrow);
    if (is_bfloat) {
      if (!is_ex2) {  // to the nearest, ties to even
        e.b.ubfx(t, r, 1, 16);
        e.b.add64(r, r, t);
        e.b.addi64(r, r, 0x7fff);
      }
      e.b.ubfx(r, r, 0xffff, 16);
    } else {
      const auto mode = is_ex2 ? softfloat::Rounding::kZero : softfloat::Rounding::kTieEven;
      e.b.mov(t, r);
      e.fp(Op::fconvert, fp_slot(mode, false), r, r, 0, 0, aux(FpFormat::kF32, FpFormat::kF16));
      // What is cut off does not become infinite, but it is from 65536 on.
      if (is_ex2) e.b.sel_cmp(r, r, e.konst(0x7c00), t, e.konst(0x47800000), kBelow64);
    }
    e.b.konst(nan, 0x7fff);
    e.b.csel64(r, nan, r, flags, kUnordered);
  }
  if (is_pair)
    e.b.add_lsl64(e.dst(i.operands[0]), result[0], result[1], 16);
  else
    e.b.mov(e.dst(i.operands[0]), result[0]);
}

}  // namespace

const RowList& approximate_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"ex2 (approx) {ftz} .f32", "d0 s0", kSpecial, ex2},
      {"lg2 (approx) {ftz} .f32", "d0 s0", kSpecial, lg2},
      {"sin (approx) {ftz} .f32", "d0 s0", kSpecial, sin_cos},
      {"cos (approx) {ftz} .f32", "d0 s0", kSpecial, sin_cos},
      {"tanh (approx) .f32", "d0 s0", kSpecial, tanh},
      {"ex2 (approx) .f16|.f16x2", "d0 s0", kSpecial, of_halves},
      {"ex2 (approx) (ftz) .bf16|.bf16x2", "d0 s0", kSpecial, of_halves},
      {"tanh (approx) .f16|.f16x2|.bf16|.bf16x2", "d0 s0", kSpecial, of_halves},
  };
  return rows;
}

}  // namespace gpusim::ptx
