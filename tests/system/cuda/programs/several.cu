// Launches that several devices may share, and ones that they may not. The argument: what to run.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.h"

constexpr int kBlocks = 37, kThreads = 96, kCount = kBlocks * kThreads;

// Bytes of one word come from blocks of several devices.
__global__ void bytes(unsigned char* to) {
  to[threadIdx.x * gridDim.x + blockIdx.x] =
      static_cast<unsigned char>(7 * blockIdx.x + threadIdx.x);
}

// Atomic operations on shared memory, barriers, and blocks of very different length.
__global__ void sums(const unsigned char* from, unsigned* to) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (unsigned k = 0; k <= blockIdx.x; ++k) {
    atomicAdd(&sum, from[(threadIdx.x + k) % kThreads * gridDim.x + blockIdx.x]);
    __syncthreads();
  }
  if (threadIdx.x == 0) to[blockIdx.x] = sum;
}

__global__ void says(const unsigned* from) {
  if (threadIdx.x == 0 && blockIdx.x % 9 == 0)
    printf("block %u: %u\n", blockIdx.x, from[blockIdx.x]);
}

__global__ void counts(unsigned* to) { atomicAdd(&to[threadIdx.x % 3], blockIdx.x); }

__global__ void allocates(unsigned* to) {
  auto* const mine = static_cast<unsigned*>(malloc(16));
  if (mine == nullptr) return;
  mine[threadIdx.x % 4] = blockIdx.x;
  to[blockIdx.x * blockDim.x + threadIdx.x] = mine[threadIdx.x % 4];
  free(mine);
}

__global__ void meets(unsigned* a, unsigned* b) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = i;
  cooperative_groups::this_grid().sync();
  b[i] = a[(i + blockDim.x) % (gridDim.x * blockDim.x)];
}

// A block waits for what the one before it leaves.
__global__ void passes_on(volatile unsigned* sums, volatile unsigned* flags) {
  if (threadIdx.x != 0) return;
  unsigned before = 0;
  if (blockIdx.x != 0) {
    while (flags[blockIdx.x - 1] == 0) {
    }
    __threadfence();
    before = sums[blockIdx.x - 1];
  }
  sums[blockIdx.x] = before + blockIdx.x;
  __threadfence();
  flags[blockIdx.x] = 1;
}

__global__ void strays(unsigned* to) { to[blockIdx.x == 30 ? (1u << 22) : blockIdx.x] = 1; }

int main(int, char** arguments) {
  const char* const what = arguments[1];
  unsigned char* from = nullptr;
  unsigned *to = nullptr, *more = nullptr;
  FINE(cudaMalloc(&from, kCount));
  FINE(cudaMallocManaged(&to, kCount * sizeof(unsigned)));
  FINE(cudaHostAlloc(&more, kCount * sizeof(unsigned), cudaHostAllocMapped));
  std::memset(to, 0, kCount * sizeof(unsigned));
  std::memset(more, 0, kCount * sizeof(unsigned));
  if (std::strcmp(what, "shared") == 0) {
    bytes<<<kBlocks, kThreads>>>(from);
    sums<<<kBlocks, kThreads>>>(from, to);
    says<<<kBlocks, 32>>>(to);
    bytes<<<2, kThreads>>>(from);  // smaller ones
    sums<<<1, kThreads>>>(from, more);
  } else if (std::strcmp(what, "atomics") == 0) {
    counts<<<kBlocks, kThreads>>>(to);
    FINE(cudaDeviceSynchronize());
    CHECK(to[0] == kBlocks * (kBlocks - 1) / 2 * kThreads / 3);
  } else if (std::strcmp(what, "heap") == 0) {
    allocates<<<kBlocks, 32>>>(to);
  } else if (std::strcmp(what, "cooperative") == 0) {
    void* of_meets[] = {&to, &more};
    FINE(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(meets), 6, kThreads, of_meets, 0,
                                     nullptr));
  } else if (std::strcmp(what, "waiting") == 0) {
    passes_on<<<kBlocks, 32>>>(to, more);
    FINE(cudaDeviceSynchronize());
    CHECK(to[kBlocks - 1] == kBlocks * (kBlocks - 1) / 2);
  } else {
    strays<<<kBlocks, 1>>>(to);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    FINE(cudaDeviceReset());
    FINE(cudaGetLastError());
    FINE(cudaMalloc(&to, 4096));
    counts<<<3, 32>>>(to);  // pages that left do not matter
  }
  FINE(cudaDeviceSynchronize());
  return finish();
}
