// Approximate functions of one operand, on all 2^32 inputs or every n-th, against the bounds that
// the PTX ISA publishes (9.7.3, "Floating Point Instructions"): f32, and of f64 the upper words.
//   ptx_all_inputs [STEP [OPCODE]]      STEP: 1 takes all inputs; OPCODE: of that one alone
//
// The exact value is computed in double for many inputs at once; where that does not settle
// whether a result is the nearest float, or within its bound, libm's function of one double does.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "device_sim/base/error.h"
#include "host/ptx/engine.h"
#include "tests/isa/ptx/vector_math.h"

namespace gpusim::ptx {
namespace {

constexpr double kLargest = 0x1.fffffep127;
constexpr double kPi = 3.14159265358979323846;
constexpr size_t kBatch = 1024;

// Four doubles, and the same text for one.
using Four [[gnu::vector_size(32)]] = double;
using FourFloats [[gnu::vector_size(16)]] = float;
using FourBits [[gnu::vector_size(32)]] = int64_t;

// Each function: its name, the exact value of one and of kBatch doubles, and how far from it the
// published bound lets a result lie, of which `size` is the magnitude and `ulp` the last place.
struct Reciprocal {
  static constexpr const char* kName = "rcp";
  static double exact(double x) { return 1 / x; }
  static void exact_batch(const double* x, double* y) {
    for (size_t i = 0; i < kBatch; ++i) y[i] = 1 / x[i];
  }
  template <class T>
  static T most(T, T, T ulp) {
    return ulp;
  }
};
struct Root {
  static constexpr const char* kName = "sqrt";
  static double exact(double x) { return std::sqrt(x); }
  static void exact_batch(const double* x, double* y) {
    for (size_t i = 0; i < kBatch; ++i) y[i] = std::sqrt(x[i]);
  }
  template <class T>
  static T most(T, T size, T) {
    return size * 0x1p-23;
  }
};
struct ReciprocalRoot {
  static constexpr const char* kName = "rsqrt";
  static double exact(double x) { return 1 / std::sqrt(x); }
  static void exact_batch(const double* x, double* y) {
    for (size_t i = 0; i < kBatch; ++i) y[i] = 1 / std::sqrt(x[i]);
  }
  template <class T>
  static T most(T, T size, T) {
    return size * 0x1.125fbee250669p-23;  // 2^-22.9
  }
};
struct PowerOfTwo {
  static constexpr const char* kName = "ex2";
  static double exact(double x) { return std::exp2(x); }
  // Floats end before 2^200 and 2^-200, beyond which vectors of libmvec become slow.
  static void exact_batch(const double* x, double* y) {
    std::array<double, kBatch> near;
    for (size_t i = 0; i < kBatch; ++i) near[i] = x[i] < -200 ? -200 : x[i] > 200 ? 200 : x[i];
    exp2_of_many(near.data(), y, kBatch);
  }
  template <class T>
  static T most(T, T, T ulp) {
    return 2 * ulp;
  }
};
struct Logarithm {
  static constexpr const char* kName = "lg2";
  static double exact(double x) { return std::log2(x); }
  static void exact_batch(const double* x, double* y) { log2_of_many(x, y, kBatch); }
  template <class T>
  static T most(T x, T size, T) {
    return ((x > 0.5) & (x < 2)) ? T{} + 0x1p-22 : size * 0x1p-22;
  }
};
// Beyond 100 pi nothing is published: zero then stands for the sine, which is at most 1 from it.
template <double (*f)(double), void (*of_many)(const double*, double*, size_t)>
struct Wave {
  static constexpr double kEnd = 100 * kPi;
  static double exact(double x) { return std::fabs(x) <= kEnd ? f(x) : x - x; }
  static void exact_batch(const double* x, double* y) {
    if (std::any_of(x, x + kBatch, [](double e) { return std::fabs(e) <= kEnd; }))
      of_many(x, y, kBatch);
    for (size_t i = 0; i < kBatch; ++i) y[i] = std::fabs(x[i]) <= kEnd ? y[i] : x[i] - x[i];
  }
  template <class T>
  static auto is_published(T x) {
    return (x <= kEnd) & (x >= -kEnd);
  }
  template <class T>
  static T most(T x, T, T) {
    const T beyond = is_published(x) ? T{} + 0x1.3b2c47bff832cp-15 : T{} + 1;  // 2^-14.7
    const auto is_first = (x <= 2 * kPi) & (x >= -2 * kPi);
    return is_first ? T{} + 0x1.6a09e667f3bcdp-21 : beyond;  // 2^-20.5
  }
};
struct Sine : Wave<std::sin, sin_of_many> {
  static constexpr const char* kName = "sin";
};
struct Cosine : Wave<std::cos, cos_of_many> {
  static constexpr const char* kName = "cos";
};
struct HyperbolicTangent {
  static constexpr const char* kName = "tanh";
  static double exact(double x) { return std::tanh(x); }
  static void exact_batch(const double* x, double* y) { tanh_of_many(x, y, kBatch); }
  template <class T>
  static T most(T, T size, T) {
    return size * 0x1p-11;
  }
};
template <class Base>
struct OfDouble : Base {
  template <class T>
  static T most(T, T size, T) {
    return size * 0x1p-20;
  }
};

template <class Function, class T>
auto is_published(T x) {
  if constexpr (requires { Function::is_published(x); })
    return Function::is_published(x);
  else
    return x == x;
}

template <class T>
T loaded(const void* bits) {
  T x;
  std::memcpy(&x, bits, sizeof x);
  return x;
}

struct F32 {
  using Bits = uint32_t;
  using Number = float;
  static constexpr const char* kName = "f32";
  static constexpr bool kIsF32 = true;
  static constexpr double kSmallestNormal = 0x1p-126, kSmallest = 0x1p-149;
  static double input(uint32_t word) { return std::bit_cast<float>(word); }
  static FourFloats load(const uint32_t* bits) { return loaded<FourFloats>(bits); }
};
struct F64 {
  using Bits = uint64_t;
  using Number = double;
  static constexpr const char* kName = "f64";
  static constexpr bool kIsF32 = false;
  static constexpr double kSmallestNormal = 0x1p-1022, kSmallest = 0x1p-1074;
  static double input(uint32_t word) { return std::bit_cast<double>(uint64_t{word} << 32); }
  static Four load(const uint64_t* bits) { return loaded<Four>(bits); }
};

enum class Form : uint8_t { kPlain, kFlushing };

struct Sum {
  std::string opcode;
  uint64_t inputs = 0, wrong = 0, not_nearest = 0;
  double ulps = 0, share = 0;  // the largest error: in units of the last place, of its bound
  std::string example;

