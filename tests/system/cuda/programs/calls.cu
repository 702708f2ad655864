// Recursion, functions by address, virtual functions, the heap of device code, grids that meet.
#include <cooperative_groups.h>

#include "check.h"

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual float area() const = 0;
  __device__ virtual int number(int x) { return x; }
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Ring : Shape {
  float radius;
  __device__ explicit Ring(float r) : radius(r) {}
  __device__ float area() const override { return 3 * radius * radius; }
  __device__ int number(int x) override { return 100 - x; }
};

__global__ void make(Shape** shapes) {
  const int i = threadIdx.x;
  shapes[i] = i % 3 != 0 ? static_cast<Shape*>(new Ring(i)) : new Square(i);
}
__global__ void use(Shape** shapes, float* areas, int* numbers) {
  const int i = threadIdx.x;
  areas[i] = shapes[i]->area();
  numbers[i] = shapes[i]->number(i);
}
__global__ void clean(Shape** shapes) { delete shapes[threadIdx.x]; }

__host__ __device__ unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__device__ void sort(int* values, int low, int high) {
  if (low >= high) return;
  const int pivot = values[high];
  int i = low;
  for (int j = low; j <= high; ++j)
    if (j == high || values[j] < pivot) {
      const int t = values[i];
      values[i++] = values[j];
      values[j] = t;
    }
  sort(values, low, i - 2);
  sort(values, i, high);
}
__global__ void recurse(unsigned* numbers, int* unsorted) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  numbers[i] = fibonacci(i % 14);
  int values[20];
  for (int k = 0; k < 20; ++k) values[k] = (k * 7 + i * 13) % 31;
  sort(values, 0, 19);
  unsorted[i] = 0;
  for (int k = 1; k < 20; ++k) unsorted[i] += values[k - 1] > values[k];
}

using Operation = int (*)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int minus(int a, int b) { return a - b; }
__device__ int times(int a, int b) { return a * b; }
__device__ Operation operations[] = {plus, minus, times};
__device__ Operation chosen = times;
__global__ void by_address(Operation* from_host, int* out) {
  const int i = threadIdx.x;
  out[i] = operations[i % 3](i, 5) + chosen(i, 2) + (*from_host)(i, 1);
}

__global__ void neighbours(int* values, int rounds) {
  const auto grid = cooperative_groups::this_grid();
  const int i = grid.thread_rank(), n = grid.size();
  for (int r = 0; r < rounds; ++r) {
    const int next = values[(i + blockDim.x) % n];
    grid.sync();
    values[i] = next + 1;
    grid.sync();
  }
}

__global__ void spin(long long* out) {
  const long long begin = clock64();
  while (clock64() - begin < 1000) __nanosleep(10);
  out[threadIdx.x] = clock64() - begin;
}

int main() {
  constexpr int kThreads = 64, kBlocks = 5;
  Shape** shapes;
  float* areas;
  int *numbers, *unsorted;
  unsigned* sums;
  long long* clocks;
  Operation* operation;
  FINE(cudaMallocManaged(&shapes, kThreads * sizeof(Shape*)));
  FINE(cudaMallocManaged(&areas, kThreads * sizeof(float)));
  FINE(cudaMallocManaged(&numbers, kBlocks * kThreads * sizeof(int)));
  FINE(cudaMallocManaged(&unsorted, kBlocks * kThreads * sizeof(int)));
  FINE(cudaMallocManaged(&sums, kBlocks * kThreads * sizeof(unsigned)));
  FINE(cudaMallocManaged(&clocks, kThreads * sizeof(long long)));
  FINE(cudaMallocManaged(&operation, sizeof(Operation)));

  make<<<1, kThreads>>>(shapes);
  use<<<1, kThreads>>>(shapes, areas, numbers);
  clean<<<1, kThreads>>>(shapes);
  FINE(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) {
    CHECK(areas[i] == (i % 3 != 0 ? 3.0f : 1.0f) * i * i);
    CHECK(numbers[i] == (i % 3 != 0 ? 100 - i : i));
  }

  recurse<<<kBlocks, kThreads>>>(sums, unsorted);
  FINE(cudaDeviceSynchronize());
  for (unsigned i = 0; i < kBlocks * kThreads; ++i)
    CHECK(sums[i] == fibonacci(i % 14) && unsorted[i] == 0);

  FINE(cudaMemcpyFromSymbol(operation, chosen, sizeof(Operation)));
  by_address<<<1, kThreads>>>(operation, numbers);
  FINE(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i)
    CHECK(numbers[i] == (i % 3 == 0 ? i + 5 : i % 3 == 1 ? i - 5 : i * 5) + 2 * i + i);

  for (int i = 0; i < kBlocks * kThreads; ++i) numbers[i] = i;
  int rounds = 3;
  void* arguments[] = {&numbers, &rounds};
  FINE(cudaLaunchCooperativeKernel(neighbours, dim3(kBlocks), dim3(kThreads), arguments, 0, 0));
  FINE(cudaDeviceSynchronize());
  for (int i = 0; i < kBlocks * kThreads; ++i)
    CHECK(numbers[i] == (i + 3 * kThreads) % (kBlocks * kThreads) + 3);
  CHECK(cudaLaunchCooperativeKernel(neighbours, dim3(1 << 20), dim3(kThreads), arguments, 0, 0) ==
        cudaErrorCooperativeLaunchTooLarge);
  cudaGetLastError();

  spin<<<1, kThreads>>>(clocks);
  FINE(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) CHECK(clocks[i] >= 1000 && clocks[i] < 1100);
  return finish();
}
