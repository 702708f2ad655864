#include "device_sim/simd/affine.h"

#include <doctest/doctest.h>

#include "device_sim/uir/semantics_int.h"

namespace gpusim::simd {
namespace {

using D = sem::ScalarDomain;
constexpr uint32_t kLast = 63;

// Whether the rule holds for these operands; if so, every lane has the value of the semantics.
template <Op op, class F>
bool rule_holds(F semantics, Compact a, Compact b, Compact c) {
  Compact d;
  if (!affine_rule<op>(Uop{.op = op}, kLast, a, b, c, d)) return false;
  for (uint32_t lane = 0; lane <= kLast; ++lane)
    CHECK(d.at(lane) == semantics(a.at(lane), b.at(lane), c.at(lane)));
  return true;
}
#define GPUSIM_QUOTIENT(op)                                                           \
  [](Compact a, Compact b) {                                                          \
    const auto f = [](uint64_t x, uint64_t y, uint64_t) { return sem::op<D>(x, y); }; \
    return rule_holds<Op::op>(f, a, b, {});                                           \
  }
#define GPUSIM_REMAINDER(op)                                                               \
  [](Compact a, Compact b, Compact c) {                                                    \
    const auto f = [](uint64_t x, uint64_t y, uint64_t z) { return sem::op<D>(x, y, z); }; \
    return rule_holds<Op::op>(f, a, b, c);                                                 \
  }

TEST_CASE("quotients of neighbours are one value where no multiple lies between them") {
  const auto check = [](auto quotient) {
    CHECK(quotient({640, 1}, {640, 0}));
    CHECK(quotient({1280 + 575, 1}, {640, 0}));
    CHECK(quotient({640 + 63, uint64_t(-1)}, {640, 0}));
    CHECK_FALSE(quotient({1280 + 577, 1}, {640, 0}));
    CHECK_FALSE(quotient({640, 1}, {640, 1}));
  };
  check(GPUSIM_QUOTIENT(udiv64));
  check(GPUSIM_QUOTIENT(udiv32));
  check(GPUSIM_QUOTIENT(sdiv64));
  check(GPUSIM_QUOTIENT(sdiv32));
}

TEST_CASE("quotients at the ends of the numbers, and by zero") {
  CHECK(GPUSIM_QUOTIENT(udiv64)({5, 1}, {0, 0}));
  CHECK(GPUSIM_QUOTIENT(udiv32)({5, 1}, {uint64_t{1} << 32, 0}));  // a word of zero
  CHECK_FALSE(GPUSIM_QUOTIENT(udiv64)({~uint64_t{0} - 5, 1}, {640, 0}));
  CHECK_FALSE(GPUSIM_QUOTIENT(udiv32)({0xfffffffa, 1}, {640, 0}));
  CHECK(GPUSIM_QUOTIENT(sdiv64)({uint64_t(-1000), 1}, {640, 0}));
  CHECK(GPUSIM_QUOTIENT(sdiv32)({uint64_t(-1000), 1}, {640, 0}));  // a quotient below zero
  CHECK_FALSE(GPUSIM_QUOTIENT(sdiv32)({0x7ffffff0, 1}, {640, 0}));
  CHECK_FALSE(GPUSIM_QUOTIENT(sdiv64)({uint64_t{1} << 63, 1}, {uint64_t(-1), 0}));
}

TEST_CASE("remainders by one quotient keep the stride") {
  CHECK(GPUSIM_REMAINDER(msub64)({2, 0}, {640, 0}, {1290, 1}));
  CHECK(GPUSIM_REMAINDER(msub32)({2, 0}, {640, 0}, {1290, 1}));
  CHECK_FALSE(GPUSIM_REMAINDER(msub32)({3, 0}, {640, 0}, {1900, 1}));  // some lanes wrap
}

}  // namespace
}  // namespace gpusim::simd
