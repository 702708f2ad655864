// A program of CUDA's runtime, for the tests of attach.
#include <cstdio>

__global__ void heavy(int *p, int n) { p[threadIdx.x] = n; }
__global__ void light(int *p, int n) { p[threadIdx.x] += n; }

int main() {
  int *memory, host[64] = {1, 2, 3};
  cudaError_t e = cudaMalloc(reinterpret_cast<void **>(&memory), sizeof host);
  if (e != cudaSuccess) {
    printf("refused: %d\n", static_cast<int>(e));
    return 4;
  }
  cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice);
  for (int i = 0; i < 2; ++i) {
    heavy<<<3, 64>>>(memory, 1);
    light<<<1, 32>>>(memory, 2);
  }
  cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost);
  e = cudaDeviceSynchronize();
  printf("done: %d\n", static_cast<int>(e));
  return 0;
}