  void add(const Sum& other) {
    inputs += other.inputs;
    wrong += other.wrong;
    not_nearest += other.not_nearest;
    ulps = std::max(ulps, other.ulps);
    share = std::max(share, other.share);
    if (example.empty()) example = other.example;
  }
};

template <class Type>
double flushed(double x) {
  return std::fabs(x) < Type::kSmallestNormal ? std::copysign(0.0, x) : x;
}

// The unit of the last place of a float.
template <class Type, class T>
T ulp_of(T size) {
  using Bits = std::conditional_t<std::is_same_v<T, double>, int64_t, FourBits>;
  const T ulp = std::bit_cast<T>(std::bit_cast<Bits>(size) & int64_t{0x7ff} << 52) * 0x1p-23;
  return ulp > Type::kSmallest ? ulp : T{} + Type::kSmallest;
}

// Half a unit may be lost to the format below its smallest normal number.
template <class Function, class Type, class T>
T most_of(T x, T size) {
  return Function::most(x, size, ulp_of<Type>(size)) + Type::kSmallest / 2;
}

// Whether `got` is a right answer to `want`, the exact one of x; f64: numbers keep their range
// here, floats have their own.
template <class Function, class Type>
bool fits(Form form, double x, double want, double got) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isnan(got)) return false;
  const bool is_zero = got == 0 && is_published<Function>(x);
  if (is_zero && std::signbit(got) != std::signbit(want)) return false;
  const double size = std::fabs(want);
  if (std::isinf(want)) return got == want;
  const double most = most_of<Function, Type>(x, size);
  if (Type::kIsF32 && size + most > kLargest && std::isinf(got))
    return std::signbit(got) == std::signbit(want);
  if (form == Form::kFlushing && size - most < Type::kSmallestNormal && got == 0) return true;
  return std::fabs(got - want) <= most;
}

