// Rules that neither the host's FPU nor every version of QEMU follows, and use at compile time.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdint>

#include "device_sim/uir/softfloat/softfloat.h"

namespace {

using namespace gpusim::softfloat;

constexpr uint64_t kOne = 0x3FF0000000000000;

constexpr uint64_t flags(uint64_t st) { return st & 0xFFFFFFFF; }

constexpr uint64_t at_compile_time() {
  uint64_t st = 0;
  const uint64_t two = fp_add<F64>(kOne, kOne, st);
  return fp_sqrt<F64>(fp_muladd<F64>(kOne, two, fp_div<F64>(two, kOne, st), st), st);
}
static_assert(at_compile_time() == 0x4001E3779B97F4A8);  // sqrt(5)

TEST_CASE("FJCVTZS") {
  uint64_t st = 0;
  bool exact = false;
  const auto convert = [&](uint64_t op, uint64_t state) {
    st = state;
    return fp_to_int32_js(op, exact, st);
  };
  CHECK(convert(kOne, 0) == 1);
  CHECK(exact);
  CHECK(convert(0, 0) == 0);
  CHECK(exact);
  CHECK(convert(F64::kSign, 0) == 0);
  CHECK_FALSE(exact);  // -0
  CHECK(flags(st) == 0);
  CHECK(convert(1, kFpcrFz) == 0);
  CHECK_FALSE(exact);  // a flushed subnormal; QEMU before 9.1 says exact
  CHECK(flags(st) == kFpsrIdc);
  CHECK(convert(0x41F0000000100000, 0) == 1);  // 2^32 + 1, modulo 2^32
  CHECK_FALSE(exact);
  CHECK(flags(st) == kFpsrIoc);
  CHECK(convert(0xC1E0000000000000, 0) == 0x80000000);  // -2^31
  CHECK(exact);
  CHECK(convert(0xC1E0000000200000, 0) == 0x7FFFFFFF);  // -2^31 - 1
  CHECK(flags(st) == kFpsrIoc);
  CHECK(convert(0x4520000000000001, 0) == 0x80000000);  // 2^83 + 2^31
}

TEST_CASE("a 16-bit integer is zero-extended") {
  uint64_t st = 0;
  CHECK(fp_to_fixed<F16>(0xC000, 16, 7, false, Rounding::kZero, st) == 0xFF00);
  CHECK(fp_to_fixed<F16>(0xFBFF, 16, 7, false, Rounding::kZero, st) == 0x8000);
  CHECK(flags(st) == kFpsrIoc);
}

TEST_CASE("tininess is detected before rounding, and flushing raises UFC alone") {
  // The largest subnormal plus three quarters of its unit rounds up to the smallest normal number.
  const uint64_t below_one = 0x3F7FFFFF;
  const uint64_t smallest_normal = 0x00800000;
  uint64_t st = 0;
  CHECK(fp_mul<F32>(below_one, smallest_normal, st) == smallest_normal);
  CHECK(flags(st) == (kFpsrUfc | kFpsrIxc));
  st = kFpcrFz;
  CHECK(fp_mul<F32>(below_one, smallest_normal, st) == 0);
  CHECK(flags(st) == kFpsrUfc);
}

TEST_CASE("half precision flushes inputs silently") {
  uint64_t st = kFpcrFz16;
  CHECK(fp_add<F16>(0x0001, 0x8001, st) == 0);
  CHECK(flags(st) == 0);
  st = kFpcrFz;
  CHECK(fp_add<F32>(0x00000001, 0x80000001, st) == 0);
  CHECK(flags(st) == kFpsrIdc);
}

TEST_CASE("NaNs: signalling first, then operand order; DN replaces them") {
  const uint64_t quiet = 0x7FC00001;
  const uint64_t signalling = 0xFF800002;
  uint64_t st = 0;
  CHECK(fp_add<F32>(quiet, signalling, st) == (signalling | F32::kQuietBit));
  CHECK(flags(st) == kFpsrIoc);
  st = 0;
  CHECK(fp_sub<F32>(0, quiet, st) == quiet);
  CHECK(flags(st) == 0);
  // The addend comes first, and infinity * 0 + quiet NaN is invalid.
  CHECK(fp_muladd<F32>(quiet, quiet | 0xF0, F32::kInf, st) == quiet);
  CHECK(fp_muladd<F32>(quiet, 0, F32::kInf, st) == F32::kDefaultNan);
  CHECK(flags(st) == kFpsrIoc);
  st = kFpcrDn;
  CHECK(fp_sqrt<F32>(quiet, st) == F32::kDefaultNan);
  CHECK(flags(st) == 0);
}

TEST_CASE("alternative half precision has no infinities and NaNs") {
  uint64_t st = kFpcrAhp;
  CHECK(fp_convert<F16, F32>(F32::kInf, st) == 0x7FFF);
  CHECK(flags(st) == kFpsrIoc);
  st = kFpcrAhp;
  CHECK(fp_convert<F16, F32>(0xFFC00000, st) == 0x8000);
  CHECK(flags(st) == kFpsrIoc);
  st = kFpcrAhp;
  CHECK(fp_convert<F32, F16>(0x7C00, st) == 0x47800000);  // 65536
  CHECK(flags(st) == 0);
}

TEST_CASE("rounding to odd keeps inexactness for a second rounding") {
  uint64_t st = 0;
  CHECK(fp_convert<F32, F64>(kOne + 1, Rounding::kOdd, st) == 0x3F800001);
  CHECK(flags(st) == kFpsrIxc);
  CHECK(fp_convert<F32, F64>(F64::kMaxNormal, Rounding::kOdd, st) == F32::kMaxNormal);
}

}  // namespace
