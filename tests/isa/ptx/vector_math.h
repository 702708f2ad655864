// Functions of many doubles: glibc's vector mathematics where it is, four at once, else libm's one
// after the other. Vector functions err by up to 4 units of a double's last place.
#pragma once
#include <cmath>
#include <cstddef>

#if defined(GPUSIM_HAS_LIBMVEC)
#include <immintrin.h>

extern "C" {
__m256d vector_exp2(__m256d) __asm__("_ZGVdN4v_exp2");
__m256d vector_log2(__m256d) __asm__("_ZGVdN4v_log2");
__m256d vector_sin(__m256d) __asm__("_ZGVdN4v_sin");
__m256d vector_cos(__m256d) __asm__("_ZGVdN4v_cos");
__m256d vector_tanh(__m256d) __asm__("_ZGVdN4v_tanh");
}
#define GPUSIM_VECTOR_MATH(name)                                         \
  inline void name##_of_many(const double* x, double* y, size_t count) { \
    for (size_t i = 0; i < count; i += 4)                                \
      _mm256_storeu_pd(y + i, vector_##name(_mm256_loadu_pd(x + i)));    \
  }
#else
#define GPUSIM_VECTOR_MATH(name)                                         \
  inline void name##_of_many(const double* x, double* y, size_t count) { \
    for (size_t i = 0; i < count; ++i) y[i] = std::name(x[i]);           \
  }
#endif

namespace gpusim::ptx {

// count: a multiple of 4.
GPUSIM_VECTOR_MATH(exp2)
GPUSIM_VECTOR_MATH(log2)
GPUSIM_VECTOR_MATH(sin)
GPUSIM_VECTOR_MATH(cos)
GPUSIM_VECTOR_MATH(tanh)

}  // namespace gpusim::ptx

#undef GPUSIM_VECTOR_MATH
