// Approximate functions of one operand, on all 2^32 inputs or every n-th, against the bounds that
// the PTX ISA publishes (9.7.3, "Floating Point Instructions"): f32, and of f64 the upper words.
//   ptx_all_inputs [STEP [OPCODE]]      STEP: 1 takes all inputs; OPCODE: of that one alone
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "device_sim/base/error.h"
#include "host/ptx/engine.h"

namespace gpusim::ptx {
namespace {

constexpr double kSmallestNormal = 0x1p-126, kSmallest = 0x1p-149, kLargest = 0x1.fffffep127;
constexpr double kNoBound = 2;  // of what lies between -1 and 1
constexpr double kPi = 3.14159265358979323846;

struct Bounds {
  double relative = 0, absolute = 0, ulps = 0;  // the sum of them is allowed
};
struct Function {
  const char* name;
  double (*exact)(double);
  Bounds (*bounds)(double x);
  bool has_plain = true;  // a form without .ftz
  bool has_flushing = true;
  bool is_f64 = false;
};

Bounds of_sine(double x) {
  const double size = std::fabs(x);
  if (size <= 2 * kPi) return {.absolute = std::exp2(-20.5)};
  if (size <= 100 * kPi) return {.absolute = std::exp2(-14.7)};
  return {.absolute = kNoBound};  // nothing is published
}

const Function kFunctions[] = {
    {"rcp", [](double x) { return 1 / x; }, [](double) { return Bounds{.ulps = 1}; }},
    {"sqrt", [](double x) { return std::sqrt(x); },
     [](double) { return Bounds{.relative = 0x1p-23}; }},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); },
     [](double) { return Bounds{.relative = std::exp2(-22.9)}; }},
    {"ex2", [](double x) { return std::exp2(x); }, [](double) { return Bounds{.ulps = 2}; }},
    {"lg2", [](double x) { return std::log2(x); },
     [](double x) {
       return x > 0.5 && x < 2 ? Bounds{.absolute = 0x1p-22} : Bounds{.relative = 0x1p-22};
     }},
    {"sin", [](double x) { return std::sin(x); }, of_sine},
    {"cos", [](double x) { return std::cos(x); }, of_sine},
    {"tanh", [](double x) { return std::tanh(x); },
     [](double) { return Bounds{.relative = 0x1p-11}; }, true, false},
    {"rcp", [](double x) { return 1 / x; }, [](double) { return Bounds{.relative = 0x1p-20}; },
     false, true, true},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); },
     [](double) { return Bounds{.relative = 0x1p-20}; }, false, true, true},
};

std::string opcode(const Function& f, bool is_flushing) {
  return fmt::format("{}.approx{}.{}", f.name, is_flushing ? ".ftz" : "", f.is_f64 ? "f64" : "f32");
}

// out[i] = f(base + i * step), words or upper words.
std::string kernel_text(const Function& f, bool is_flushing) {
  const std::string body =
      f.is_f64 ? fmt::format("mov.b64 %d, {{0, %x}};\n{} %d, %d;\nst.global.f64 [%o], %d;\n",
                             opcode(f, is_flushing))
               : fmt::format("mov.b32 %f, %x;\n{} %f, %f;\nst.global.f32 [%o], %f;\n",
                             opcode(f, is_flushing));
  return ".version 9.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 out, .param .u32 base, .param .u32 step) {\n"
         ".reg .b32 %x, %t, %c, %s;\n.reg .b64 %o;\n.reg .f32 %f;\n.reg .f64 %d;\n"
         "mov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nmad.lo.u32 %t, %c, 256, %t;\n"
         "ld.param.u32 %x, [base];\nld.param.u32 %s, [step];\nmad.lo.u32 %x, %t, %s, %x;\n"
         "ld.param.u64 %o, [out];\nmad.wide.u32 %o, %t, " +
         std::string(f.is_f64 ? "8" : "4") + ", %o;\n" + body + "ret;\n}\n";
}

double flushed(double x, double smallest) {
  return std::fabs(x) < smallest ? std::copysign(0.0, x) : x;
}

// Whether `got` is a right answer to `want`, the exact one of x; f64: numbers keep their range
// here, floats have their own.
bool fits(const Function& f, bool is_flushing, double x, double want, double got) {
  const double smallest_normal = f.is_f64 ? 0x1p-1022 : kSmallestNormal;
  if (std::isnan(want)) return std::isnan(got);
  if (std::isnan(got)) return false;
  const double size = std::fabs(want);
  if (std::isinf(want)) return got == want;
  // Half a unit of the last place may be lost to the format below its smallest normal number.
  const double smallest = f.is_f64 ? 0x1p-1074 : kSmallest;
  const double ulp = std::max(smallest, std::ldexp(1.0, std::ilogb(std::max(size, 1e-300)) - 23));
  const Bounds b = f.bounds(x);
  const double most = b.relative * size + b.absolute + b.ulps * ulp + smallest / 2;
  if (!f.is_f64 && size + most > kLargest && std::isinf(got))
    return std::signbit(got) == std::signbit(want);
  if (is_flushing && size - most < smallest_normal && got == 0) return true;
  return std::fabs(got - want) <= most;
}

