extern "C" {
__device__ int bias;
__global__ void add_bias(int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += bias;
}
}
