// Helpers of BFloat16 and of half-precision products in single precision (helpers.def).
#pragma once
#include <cstdint>

#include "device_sim/uir/helpers_fp.h"
#include "device_sim/uir/softfloat/bfloat.h"
#include "device_sim/uir/uop.h"

namespace gpusim::helpers {

GPUSIM_HD_NOINLINE uint64_t bfdot(uint64_t a, uint64_t b, uint64_t c, const Uop&) {
  uint64_t r = 0;
  for (int i = 0; i < 64; i += 32) {
    r |= softfloat::bf_dot_add(cut<F32>(c >> i), cut<F32>(a >> i), cut<F32>(b >> i)) << i;
  }
  return r;
}

GPUSIM_HD_NOINLINE uint64_t bfcvt(uint64_t a, uint64_t b, const Uop&, uint64_t& fp) {
  uint64_t r = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t single = cut<F32>((i < 2 ? a : b) >> 32 * (i & 1));
    r |= softfloat::fp_convert_bf(single, fp) << 16 * i;
  }
  return r;
}

// A half as a single, a signalling NaN still one. FZ16 counts, AHP does not.
GPUSIM_HD constexpr uint64_t half_as_single(uint64_t half, uint64_t fp) {
  uint64_t no_exceptions = 0;
  const softfloat::Unpacked a =
      softfloat::unpack_base<F16>(half, softfloat::flushes_to_zero<F16>(fp), false, no_exceptions);
  const bool sign = a.sign;
  if (a.is_zero()) return softfloat::with_sign<F32>(sign, 0);
  if (!a.is_finite()) {
    return softfloat::with_sign<F32>(sign, F32::kInf | (half & F16::kFracMask)
                                                           << (F32::kFracBits - F16::kFracBits));
  }
  const auto field = static_cast<uint64_t>(a.exp + F32::kBias);
  return softfloat::with_sign<F32>(sign, field << F32::kFracBits | (a.sig >> 40 & F32::kFracMask));
}

// FPMulAddH: the widened product is as good as the half-precision one in the fused operation.
GPUSIM_HD_NOINLINE uint64_t fmlal(uint64_t a, uint64_t b, uint64_t c, const Uop& u, uint64_t& fp) {
  const int from = u.imm >> 16 & 1 ? 32 : 0;
  const uint64_t sign = u.imm >> 17 & 1 ? F16::kSign : 0;
  uint64_t r = 0;
  for (int i = 0; i < 2; ++i) {
    const uint64_t x = half_as_single(cut<F16>(a >> (from + 16 * i)) ^ sign, fp);
    const uint64_t y = half_as_single(cut<F16>(b >> (from + 16 * i)), fp);
    r |= MulAdd<F32>::run(x, y, c >> 32 * i, fp) << 32 * i;
  }
  return r;
}

}  // namespace gpusim::helpers
