// The SIMD targets that we compile for. On x86-64: AVX2, the baseline of these files (hence
// SimdBackend::available), and AVX-512. What lies between or beyond gains little for 64-bit lanes and
// costs a minute of compilation each.
#pragma once
#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
