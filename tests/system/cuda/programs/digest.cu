// Memory whose digest depends on the argument: what was freed, and what is there at the end.
#include <cstdlib>

__global__ void fill(int* to, int value) {
  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
  const unsigned thread = threadIdx.x + blockDim.x * threadIdx.y;
  to[block * blockDim.x * blockDim.y + thread] = value;
}

int main(int, char** arguments) {
  int *freed = nullptr, *kept = nullptr;
  if (cudaMalloc(&freed, 1024) != cudaSuccess || cudaMalloc(&kept, 1024) != cudaSuccess) return 1;
  fill<<<dim3(3, 2), 40>>>(freed, std::atoi(arguments[1]));
  fill<<<1, dim3(32, 2)>>>(kept, 7);
  if (cudaFree(freed) != cudaSuccess) return 1;
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
