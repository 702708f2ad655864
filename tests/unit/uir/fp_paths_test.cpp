// The floating-point micro-ops' fast paths against the softfloat: same results, same FPCR and FPSR.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdio>
#include <initializer_list>

#include "device_sim/uir/semantics.h"
#include "tests/unit/softfloat/seed.h"
#include "tests/unit/softfloat/sequence.h"

namespace {

using namespace gpusim;
using SD = sem::ScalarDomain;

constexpr int kSamples = 200000;

struct Random {
  sequence s;
  uint64_t next() { return sequence_next(&s); }
  uint64_t below(uint64_t n) { return next() % n; }
};

// Special values, small integers, values near each other and near the ends of the range: what makes
// fast paths decide.
uint64_t draw_float(Random& r, int kind, uint64_t near) {
  const int frac = kind_frac_bits(kind);
  const uint64_t bias = (uint64_t{1} << (kind_bits(kind) - 2 - frac)) - 1;
  switch (r.below(8)) {
    case 0:
      return special_float(kind, static_cast<int>(r.below(kSpecialCount)));
    case 1: {  // a small integer
      const double value = static_cast<double>(static_cast<int64_t>(r.below(2000)) - 1000);
      if (kind == kSingle) return SD::from(static_cast<float>(value));
      if (kind == kDouble) return SD::from(value);
      return float_from_fields(kind, r.next(), bias + r.below(8),
                               uint64_t{r.below(8)} << (frac - 3));
    }
    case 2:  // few significant bits
      return float_from_fields(kind, r.next(), bias - 20 + r.below(40),
                               r.next() << (frac - 4) & ((uint64_t{1} << frac) - 1));
    case 3:  // any exponent
      return float_from_fields(kind, r.next(), r.next(), r.next());
    case 4:  // near the smallest normal number
      return float_from_fields(kind, r.next(), r.below(60), r.next());
    case 5:  // near the largest
      return float_from_fields(kind, r.next(), 2 * bias - r.below(4), r.next());
    case 6:  // close to the other operand, or its opposite
      near ^= r.below(4) | r.below(2) << (kind_bits(kind) - 1);
      return near & softfloat::low_mask(kind_bits(kind));
    default:
      return float_from_fields(kind, r.next(), bias - 30 + r.below(60), r.next());
  }
}

uint64_t draw_state(Random& r) {
  uint64_t fpsr = 0;
  if (r.below(2)) fpsr |= softfloat::kFpsrIxc;
  if (r.below(4) == 0) fpsr |= r.next() & 0x9f;
  uint64_t fpcr = 0;
  if (r.below(4) == 0) fpcr = r.next() & 0x07c80000;  // AHP DN FZ RMode FZ16
  return fpcr << 32 | fpsr;
}

struct Operands {
  uint64_t a, b, c, state;
};
Operands draw(Random& r, int kind) {
  Operands o{};
  if (kind == kInt || r.below(2)) {
    uint64_t abc[3];
    random_operands(&r.s, kind, abc);
    o = {abc[0], abc[1], abc[2], 0};
  } else {
    o.a = draw_float(r, kind, r.next());
    o.b = draw_float(r, kind, o.a);
    o.c = draw_float(r, kind, o.b);
  }
  o.state = draw_state(r);
  return o;
}
// Above a narrow operand lie bits of a neighbour, which must not matter.
Operands with_garbage(Operands o, Random& r, int kind) {
  if (kind == kDouble || kind == kInt) return o;
  const uint64_t above = ~uint64_t{0} << kind_bits(kind);
  o.a |= r.next() & above;
  o.b |= r.next() & above;
  o.c |= r.next() & above;
  return o;
}

template <class Fast, class Slow>
void compare(const char* name, int kind, uint64_t seed, Fast fast, Slow slow) {
  Random r{{seed}};
  int differences = 0;
  for (int i = 0; i < kSamples; ++i) {
    const Operands o = with_garbage(draw(r, kind), r, kind);
    uint64_t fast_state = o.state, slow_state = o.state;
    const uint64_t x = fast(o, fast_state);
    const uint64_t y = slow(o, slow_state);
    if (x == y && fast_state == slow_state) continue;
    if (++differences <= 5) {
      std::printf("%s(%#lx, %#lx, %#lx) with state %#lx: %#lx, state %#lx; should be %#lx, %#lx\n",
                  name, o.a, o.b, o.c, o.state, x, fast_state, y, slow_state);
    }
  }
  INFO(name);
  CHECK(differences == 0);
}

#define ARITHMETIC(suffix, F, kind)                                                         \
  compare(                                                                                  \
      "fadd" #suffix, kind, seed,                                                           \
      [&](Operands o, uint64_t& fp) { return sem::fadd##suffix<SD>(o.a, o.b, fp, u); },     \
      [](Operands o, uint64_t& fp) { return helpers::Add<F>::run(o.a, o.b, fp); });         \
  compare(                                                                                  \
      "fsub" #suffix, kind, seed,                                                           \
      [&](Operands o, uint64_t& fp) { return sem::fsub##suffix<SD>(o.a, o.b, fp, u); },     \
      [](Operands o, uint64_t& fp) { return helpers::Sub<F>::run(o.a, o.b, fp); });         \
  compare(                                                                                  \
      "fmul" #suffix, kind, seed,                                                           \
      [&](Operands o, uint64_t& fp) { return sem::fmul##suffix<SD>(o.a, o.b, fp, u); },     \
      [](Operands o, uint64_t& fp) { return helpers::Mul<F>::run(o.a, o.b, fp); });         \
  compare(                                                                                  \
      "fdiv" #suffix, kind, seed,                                                           \
      [&](Operands o, uint64_t& fp) { return sem::fdiv##suffix<SD>(o.a, o.b, fp, u); },     \
      [](Operands o, uint64_t& fp) { return helpers::Div<F>::run(o.a, o.b, fp); });         \
  compare(                                                                                  \
      "fsqrt" #suffix, kind, seed,                                                          \
      [&](Operands o, uint64_t& fp) { return sem::fsqrt##suffix<SD>(o.a, fp, u); },         \
      [](Operands o, uint64_t& fp) { return helpers::Sqrt<F>::run(o.a, fp); });             \
  compare(                                                                                  \
      "fma" #suffix, kind, seed,                                                            \
      [&](Operands o, uint64_t& fp) { return sem::fma##suffix<SD>(o.a, o.b, o.c, fp, u); }, \
      [](Operands o, uint64_t& fp) { return helpers::MulAdd<F>::run(o.a, o.b, o.c, fp); });

TEST_CASE("scalar arithmetic equals the softfloat") {
  const uint64_t seed = seed_from_environment();
  std::printf("replay: GPUSIM_SEED=%lu\n", seed);
  const Uop u{};
  ARITHMETIC(32, helpers::F32, kSingle)
  ARITHMETIC(64, helpers::F64, kDouble)
}

// Both elements, the first one's flags first.
template <class Fast, class Slow>
void compare_pairs(const char* name, uint64_t seed, Fast fast, Slow slow) {
  Random r{{seed}};
  int differences = 0;
  for (int i = 0; i < kSamples; ++i) {
    const Operands low = draw(r, kSingle), high = draw(r, kSingle);
    const Operands o{low.a | high.a << 32, low.b | high.b << 32, low.c | high.c << 32, low.state};
    uint64_t fast_state = o.state, slow_state = o.state;
    const uint64_t x = fast(o, fast_state);
    const uint64_t y0 = slow(low, slow_state);
    const uint64_t y = y0 | slow(high, slow_state) << 32;
    if (x != y || fast_state != slow_state) ++differences;
  }
  INFO(name);
  CHECK(differences == 0);
}

TEST_CASE("arithmetic on two floats equals the softfloat on each") {
  const uint64_t seed = seed_from_environment();
  std::printf("replay: GPUSIM_SEED=%lu\n", seed);
  const Uop u{};
  using F = helpers::F32;
  compare_pairs(
      "vfadd32", seed, [&](Operands o, uint64_t& fp) { return sem::vfadd32<SD>(o.a, o.b, fp, u); },
      [](Operands o, uint64_t& fp) { return helpers::Add<F>::run(o.a, o.b, fp); });
  compare_pairs(
      "vfsub32", seed, [&](Operands o, uint64_t& fp) { return sem::vfsub32<SD>(o.a, o.b, fp, u); },
      [](Operands o, uint64_t& fp) { return helpers::Sub<F>::run(o.a, o.b, fp); });
  compare_pairs(
      "vfmul32", seed, [&](Operands o, uint64_t& fp) { return sem::vfmul32<SD>(o.a, o.b, fp, u); },
      [](Operands o, uint64_t& fp) { return helpers::Mul<F>::run(o.a, o.b, fp); });
  compare_pairs(
      "vfdiv32", seed, [&](Operands o, uint64_t& fp) { return sem::vfdiv32<SD>(o.a, o.b, fp, u); },
      [](Operands o, uint64_t& fp) { return helpers::Div<F>::run(o.a, o.b, fp); });
  compare_pairs(
      "vfma32", seed,
      [&](Operands o, uint64_t& fp) { return sem::vfma32<SD>(o.a, o.b, o.c, fp, u); },
      [](Operands o, uint64_t& fp) { return helpers::MulAdd<F>::run(o.a, o.b, o.c, fp); });
}

TEST_CASE("comparisons, minimum and maximum equal the softfloat") {
  const uint64_t seed = seed_from_environment();
  std::printf("replay: GPUSIM_SEED=%lu\n", seed);
  for (int format = 0; format < 3; ++format) {
    const int kind = format;  // the enumerations agree
    for (int signalling = 0; signalling < 2; ++signalling) {
      Uop u{};
      u.aux = static_cast<uint8_t>(format | signalling << 2);
      compare(
          "fcmp", kind, seed,
          [&](Operands o, uint64_t& fp) { return sem::fcmp<SD>(o.a, o.b, fp, u); },
          [&](Operands o, uint64_t& fp) { return helpers::exact::fcmp(o.a, o.b, u.aux, fp); });
    }
    for (int which = 0; which < 4; ++which) {
      Uop u{};
      u.aux = static_cast<uint8_t>(format | which << 2);
      compare(
          "fminmax", kind, seed,
          [&](Operands o, uint64_t& fp) { return sem::fminmax<SD>(o.a, o.b, fp, u); },
          [&](Operands o, uint64_t& fp) { return helpers::exact::fminmax(o.a, o.b, u.aux, fp); });
      compare(
          "the helper of fminmax", kind, seed,
          [&](Operands o, uint64_t& fp) { return helpers::fminmax(o.a, o.b, u.aux, fp); },
          [&](Operands o, uint64_t& fp) { return helpers::exact::fminmax(o.a, o.b, u.aux, fp); });
    }
  }
}

TEST_CASE("comparisons to a mask equal the softfloat") {
  const uint64_t seed = seed_from_environment();
  std::printf("replay: GPUSIM_SEED=%lu\n", seed);
  for (int test = 0; test < 5; ++test) {
    Uop u{};
    u.aux = static_cast<uint8_t>(FpFormat::kF64);
    u.imm = static_cast<uint64_t>(test) << 16;
    compare(
        "each_fcompare", kDouble, seed,
        [&](Operands o, uint64_t& fp) { return helpers::each_fcompare(o.a, o.b, u, fp); },
        [&](Operands o, uint64_t& fp) {
          const auto t = static_cast<FpTest>(test);
          return helpers::test_as<helpers::F64>(o.a, o.b, t, fp) ? ~uint64_t{0} : uint64_t{0};
        });
  }
}

TEST_CASE("rounding and conversions equal the softfloat") {
  const uint64_t seed = seed_from_environment();
  std::printf("replay: GPUSIM_SEED=%lu\n", seed);
  for (int format = 0; format < 3; ++format) {
    for (int rounding = 0; rounding < 7; ++rounding) {
      Uop u{};
      u.aux = static_cast<uint8_t>(format | rounding << 2);
      compare(
          "fround", format, seed,
          [&](Operands o, uint64_t& fp) { return sem::fround<SD>(o.a, fp, u); },
          [&](Operands o, uint64_t& fp) { return helpers::exact::fround(o.a, u.aux, fp); });
      for (int kind = 0; kind < 4; ++kind) {
        const int bits = kind & 2 ? 64 : 32;
        u.aux = f2i_aux(static_cast<FpFormat>(format), static_cast<FpRounding>(rounding),
                        (kind & 1) != 0, bits == 64);
        u.imm = rounding == 3 ? static_cast<uint64_t>(kind * 5) : 0;
        compare(
            "f2i", format, seed, [&](Operands o, uint64_t& fp) { return sem::f2i<SD>(o.a, fp, u); },
            [&](Operands o, uint64_t& fp) {
              return helpers::exact::f2i(o.a, u.aux, static_cast<int>(u.imm), bits, fp);
            });
      }
    }
    for (int to = 0; to < 3; ++to) {
      if (to == format) continue;
      Uop u{};
      u.aux = static_cast<uint8_t>(format | to << 2);
      compare(
          "fconvert", format, seed,
          [&](Operands o, uint64_t& fp) { return sem::fconvert<SD>(o.a, fp, u); },
          [&](Operands o, uint64_t& fp) { return helpers::exact::fconvert(o.a, u.aux, fp); });
    }
    for (int kind = 0; kind < 4; ++kind) {
      const int bits = kind & 2 ? 64 : 32;
      Uop u{};
      u.aux = i2f_aux(static_cast<FpFormat>(format), (kind & 1) != 0, bits == 64);
      compare(
          "i2f", kInt, seed, [&](Operands o, uint64_t& fp) { return sem::i2f<SD>(o.a, fp, u); },
          [&](Operands o, uint64_t& fp) { return helpers::exact::i2f(o.a, u.aux, 0, bits, fp); });
    }
  }
}

}  // namespace
