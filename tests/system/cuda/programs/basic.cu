// Kernels, launches, memory and variables, as most programs use them.
#include <cuda_runtime.h>

#include <vector>

#include "check.h"

__global__ void add(const float* a, const float* b, float* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

template <typename T>
__global__ void scale(T* values, T by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= by;
}

__global__ void reverse(int* values) {
  extern __shared__ int mine[];
  mine[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = mine[blockDim.x - 1 - threadIdx.x];
}

__constant__ int offsets[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__managed__ int shared_with_host = 7;

__global__ void use_variables(int* out) {
  out[threadIdx.x] = offsets[threadIdx.x % 4] + counter;
  if (threadIdx.x == 0) shared_with_host *= 6;
}

struct Large {
  char tag;
  double values[5];
  short last;
};
__global__ void take_struct(Large large, char c, double* out) {
  out[0] = large.values[4] + large.last + large.tag + c;
}

void test_add() {
  const int n = 1000;
  std::vector<float> a(n), b(n), sum(n);
  for (int i = 0; i < n; ++i) a[i] = i * 0.5f, b[i] = 1000.0f - i;
  float *da, *db, *dsum;
  FINE(cudaMalloc(&da, n * sizeof(float)));
  FINE(cudaMalloc(&db, n * sizeof(float)));
  FINE(cudaMalloc(&dsum, n * sizeof(float)));
  FINE(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  FINE(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(da, db, dsum, n);
  FINE(cudaGetLastError());
  FINE(cudaMemcpy(sum.data(), dsum, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) CHECK(sum[i] == a[i] + b[i]);
  scale<float><<<4, 256>>>(dsum, 2.0f, n);
  FINE(cudaMemcpy(sum.data(), dsum, n * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(sum[999] == 2 * (a[999] + b[999]));
  FINE(cudaFree(da));
  FINE(cudaFree(db));
  FINE(cudaFree(dsum));
}

void test_shared() {
  int* values;
  FINE(cudaMallocManaged(&values, 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) values[i] = i;
  reverse<<<1, 64, 64 * sizeof(int)>>>(values);
  FINE(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i) CHECK(values[i] == 63 - i);
  FINE(cudaFree(values));
}

void test_variables() {
  int *out, host[8];
  FINE(cudaMalloc(&out, sizeof host));
  use_variables<<<1, 8>>>(out);
  FINE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 8; ++i) CHECK(host[i] == i % 4 + 1 + 5);
  CHECK(shared_with_host == 42);
  const int more[4] = {10, 20, 30, 40}, hundred = 100;
  FINE(cudaMemcpyToSymbol(offsets, more, sizeof more));
  FINE(cudaMemcpyToSymbol(counter, &hundred, sizeof hundred));
  use_variables<<<1, 8>>>(out);
  FINE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 8; ++i) CHECK(host[i] == more[i % 4] + 100);
  int back = 0;
  FINE(cudaMemcpyFromSymbol(&back, counter, sizeof back));
  CHECK(back == 100);
  void* address = nullptr;
  size_t size = 0;
  FINE(cudaGetSymbolAddress(&address, offsets));
  FINE(cudaGetSymbolSize(&size, offsets));
  CHECK(address != nullptr);
  CHECK(size == 16);
  CHECK(cudaMemcpyToSymbol(offsets, more, 20) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  FINE(cudaFree(out));
}

void test_arguments() {
  Large large{3, {0, 0, 0, 0, 2.5}, 40};
  double *out, host = 0;
  FINE(cudaMalloc(&out, sizeof *out));
  char c = 5;
  take_struct<<<1, 1>>>(large, c, out);
  FINE(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(host == 50.5);
  void* arguments[] = {&large, &c, &out};
  c = 6;
  FINE(cudaLaunchKernel(reinterpret_cast<const void*>(take_struct), dim3(1), dim3(1), arguments, 0,
                        nullptr));
  FINE(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(host == 51.5);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  large.last = 0;
  FINE(cudaLaunchKernelEx(&config, take_struct, large, c, out));
  FINE(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(host == 11.5);
  FINE(cudaFree(out));
}

int main() {
  test_add();
  test_shared();
  test_variables();
  test_arguments();
  return finish();
}