bool any(FourBits x) { return (x[0] | x[1] | x[2] | x[3]) != 0; }

Four absolute(Four x) {
  return std::bit_cast<Four>(std::bit_cast<FourBits>(x) & ~(int64_t{1} << 63));
}

// Whether four results are right beyond doubt; what their errors are.
template <class Function, class Type>
FourBits is_open(Form form, Four x, Four want, const typename Type::Bits* results, Four& ulps,
                 Four& share) {
  const auto result = Type::load(results);
  const Four got = __builtin_convertvector(result, Four);
  const Four size = absolute(want), error = absolute(got - want);
  const Four ulp = ulp_of<Type>(size), most = most_of<Function, Type>(x, size);
  const Four rounded = __builtin_convertvector(
      __builtin_convertvector(want, std::remove_const_t<decltype(result)>), Four);
  const FourBits is_nearest = (rounded == got) | ((want != want) & (got != got));
  FourBits is_flushed{};
  if (form == Form::kFlushing) is_flushed = (got == 0) & (size - most < Type::kSmallestNormal);
  const FourBits is_within = ~is_flushed & (error <= most);
  const FourBits is_known = is_published<Function>(x), is_measured = is_within & is_known;
  if (const FourBits more = is_measured & (error > ulps * ulp); any(more))
    ulps = more ? error / ulp : ulps;
  if (const FourBits more = is_measured & (error > share * most); any(more))
    share = more ? error / most : share;
  const FourBits signs = std::bit_cast<FourBits>(got) ^ std::bit_cast<FourBits>(want);
  FourBits open = ~(is_within | is_flushed | is_nearest) | (is_known & (got == 0) & (signs < 0));
  // Vector mathematics cannot tell which of two floats is nearer to what lies in the middle.
  if (Type::kIsF32 && form == Form::kPlain)
    open |= is_known & (~is_nearest | ((error > 0.4999999 * ulp) & (error < 0.5000001 * ulp)));
  return open;
}

// The results of one form for kBatch inputs. Four that are in doubt are looked at again.
template <class Function, class Type>
void check_batch(Form form, const double* inputs, const double* wants,
                 const typename Type::Bits* results, size_t count, Sum& sum) {
  Four ulps{}, share{};
  const auto load = [](const double* from) {
    Four x;
    std::memcpy(&x, from, sizeof x);
    return x;
  };
  for (size_t i = 0; i < kBatch; i += 4) {
    const FourBits open =
        is_open<Function, Type>(form, load(inputs + i), load(wants + i), results + i, ulps, share);
    if (!any(open)) continue;
    for (size_t k = i; k < std::min(i + 4, count); ++k) {
      const double x = inputs[k], want = Function::exact(x);
      const auto result = std::bit_cast<typename Type::Number>(results[k]);
      if (Type::kIsF32 && form == Form::kPlain && is_published<Function>(x))
        sum.not_nearest +=
            static_cast<typename Type::Number>(want) != result && !std::isnan(result);
      if (fits<Function, Type>(form, x, want, result)) continue;
      if (sum.wrong++ == 0)
        sum.example = fmt::format("{} of {:a} is {:a}", sum.opcode, x, double{result});
    }
  }
  sum.inputs += count;
  for (int i = 0; i < 4; ++i) {
    sum.ulps = std::max(sum.ulps, ulps[i]);
    sum.share = std::max(sum.share, share[i]);
  }
}

template <class Type>
struct Results {
  Form form;
  std::vector<typename Type::Bits> bits;
};

