// alloca in functions: of one that takes its caller's place, and of one that calls itself.
//   nvcc -ptx -arch=compute_80 -o stacks.ptx stacks.cu
#include <alloca.h>

__device__ unsigned sum_of(unsigned n, unsigned seed) {
  auto* const a = static_cast<unsigned*>(alloca(n * sizeof(unsigned)));
  for (unsigned i = 0; i < n; ++i) a[i] = seed + i * i;
  unsigned sum = 0;
  for (unsigned i = n; i-- > 0;) sum = sum * 3 + a[i];
  return sum;
}

__device__ __noinline__ unsigned deep(unsigned n, unsigned seed) {
  auto* const a = static_cast<unsigned*>(alloca((n + 1) * sizeof(unsigned)));
  for (unsigned i = 0; i <= n; ++i) a[i] = seed ^ i;
  unsigned below = n > 0 ? deep(n - 1, seed * 5) : 7;
  for (unsigned i = 0; i <= n; ++i) below = below * 31 + a[i];
  return below;
}

extern "C" __global__ void stacks(unsigned* out, unsigned n) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  for (unsigned i = 0; i < 20; ++i) sum += sum_of((t + i) % n + 1, t * i);
  out[t] = sum ^ deep(t % 5, t);
}
