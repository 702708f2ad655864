// A kernel that goes astray: the error stays until the device is reset.
#include <cuda_runtime.h>

#include "check.h"

__global__ void store(int* to, long offset) { to[offset + threadIdx.x] = 1; }

int main() {
  int *values, host = 0;
  FINE(cudaMalloc(&values, 4096));
  store<<<1, 32>>>(values, 1L << 20);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaMalloc(&values, 4) == cudaErrorIllegalAddress);
  store<<<1, 32>>>(values, 0);
  CHECK(cudaMemcpy(&host, values, 4, cudaMemcpyDeviceToHost) == cudaErrorIllegalAddress);
  FINE(cudaDeviceReset());
  FINE(cudaGetLastError());
  FINE(cudaMalloc(&values, 4096));
  store<<<1, 32>>>(values, 0);
  FINE(cudaMemcpy(&host, values, 4, cudaMemcpyDeviceToHost));
  CHECK(host == 1);
  return finish();
}
