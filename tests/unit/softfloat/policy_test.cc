// The policies of the state word: canonical NaNs, tininess after rounding, NaNs to integers; and what
// goes with them.
#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

#include "device_sim/uir/helpers_fp.h"
#include "device_sim/uir/softfloat/softfloat.h"

namespace {

using namespace gpusim::softfloat;

constexpr uint64_t kQuiet = 0xFFF8000000001234, kSignalling = 0x7FF0000000000001;
constexpr uint64_t kOne = 0x3FF0000000000000;
constexpr uint64_t kMinNormal = 0x0010000000000000;

uint64_t flags(uint64_t st) { return st & 0xFFFFFFFF; }

TEST_CASE("canonical NaNs") {
  uint64_t st = kFpCanonicalNan;
  CHECK(fp_add<F64>(kQuiet, kOne, st) == F64::kDefaultNan);
  CHECK(flags(st) == 0);
  CHECK(fp_convert<F32, F64>(kQuiet, st) == F32::kDefaultNan);
  CHECK(fp_mul<F64>(kSignalling, kOne, st) == F64::kDefaultNan);
  CHECK(flags(st) == kFpsrIoc);
}

// 0x1.fffffffffffffp-1023, exactly between the largest subnormal and the smallest normal number:
// it rounds to the latter. With an unbounded exponent it has all its bits and stays below.
TEST_CASE("tininess before and after rounding") {
  const uint64_t largest_below_two = 0x3FFFFFFFFFFFFFFF;
  for (const uint64_t policy : {uint64_t{0}, kFpTinyAfterRounding}) {
    uint64_t st = policy;
    const uint64_t half_of_min = 0x0008000000000000;
    CHECK(fp_mul<F64>(largest_below_two, half_of_min, st) == kMinNormal);
    CHECK(flags(st) == (kFpsrUfc | kFpsrIxc));
  }
  // (1 + 2^-52) * (1 - 2^-52) * 2^-1022: to full precision it rounds to 2^-1022.
  for (const uint64_t policy : {uint64_t{0}, kFpTinyAfterRounding}) {
    uint64_t st = policy;
    CHECK(fp_mul<F64>(0x3FF0000000000001, 0x000FFFFFFFFFFFFF, st) == kMinNormal);
    CHECK(flags(st) == (policy ? kFpsrIxc : kFpsrUfc | kFpsrIxc));
  }
}

TEST_CASE("NaNs to integers") {
  for (const uint64_t policy : {uint64_t{0}, kFpNanToLargest}) {
    uint64_t st = policy;
    const auto nan_to = [&](int bits, bool is_unsigned) {
      return fp_to_fixed<F64>(kQuiet, bits, 0, is_unsigned, Rounding::kZero, st);
    };
    CHECK(nan_to(32, false) == (policy ? 0x7FFFFFFF : 0));
    CHECK(nan_to(32, true) == (policy ? 0xFFFFFFFF : 0));
    CHECK(nan_to(64, false) == (policy ? 0x7FFFFFFFFFFFFFFF : 0));
    CHECK(nan_to(64, true) == (policy ? ~uint64_t{0} : 0));
    CHECK(flags(st) == kFpsrIoc);
  }
}

TEST_CASE("ties away from zero as the state's mode") {
  uint64_t st = kFpTiesAway;
  CHECK_FALSE(is_default_mode(st));
  // 1 + 2^-53 lies between 1 and the next number.
  CHECK(fp_add<F64>(kOne, 0x3CA0000000000000, st) == kOne + 1);
  st = 0;
  CHECK(fp_add<F64>(kOne, 0x3CA0000000000000, st) == kOne);
}

TEST_CASE("minimumNumber takes the number beside a NaN of either kind") {
  uint64_t st = kFpCanonicalNan;
  CHECK(fp_minimum_number<F64>(kQuiet, kOne, st) == kOne);
  CHECK(flags(st) == 0);
  CHECK(fp_maximum_number<F64>(kOne, kSignalling, st) == kOne);
  CHECK(flags(st) == kFpsrIoc);
  CHECK(fp_minimum_number<F64>(kQuiet, kQuiet, st) == F64::kDefaultNan);
  CHECK(fp_minimum_number<F64>(0, F64::kSign, st) == F64::kSign);
  CHECK(fp_maximum_number<F64>(0, F64::kSign, st) == 0);
}

TEST_CASE("classes") {
  using gpusim::FpFormat;
  gpusim::Uop u;
  u.aux = static_cast<uint8_t>(FpFormat::kF32);
  constexpr uint32_t kByClass[] = {0xFF800000, 0xBF800000, 0x80000001, 0x80000000, 0,
                                   1,          0x00800000, 0x7F800000, 0x7F800001, 0xFFC00000};
  for (unsigned i = 0; i < 10; ++i) CHECK(gpusim::helpers::fp_class(kByClass[i], u) == 1u << i);
  u.aux = static_cast<uint8_t>(FpFormat::kF16);
  CHECK(gpusim::helpers::fp_class(0xABCD000003FF, u) == 1 << 5);
}

}  // namespace
