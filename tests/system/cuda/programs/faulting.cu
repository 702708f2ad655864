// A kernel that goes astray: the error stays until the device is reset.
#include <cuda_runtime.h>

#include "check.h"

__global__ void store(int* to, long offset) { to[offset + threadIdx.x] = 1; }

// A graph outlives what it copies and sets.
static void use_after_free(bool is_set) {
  constexpr size_t kBytes = size_t{64} << 20;
  char *from, *to;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  FINE(cudaMalloc(&from, kBytes));
  FINE(cudaMalloc(&to, kBytes));
  FINE(cudaStreamCreate(&stream));
  FINE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  if (is_set)
    FINE(cudaMemsetAsync(to, 1, kBytes, stream));
  else
    FINE(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream));
  FINE(cudaStreamEndCapture(stream, &graph));
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  FINE(cudaGraphLaunch(executable, stream));
  FINE(cudaStreamSynchronize(stream));
  FINE(cudaFree(is_set ? to : from));
  cudaGraphLaunch(executable, stream);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  FINE(cudaDeviceReset());
}

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
  use_after_free(false);
  use_after_free(true);
  return finish();
}
