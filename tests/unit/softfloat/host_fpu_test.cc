// The softfloat against the host's FPU in all four rounding modes: results and flags.
//
// Hosts differ from Arm in what an invalid operation returns and which NaN they propagate, so NaN
// results are compared with Arm's rules instead. x86 detects tininess after rounding, Arm before:
// Arm's underflow flags are compared unless the result is the smallest normal number, the one case
// in which that matters; those of the other policy always.
#include <doctest/doctest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "device_sim/uir/softfloat/softfloat.h"
#include "tests/unit/softfloat/seed.h"
#include "tests/unit/softfloat/sequence.h"

namespace {

using namespace gpusim::softfloat;

constexpr int kRandomCount = 60000;

struct Mode {
  int host;
  Rounding arm;
};
constexpr Mode kModes[] = {{FE_TONEAREST, Rounding::kTieEven},
                           {FE_UPWARD, Rounding::kPosInf},
                           {FE_DOWNWARD, Rounding::kNegInf},
                           {FE_TOWARDZERO, Rounding::kZero}};

uint64_t state_with(Rounding mode) { return static_cast<uint64_t>(mode) << kFpcrRmodeShift; }

template <class T>
struct HostType;
template <>
struct HostType<F32> {
  using Float = float;
  using Bits = uint32_t;
  static constexpr int kKind = kSingle;
};
template <>
struct HostType<F64> {
  using Float = double;
  using Bits = uint64_t;
  static constexpr int kKind = kDouble;
};

template <class F>
auto to_host(uint64_t bits) {
  return std::bit_cast<typename HostType<F>::Float>(static_cast<typename HostType<F>::Bits>(bits));
}
uint64_t from_host(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t from_host(double value) { return std::bit_cast<uint64_t>(value); }

template <class F>
bool is_nan_bits(uint64_t a) {
  return (a & (F::kSign - 1)) > F::kInf;
}
template <class F>
bool is_snan_bits(uint64_t a) {
  return is_nan_bits<F>(a) && (a & F::kQuietBit) == 0;
}

uint64_t host_flags() {
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  return ((raised & FE_INVALID) ? kFpsrIoc : 0) | ((raised & FE_DIVBYZERO) ? kFpsrDzc : 0) |
         ((raised & FE_OVERFLOW) ? kFpsrOfc : 0) | ((raised & FE_UNDERFLOW) ? kFpsrUfc : 0) |
         ((raised & FE_INEXACT) ? kFpsrIxc : 0);
}

/// Counts differences and prints the first few.
class Comparison {
 public:
  explicit Comparison(const char* name) : name_(name) {}
  ~Comparison() {
    CHECK_MESSAGE(differences_ == 0, name_);
    total_ += count_;
  }
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  void check(uint64_t got, uint64_t flags, uint64_t want, uint64_t want_flags, Rounding mode,
             uint64_t a, uint64_t b = 0, uint64_t c = 0) {
    ++count_;
    if (got == want && flags == want_flags) return;
    if (++differences_ > 3) return;
    std::printf("%s: operands %#lx %#lx %#lx, mode %d: %#lx flags %#lx, expected %#lx flags %#lx\n",
                name_, a, b, c, static_cast<int>(mode), got, flags, want, want_flags);
  }
  static uint64_t total() { return total_; }

 private:
  const char* name_;
  uint64_t count_ = 0;
  uint64_t differences_ = 0;
  static inline uint64_t total_ = 0;
};

/// Arm's result for operands of which one is a NaN: signalling first, then in order, made quiet.
template <class F>
uint64_t arm_nan(const uint64_t* operands, int count) {
  for (int i = 0; i < count; ++i) {
    if (is_snan_bits<F>(operands[i])) return operands[i] | F::kQuietBit;
  }
  for (int i = 0; i < count; ++i) {
    if (is_nan_bits<F>(operands[i])) return operands[i];
  }
  return F::kDefaultNan;
}

/// Runs soft and host on operands (in the order of NaN precedence) in the current rounding mode.
template <class F, int kCount, class Soft, class Host>
void compare(Comparison& comparison, Rounding mode, const uint64_t (&in)[kCount], Soft soft,
             Host host) {
  uint64_t st = state_with(mode);
  const uint64_t got = soft(in, st);
  uint64_t flags = st & 0xFFFFFFFF;
  bool any_snan = false;
  for (const uint64_t a : in) any_snan |= is_snan_bits<F>(a);

  std::feclearexcept(FE_ALL_EXCEPT);
  uint64_t want = host(in);
  uint64_t want_flags = host_flags();
  if (is_nan_bits<F>(want)) {
    want = arm_nan<F>(in, kCount);
    if (any_snan) want_flags = kFpsrIoc;
    // x86 leaves open whether infinity * 0 + NaN is invalid; to Arm it is, with the default NaN,
    // unless a signalling NaN goes first.
    if constexpr (kCount == 3) {
      const uint64_t b = in[1] & (F::kSign - 1);
      const uint64_t c = in[2] & (F::kSign - 1);
      if (!any_snan && ((b == 0 && c == F::kInf) || (b == F::kInf && c == 0))) {
        want = F::kDefaultNan;
        want_flags = kFpsrIoc;
      }
    }
  }
#if defined(__x86_64__)
  uint64_t after = state_with(mode) | kFpTinyAfterRounding;
  const uint64_t same = soft(in, after);
  comparison.check(same, after & 0xFFFFFFFF, want, want_flags, mode, in[0], in[kCount / 2],
                   in[kCount - 1]);
#endif
  const uint64_t smallest_normal = F::kFracMask + 1;
  if ((want & (F::kSign - 1)) == smallest_normal) {
    flags &= ~kFpsrUfc;
    want_flags &= ~kFpsrUfc;
  }
  comparison.check(got, flags, want, want_flags, mode, in[0], in[kCount / 2], in[kCount - 1]);
}

template <class F, class Soft, class Host>
void compare_two(const char* name, uint64_t seed, Soft soft, Host host) {
  Comparison comparison(name);
  const int kind = HostType<F>::kKind;
  for (const Mode& mode : kModes) {
    std::fesetround(mode.host);
    for (int i = 0; i < kSpecialCount; ++i) {
      for (int j = 0; j < kSpecialCount; ++j) {
        const uint64_t in[2] = {special_float(kind, i), special_float(kind, j)};
        compare<F>(comparison, mode.arm, in, soft, host);
      }
    }
    sequence operands{seed};
    for (int i = 0; i < kRandomCount; ++i) {
      uint64_t x[3];
      random_operands(&operands, kind, x);
      const uint64_t in[2] = {x[0], x[1]};
      compare<F>(comparison, mode.arm, in, soft, host);
    }
  }
  std::fesetround(FE_TONEAREST);
}

template <class F, class Soft, class Host>
void compare_one(const char* name, uint64_t seed, Soft soft, Host host) {
  Comparison comparison(name);
  const int kind = HostType<F>::kKind;
  for (const Mode& mode : kModes) {
    std::fesetround(mode.host);
    sequence operands{seed};
    for (int i = 0; i < kRandomCount + kSpecialCount; ++i) {
      const uint64_t in[1] = {i < kSpecialCount ? special_float(kind, i)
                                                : random_float(&operands, kind)};
      compare<F>(comparison, mode.arm, in, soft, host);
    }
  }
  std::fesetround(FE_TONEAREST);
}

// volatile keeps the compiler from folding or moving the operation across the flag accesses.
template <class F, class Operation>
auto on_host(Operation operation) {
  return [operation](const auto& in) {
    volatile typename HostType<F>::Float a = to_host<F>(in[0]);
    volatile typename HostType<F>::Float b = to_host<F>(in[std::size(in) > 1 ? 1 : 0]);
    volatile typename HostType<F>::Float r = operation(a, b);
    return from_host(r);
  };
}

template <class F>
void compare_arithmetic(uint64_t seed) {
  compare_two<F>(
      "add", seed, [](const auto& in, uint64_t& st) { return fp_add<F>(in[0], in[1], st); },
      on_host<F>([](auto a, auto b) { return a + b; }));
  compare_two<F>(
      "sub", seed, [](const auto& in, uint64_t& st) { return fp_sub<F>(in[0], in[1], st); },
      on_host<F>([](auto a, auto b) { return a - b; }));
  compare_two<F>(
      "mul", seed, [](const auto& in, uint64_t& st) { return fp_mul<F>(in[0], in[1], st); },
      on_host<F>([](auto a, auto b) { return a * b; }));
  compare_two<F>(
      "div", seed, [](const auto& in, uint64_t& st) { return fp_div<F>(in[0], in[1], st); },
      on_host<F>([](auto a, auto b) { return a / b; }));
  compare_one<F>(
      "sqrt", seed, [](const auto& in, uint64_t& st) { return fp_sqrt<F>(in[0], st); },
      on_host<F>([](auto a, auto) { return std::sqrt(a); }));
  compare_one<F>(
      "rint", seed,
      [](const auto& in, uint64_t& st) {
        return fp_round_int<F>(in[0], rounding_mode(st), true, st);
      },
      on_host<F>([](auto a, auto) { return std::rint(a); }));
}

template <class F>
void compare_muladd(uint64_t seed) {
  Comparison comparison("muladd");
  const int kind = HostType<F>::kKind;
  const auto soft = [](const uint64_t(&in)[3], uint64_t& st) {
    return fp_muladd<F>(in[0], in[1], in[2], st);
  };
  const auto host = [](const uint64_t(&in)[3]) {
    volatile typename HostType<F>::Float c = to_host<F>(in[0]);
    volatile typename HostType<F>::Float a = to_host<F>(in[1]);
    volatile typename HostType<F>::Float b = to_host<F>(in[2]);
    volatile typename HostType<F>::Float r = std::fma(a, b, c);
    return from_host(r);
  };
  for (const Mode& mode : kModes) {
    std::fesetround(mode.host);
    for (int n = 0; n < kSpecialCount * kSpecialCount * kSpecialCount; ++n) {
      const uint64_t in[3] = {special_float(kind, n % kSpecialCount),
                              special_float(kind, n / kSpecialCount % kSpecialCount),
                              special_float(kind, n / kSpecialCount / kSpecialCount)};
      compare<F>(comparison, mode.arm, in, soft, host);
    }
    sequence operands{seed};
    for (int i = 0; i < 4 * kRandomCount; ++i) {
      uint64_t x[3];
      random_operands(&operands, kind, x);
      const uint64_t in[3] = {x[2], x[0], x[1]};
      compare<F>(comparison, mode.arm, in, soft, host);
    }
  }
  std::fesetround(FE_TONEAREST);
}

/// Integers to floating point and back; the host's rint gives the FPCR-rounded conversion.
template <class F>
void compare_integers(uint64_t seed) {
  using Float = typename HostType<F>::Float;
  const int kind = HostType<F>::kKind;
  Comparison from("from integer");
  Comparison to("to integer");
  for (const Mode& mode : kModes) {
    std::fesetround(mode.host);
    sequence operands{seed};
    for (int i = 0; i < kRandomCount; ++i) {
      const uint64_t x = random_int(&operands);
      const auto check = [&](auto integer, int bits, bool is_unsigned) {
        volatile auto value = integer;
        std::feclearexcept(FE_ALL_EXCEPT);
        volatile Float want = static_cast<Float>(value);
        const uint64_t want_flags = host_flags();
        uint64_t st = state_with(mode.arm);
        const uint64_t got = fixed_to_fp<F>(x, bits, 0, is_unsigned, st);
        from.check(got, st & 0xFFFFFFFF, from_host(want), want_flags, mode.arm, x);
      };
      check(static_cast<int32_t>(x), 32, false);
      check(static_cast<int64_t>(x), 64, false);
      check(static_cast<uint32_t>(x), 32, true);
      // x86 has no instruction for it, and the compiler's sequence raises flags of its own.
      if ((x >> 63) == 0) check(static_cast<uint64_t>(x), 64, true);
    }
    for (int i = 0; i < kRandomCount + kSpecialCount; ++i) {
      const uint64_t x = i < kSpecialCount ? special_float(kind, i) : random_float(&operands, kind);
      const Float value = to_host<F>(x);
      const auto check = [&](Float low, Float high, auto limits, int bits, bool is_unsigned) {
        // [low, high) after rounding is representable; rint raises just inexact.
        volatile Float rounded = value;
        std::feclearexcept(FE_ALL_EXCEPT);
        if (!std::isnan(value)) rounded = std::rint(rounded);
        uint64_t want_flags = host_flags();
        uint64_t want = 0;
        if (std::isnan(value) || rounded < low || rounded >= high) {
          want_flags = kFpsrIoc;
          if (!std::isnan(value)) want = rounded < 0 ? limits.low : limits.high;
        } else {
          want = is_unsigned ? static_cast<uint64_t>(rounded)
                             : static_cast<uint64_t>(static_cast<int64_t>(rounded));
        }
        uint64_t st = state_with(mode.arm);
        const uint64_t got = fp_to_fixed<F>(x, bits, 0, is_unsigned, mode.arm, st);
        to.check(got, st & 0xFFFFFFFF, want & low_mask(bits), want_flags, mode.arm, x);
      };
      struct Limits {
        uint64_t low;
        uint64_t high;
      };
      const Float two31 = 2147483648.0f;
      const Float two63 = two31 * 4294967296.0f;
      check(-two31, two31, Limits{0x80000000u, 0x7FFFFFFFu}, 32, false);
      check(-two63, two63, Limits{uint64_t{1} << 63, (uint64_t{1} << 63) - 1}, 64, false);
      check(0, 2 * two31, Limits{0, 0xFFFFFFFFu}, 32, true);
      check(0, 2 * two63, Limits{0, ~uint64_t{0}}, 64, true);
    }
  }
  std::fesetround(FE_TONEAREST);
}

void compare_formats(uint64_t seed) {
  Comparison narrow("double to single");
  Comparison widen("single to double");
  for (const Mode& mode : kModes) {
    std::fesetround(mode.host);
    sequence operands{seed};
    for (int i = 0; i < 4 * kRandomCount; ++i) {
      uint64_t x = random_float(&operands, kDouble);
      // Half of them around the limits of single precision.
      if (i % 2 != 0) {
        const uint64_t r = sequence_next(&operands);
        x = float_from_fields(kDouble, r, (r & 2 ? 1023 - 155 : 1023 + 120) + (r >> 8) % 36, x);
      }
      if (is_nan_bits<F64>(x)) continue;
      volatile double d = to_host<F64>(x);
      std::feclearexcept(FE_ALL_EXCEPT);
      volatile float s = static_cast<float>(d);
      uint64_t want_flags = host_flags();
      uint64_t st = state_with(mode.arm);
      const uint64_t got = fp_convert<F32, F64>(x, st);
      uint64_t flags = st & 0xFFFFFFFF;
      if ((got & 0x7FFFFFFF) == 0x00800000) {
        flags &= ~kFpsrUfc;
        want_flags &= ~kFpsrUfc;
      }
      narrow.check(got, flags, from_host(s), want_flags, mode.arm, x);

      const uint64_t y = random_float(&operands, kSingle);
      if (is_nan_bits<F32>(y)) continue;
      s = to_host<F32>(y);
      std::feclearexcept(FE_ALL_EXCEPT);
      d = s;
      want_flags = host_flags();
      st = state_with(mode.arm);
      const uint64_t wide = fp_convert<F64, F32>(y, st);
      widen.check(wide, st & 0xFFFFFFFF, from_host(d), want_flags, mode.arm, y);
    }
  }
  std::fesetround(FE_TONEAREST);
}

TEST_CASE("softfloat equals the host's FPU") {
  const uint64_t seed = seed_from_environment();
  INFO("replay: GPUSIM_SEED=" << seed);
  const uint64_t before = Comparison::total();
  compare_arithmetic<F32>(seed);
  compare_arithmetic<F64>(seed);
  compare_muladd<F32>(seed);
  compare_muladd<F64>(seed);
  compare_integers<F32>(seed);
  compare_integers<F64>(seed);
  compare_formats(seed);
  MESSAGE((Comparison::total() - before) << " comparisons");
}

}  // namespace