// Results of inputs base, base + step ...
template <class Function, class Type>
void check(uint32_t base, uint32_t step, size_t count, const std::vector<Results<Type>>& results,
           std::vector<Sum>& sums) {
  const size_t parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::vector<Sum>> of_part(parts, std::vector<Sum>(sums.size()));
  const auto work = [&](size_t part) {
    std::vector<Sum>& own = of_part[part];
    for (size_t k = 0; k < sums.size(); ++k) own[k].opcode = sums[k].opcode;
    std::array<double, kBatch> x, want, flushed_x, flushed_want;
    for (size_t first = part * kBatch; first < count; first += parts * kBatch) {
      for (size_t i = 0; i < kBatch; ++i)
        x[i] = Type::input(base + static_cast<uint32_t>(first + i) * step);
      Function::exact_batch(x.data(), want.data());
      for (size_t i = 0; i < kBatch; ++i) flushed_x[i] = flushed<Type>(x[i]);
      const bool is_same = std::none_of(x.begin(), x.end(), [](double e) {
        return e != 0 && std::fabs(e) < Type::kSmallestNormal;
      });
      if (!is_same) Function::exact_batch(flushed_x.data(), flushed_want.data());
      const size_t some = std::min(kBatch, count - first);
      for (size_t k = 0; k < results.size(); ++k) {
        const bool is_other = results[k].form == Form::kFlushing && !is_same;
        check_batch<Function, Type>(results[k].form, (is_other ? flushed_x : x).data(),
                                    (is_other ? flushed_want : want).data(),
                                    results[k].bits.data() + first, some, own[k]);
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t part = 0; part < parts; ++part) threads.emplace_back(work, part);
  }
  for (const std::vector<Sum>& own : of_part)
    for (size_t k = 0; k < sums.size(); ++k) sums[k].add(own[k]);
}

constexpr uint32_t kBlock = 256, kThreads = kBlock * 64;

// out[i] = f(base + i * step), words or upper words: each thread makes `rounds` of them.
template <class Type>
std::string kernel_text(const std::string& opcode) {
  const std::string body =
      Type::kIsF32
          ? fmt::format("mov.b32 %f, %x;\n{} %f, %f;\nst.global.f32 [%o], %f;\n", opcode)
          : fmt::format("mov.b64 %d, {{0, %x}};\n{} %d, %d;\nst.global.f64 [%o], %d;\n", opcode);
  return fmt::format(
      ".version 9.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u32 base, .param .u32 step,\n"
      "                  .param .u32 rounds) {{\n"
      ".reg .b32 %x, %t, %c, %s, %r;\n.reg .b64 %o;\n.reg .f32 %f;\n.reg .f64 %d;\n.reg .pred %p;\n"
      "mov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nmad.lo.u32 %t, %c, {0}, %t;\n"
      "ld.param.u32 %x, [base];\nld.param.u32 %s, [step];\nmad.lo.u32 %x, %t, %s, %x;\n"
      "mul.lo.u32 %s, %s, {1};\nld.param.u32 %r, [rounds];\n"
      "ld.param.u64 %o, [out];\nmad.wide.u32 %o, %t, {2}, %o;\n"
      "L: {3}"
      "add.u32 %x, %x, %s;\nadd.u64 %o, %o, {4};\nsub.u32 %r, %r, 1;\n"
      "setp.ne.u32 %p, %r, 0;\n@%p bra L;\nret;\n}}\n",
      kBlock, kThreads, sizeof(typename Type::Bits), body, kThreads * sizeof(typename Type::Bits));
}

struct Run {
  uint64_t step = 1;
  std::string_view only;  // an opcode, or all
  bool is_known = false, is_wrong = false;
};

template <class Function, class Type>
void run(Run& all, std::initializer_list<Form> forms) {
  constexpr uint64_t kInputs = uint64_t{1} << 32;
  const uint64_t count = (kInputs + all.step - 1) / all.step;
  const auto rounds = static_cast<uint32_t>(
      std::min<uint64_t>((count + kThreads - 1) / kThreads, (1 << 22) / kThreads));
  const uint64_t chunk = uint64_t{rounds} * kThreads;
  Engine engine;
  std::vector<Sum> sums;
  std::vector<const Kernel*> kernels;
  std::vector<Results<Type>> results;
  for (const Form form : forms) {
    const std::string opcode = fmt::format("{}.approx{}.{}", Function::kName,
                                           form == Form::kFlushing ? ".ftz" : "", Type::kName);
    if (!all.only.empty() && opcode != all.only) continue;
    sums.push_back({.opcode = opcode});
    kernels.push_back(
        engine.find_kernel(engine.load(kernel_text<Type>(opcode), "all_inputs"), "k"));
    results.push_back({form, std::vector<typename Type::Bits>(chunk)});
  }
  if (sums.empty()) return;
  all.is_known = true;
  for (Results<Type>& r : results)
    engine.add_memory(r.bits.data(), r.bits.size() * sizeof(typename Type::Bits));
  for (uint64_t first = 0; first < count; first += chunk) {
    const auto base = static_cast<uint32_t>(first * all.step);
    const auto step = static_cast<uint32_t>(all.step);
    for (size_t k = 0; k < kernels.size(); ++k) {
      struct {
        void* out;
        uint32_t base, step, rounds;
      } params{results[k].bits.data(), base, step, rounds};
      const LaunchResult r =
          engine.launch({.kernel = kernels[k],
                         .grid = {kThreads / kBlock, 1, 1},
                         .block = {kBlock, 1, 1},
                         .params = std::as_bytes(std::span(&params, 1)).first(20)});
      if (r.fault) throw Error(r.fault->text);
    }
    check<Function, Type>(base, step, std::min(chunk, count - first), results, sums);
  }
  for (const Sum& s : sums) {
    fmt::print("{}: {} inputs, {} beyond the bounds, largest error {:.3g} of the bound", s.opcode,
               s.inputs, s.wrong, s.share);
    if (Type::kIsF32) fmt::print(", {:.4f} ulp", s.ulps);
    if (Type::kIsF32 && s.opcode.find(".ftz") == std::string::npos)
      fmt::print(", {} not the nearest float", s.not_nearest);
    fmt::print("\n");
    if (s.wrong != 0) fmt::print("  {}\n", s.example);
    all.is_wrong |= s.wrong != 0;
  }
  std::fflush(stdout);
}

int run_all(uint64_t step, std::string_view only) {
  using enum Form;
  Run all{.step = step, .only = only};
  run<Reciprocal, F32>(all, {kPlain, kFlushing});
  run<Root, F32>(all, {kPlain, kFlushing});
  run<ReciprocalRoot, F32>(all, {kPlain, kFlushing});
  run<PowerOfTwo, F32>(all, {kPlain, kFlushing});
  run<Logarithm, F32>(all, {kPlain, kFlushing});
  run<Sine, F32>(all, {kPlain, kFlushing});
  run<Cosine, F32>(all, {kPlain, kFlushing});
  run<HyperbolicTangent, F32>(all, {kPlain});
  run<OfDouble<Reciprocal>, F64>(all, {kFlushing});
  run<OfDouble<ReciprocalRoot>, F64>(all, {kFlushing});
  if (all.is_known) return all.is_wrong ? 1 : 0;
  fmt::print(stderr, "ptx_all_inputs: no function '{}'\n", only);
  return 2;
}

}  // namespace
}  // namespace gpusim::ptx

int main(int argc, char** argv) {
  const uint64_t step = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  if (argc > 3 || step == 0 || step > 1u << 31) {
    fmt::print(stderr, "usage: ptx_all_inputs [STEP [OPCODE]]\n");
    return 2;
  }
  try {
    return gpusim::ptx::run_all(step, argc > 2 ? argv[2] : "");
  } catch (const std::exception& e) {
    fmt::print(stderr, "ptx_all_inputs: {}\n", e.what());
    return 1;
  }
}
