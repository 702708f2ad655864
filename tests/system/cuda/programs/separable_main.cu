// Two units of -rdc=true: the second has a function and a variable that the first uses.
#include <cuda_runtime.h>

#include "check.h"

extern __device__ int table[4];
extern __device__ int twice(int value);

__global__ void use(int* out) { out[threadIdx.x] = twice(threadIdx.x) + table[threadIdx.x % 4]; }

int main() {
  int *out, host[8];
  FINE(cudaMalloc(&out, sizeof host));
  use<<<1, 8>>>(out);
  FINE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 8; ++i) CHECK(host[i] == 2 * i + (i % 4 + 1) * 10);
  return finish();
}
