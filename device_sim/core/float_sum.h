// Sums of atomic additions of floats: rounded to nearest even, NaNs as softfloat::kFpFullNan says.
#pragma once
#include <cstdint>
#include <cstring>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/softfloat/arith.h"
#include "device_sim/uir/softfloat/bfloat.h"
#include "device_sim/uir/warp.h"

namespace gpusim {

template <class F>
GPUSIM_HD uint64_t float_sum_of(uint64_t a, uint64_t b, uint64_t modes) {
  uint64_t state = softfloat::kFpFullNan | modes;
  return softfloat::fp_add<F>(a, b, state);
}
template <class F>
GPUSIM_HD uint64_t float_sums_of_two(uint64_t a, uint64_t b) {
  return float_sum_of<F>(a & 0xffff, b & 0xffff, 0) |
         float_sum_of<F>(a >> 16 & 0xffff, b >> 16 & 0xffff, 0) << 16;
}

// Of words as `aux`, a FloatWord, says.
GPUSIM_HD_NOINLINE uint64_t float_sum(uint64_t a, uint64_t b, uint32_t aux) {
  using softfloat::Bf16, softfloat::F16, softfloat::F32, softfloat::F64;
  switch (static_cast<FloatWord>(aux)) {
    case FloatWord::kF16:
      return float_sum_of<F16>(a, b, 0);
    case FloatWord::kBf16:
      return float_sum_of<Bf16>(a, b, 0);
    case FloatWord::kF16x2:
      return float_sums_of_two<F16>(a, b);
    case FloatWord::kBf16x2:
      return float_sums_of_two<Bf16>(a, b);
    case FloatWord::kF32:
      return float_sum_of<F32>(a, b, 0);
    case FloatWord::kF32Flushed:
      return float_sum_of<F32>(a, b, softfloat::kFpcrFz);
    case FloatWord::kF64:
      return float_sum_of<F64>(a, b, 0);
  }
  return 0;
}

}  // namespace gpusim