struct Sum {
  uint64_t inputs = 0, wrong = 0, not_nearest = 0;
  std::string example;
};

template <class Bits, class Number>
void check(const Function& f, bool is_flushing, uint64_t base, uint64_t step,
           const std::vector<Bits>& results, Sum& sum) {
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Sum> of_part(parts);
  const auto work = [&](unsigned part) {
    Sum& s = of_part[part];
    for (size_t i = part; i < results.size(); i += parts) {
      const auto word = static_cast<uint32_t>(base + i * step);
      double x = f.is_f64 ? std::bit_cast<double>(uint64_t{word} << 32)
                          : double{std::bit_cast<float>(word)};
      if (is_flushing) x = flushed(x, f.is_f64 ? 0x1p-1022 : kSmallestNormal);
      const double got = std::bit_cast<Number>(results[i]), want = f.exact(x);
      ++s.inputs;
      // All bounds are wider than half a unit of the last place, which is lost by rounding.
      if (static_cast<Number>(want) == std::bit_cast<Number>(results[i])) continue;
      if (!f.is_f64 && !is_flushing && f.bounds(x).absolute < kNoBound)
        s.not_nearest += !std::isnan(got);
      if (fits(f, is_flushing, x, want, got)) continue;
      if (s.wrong++ == 0)
        s.example = fmt::format("{} of {:a} is {:a}", opcode(f, is_flushing), x, got);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned part = 0; part < parts; ++part) threads.emplace_back(work, part);
  }
  for (Sum& s : of_part) {
    sum.inputs += s.inputs;
    sum.wrong += s.wrong;
    sum.not_nearest += s.not_nearest;
    if (sum.example.empty()) sum.example = s.example;
  }
}

template <class Bits, class Number>
Sum run(const Function& f, bool is_flushing, uint64_t step) {
  constexpr uint64_t kBlock = 256, kInputs = uint64_t{1} << 32;
  const uint64_t count = (kInputs + step - 1) / step, chunk = std::min<uint64_t>(count, 1 << 22);
  std::vector<Bits> results;
  Engine engine;
  LoadedModule& module = engine.load(kernel_text(f, is_flushing), "all_inputs");
  const Kernel* const kernel = engine.find_kernel(module, "k");
  results.resize((chunk + kBlock - 1) / kBlock * kBlock);
  engine.add_memory(results.data(), results.size() * sizeof(Bits));
  Sum sum;
  for (uint64_t first = 0; first < count; first += chunk) {
    struct {
      void* out;
      uint32_t base, step;
    } params{results.data(), static_cast<uint32_t>(first * step), static_cast<uint32_t>(step)};
    const LaunchResult r =
        engine.launch({.kernel = kernel,
                       .grid = {static_cast<uint32_t>(results.size() / kBlock), 1, 1},
                       .block = {kBlock, 1, 1},
                       .params = std::as_bytes(std::span(&params, 1))});
    if (r.fault) throw Error(r.fault->text);
    std::vector<Bits> some(
        results.begin(), results.begin() + static_cast<ptrdiff_t>(std::min(chunk, count - first)));
    check<Bits, Number>(f, is_flushing, first * step, step, some, sum);
  }
  return sum;
}

int run_all(uint64_t step, std::string_view only) {
  int status = 0;
  bool is_known = only.empty();
  for (const Function& f : kFunctions)
    for (const bool is_flushing : {false, true}) {
      if (!(is_flushing ? f.has_flushing : f.has_plain)) continue;
      if (!only.empty() && opcode(f, is_flushing) != only) continue;
      is_known = true;
      const Sum s = f.is_f64 ? run<uint64_t, double>(f, is_flushing, step)
                             : run<uint32_t, float>(f, is_flushing, step);
      fmt::print("{}: {} inputs, {} beyond the bounds", opcode(f, is_flushing), s.inputs, s.wrong);
      if (!f.is_f64 && !is_flushing) fmt::print(", {} not the nearest float", s.not_nearest);
      fmt::print("\n");
      std::fflush(stdout);
      if (s.wrong == 0) continue;
      fmt::print("  {}\n", s.example);
      status = 1;
    }
  if (is_known) return status;
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
