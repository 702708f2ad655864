// Queries, kinds of memory, errors: what functions return.
#include <cuda_runtime.h>

#include <cstring>
#include <string>
#include <vector>

#include <cstdint>

#include "check.h"

__global__ void fill(int* values, int value) { values[threadIdx.x] = value; }
__global__ void __launch_bounds__(64) small(int* values) { values[threadIdx.x] = 1; }
__global__ void with_shared(int* values) {
  __shared__ int mine[512];
  mine[threadIdx.x] = threadIdx.x;
  __syncthreads();
  values[threadIdx.x] = mine[threadIdx.x ^ 1];
}

void test_device() {
  int count = 0, device = -1, value = 0;
  FINE(cudaGetDeviceCount(&count));
  CHECK(count == 1);
  FINE(cudaGetDevice(&device));
  CHECK(device == 0);
  FINE(cudaSetDevice(0));
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
  cudaDeviceProp p;
  FINE(cudaGetDeviceProperties(&p, 0));
  CHECK(std::string(p.name) == EXPECTED_CHIP);
  CHECK(p.warpSize == 32);
  CHECK(p.maxThreadsPerBlock == 1024);
  CHECK(p.major == 8);
  CHECK(p.minor == 0);
  CHECK(p.multiProcessorCount == 108);
  FINE(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  CHECK(value == 108);
  FINE(cudaDriverGetVersion(&value));
  CHECK(value >= 13000);
  CHECK(std::string(cudaGetErrorName(cudaErrorInvalidValue)) == "cudaErrorInvalidValue");
  CHECK(std::string(cudaGetErrorString(cudaSuccess)) == "no error");
  size_t heap = 0;
  FINE(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20));
  FINE(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
  CHECK(heap == 1 << 20);
}

void test_memory() {
  void* p = nullptr;
  CHECK(cudaMalloc(nullptr, 4) == cudaErrorInvalidValue);
  CHECK(cudaMalloc(&p, size_t{1} << 50) == cudaErrorMemoryAllocation);
  FINE(cudaMalloc(&p, 0));
  CHECK(p == nullptr);
  FINE(cudaFree(nullptr));
  int on_stack = 0;
  CHECK(cudaFree(&on_stack) == cudaErrorInvalidValue);
  FINE(cudaMalloc(&p, 100));
  CHECK(reinterpret_cast<uintptr_t>(p) % 256 == 0);
  char host[200];
  CHECK(cudaMemcpy(p, host, 101, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, host + 100, 8, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(p, host, 8, static_cast<cudaMemcpyKind>(9)) == cudaErrorInvalidMemcpyDirection);
  FINE(cudaMemset(p, 0x5a, 100));
  FINE(cudaMemcpy(host, p, 100, cudaMemcpyDefault));
  for (int i = 0; i < 100; ++i) CHECK(host[i] == 0x5a);
  CHECK(cudaMemset(p, 0, 101) == cudaErrorInvalidValue);
  CHECK(cudaFree(static_cast<char*>(p) + 8) == cudaErrorInvalidValue);
  FINE(cudaFree(p));
  CHECK(cudaFree(p) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(p, host, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  cudaGetLastError();
  size_t before = 0, after = 0, total = 0;
  FINE(cudaMemGetInfo(&before, &total));
  FINE(cudaMalloc(&p, 64 << 20));
  FINE(cudaMemGetInfo(&after, &total));
  CHECK(before > after);
  CHECK(total >= before);
  FINE(cudaFree(p));
}

// Blocks of several MiB, which begin behind a page's begin.
void test_large_blocks() {
  constexpr size_t kBytes = (5 << 20) + 12;
  char* blocks[10] = {};
  for (int round = 0; round < 3; ++round) {
    for (int k = 0; k < 10; ++k) {
      FINE(cudaMalloc(&blocks[k], kBytes));
      CHECK(reinterpret_cast<uintptr_t>(blocks[k]) % 512 == 0);
      FINE(cudaMemset(blocks[k], k, kBytes));
    }
    for (int k = 0; k < 10; ++k) {
      char ends[2] = {-1, -1};
      FINE(cudaMemcpy(&ends[0], blocks[k], 1, cudaMemcpyDeviceToHost));
      FINE(cudaMemcpy(&ends[1], blocks[k] + kBytes - 1, 1, cudaMemcpyDeviceToHost));
      CHECK(ends[0] == k && ends[1] == k);
      FINE(cudaFree(blocks[k]));
    }
  }
}

void test_pitched() {
  const size_t width = 37, height = 5, depth = 3;
  void* p = nullptr;
  size_t pitch = 0;
  FINE(cudaMallocPitch(&p, &pitch, width, height));
  CHECK(pitch >= width);
  CHECK(pitch % 32 == 0);
  std::vector<unsigned char> rows(40 * height), back(40 * height, 1);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<unsigned char>(i);
  FINE(cudaMemset2D(p, pitch, 9, width, height));
  FINE(cudaMemcpy2D(p, pitch, rows.data(), 40, 20, height, cudaMemcpyHostToDevice));
  FINE(cudaMemcpy2D(back.data(), 40, p, pitch, width, height, cudaMemcpyDeviceToHost));
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < 40; ++x)
      CHECK(back[y * 40 + x] == (x < 20 ? rows[y * 40 + x] : x < width ? 9 : 1));
  CHECK(cudaMemcpy2D(p, 20, rows.data(), 40, 30, height, cudaMemcpyHostToDevice) ==
        cudaErrorInvalidPitchValue);
  CHECK(cudaMemcpy2D(p, pitch, rows.data(), 40, width, 1000, cudaMemcpyHostToDevice) ==
        cudaErrorInvalidValue);
  cudaGetLastError();
  FINE(cudaFree(p));
  cudaPitchedPtr box;
  FINE(cudaMalloc3D(&box, make_cudaExtent(width, height, depth)));
  std::vector<char> volume(width * height * depth), copy(volume.size());
  for (size_t i = 0; i < volume.size(); ++i) volume[i] = static_cast<char>(i * 7);
  cudaMemcpy3DParms parms{};
  parms.srcPtr = make_cudaPitchedPtr(volume.data(), width, width, height);
  parms.dstPtr = box;
  parms.extent = make_cudaExtent(width, height, depth);
  parms.kind = cudaMemcpyHostToDevice;
  FINE(cudaMemcpy3D(&parms));
  parms.srcPtr = box;
  parms.dstPtr = make_cudaPitchedPtr(copy.data(), width, width, height);
  parms.kind = cudaMemcpyDeviceToHost;
  FINE(cudaMemcpy3D(&parms));
  CHECK(copy == volume);
  FINE(cudaFree(box.ptr));
}

void test_host_memory() {
  int *pinned = nullptr, *seen = nullptr;
  FINE(cudaHostAlloc(&pinned, 4096, cudaHostAllocMapped));
  FINE(cudaHostGetDevicePointer(&seen, pinned, 0));
  fill<<<1, 32>>>(seen, 11);
  FINE(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) CHECK(pinned[i] == 11);
  cudaPointerAttributes a;
  FINE(cudaPointerGetAttributes(&a, pinned + 3));
  CHECK(a.type == cudaMemoryTypeHost);
  FINE(cudaFreeHost(pinned));
  std::vector<int> own(1024, 5);
  FINE(cudaPointerGetAttributes(&a, own.data()));
  CHECK(a.type == cudaMemoryTypeUnregistered);
  CHECK(cudaHostUnregister(own.data()) == cudaErrorHostMemoryNotRegistered);
  FINE(cudaHostRegister(own.data(), own.size() * sizeof(int), cudaHostRegisterMapped));
  CHECK(cudaHostRegister(own.data(), 8, 0) == cudaErrorHostMemoryAlreadyRegistered);
  FINE(cudaHostGetDevicePointer(&seen, own.data(), 0));
  fill<<<1, 32>>>(seen, 12);
  FINE(cudaDeviceSynchronize());
  CHECK(own[31] == 12);
  CHECK(own[32] == 5);
  FINE(cudaHostUnregister(own.data()));
  cudaGetLastError();
  int* managed = nullptr;
  FINE(cudaMallocManaged(&managed, 4096));
  FINE(cudaPointerGetAttributes(&a, managed));
  CHECK(a.type == cudaMemoryTypeManaged);
  FINE(cudaFree(managed));
}

void test_launch_errors() {
  int* values = nullptr;
  FINE(cudaMalloc(&values, 4096));
  fill<<<1, 2000>>>(values, 1);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  fill<<<0, 32>>>(values, 1);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
  small<<<1, 128>>>(values);
  CHECK(cudaGetLastError() == cudaErrorLaunchOutOfResources);
  fill<<<1, 32, 60000>>>(values, 1);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  FINE(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
  fill<<<1, 32, 60000>>>(values, 77);
  FINE(cudaGetLastError());
  CHECK(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) ==
        cudaErrorInvalidValue);
  // Nothing of that spoiled the device.
  int host = 0;
  FINE(cudaMemcpy(&host, values, 4, cudaMemcpyDeviceToHost));
  CHECK(host == 77);
  void* arguments[] = {&values};
  int not_a_kernel = 0;
  CHECK(cudaLaunchKernel(&not_a_kernel, dim3(1), dim3(1), arguments, 0, nullptr) ==
        cudaErrorInvalidDeviceFunction);
  cudaGetLastError();
  FINE(cudaFree(values));
}

void test_attributes() {
  cudaFuncAttributes a;
  FINE(cudaFuncGetAttributes(&a, with_shared));
  CHECK(a.sharedSizeBytes == 2048);
  CHECK(a.maxThreadsPerBlock == 1024);
  CHECK(a.numRegs > 0);
  FINE(cudaFuncGetAttributes(&a, small));
  CHECK(a.maxThreadsPerBlock == 64);
  CHECK(a.ptxVersion == 80);
  int blocks = 0;
  FINE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
  CHECK(blocks == 8);
  int grid = 0, block = 0;
  FINE(cudaOccupancyMaxPotentialBlockSize(&grid, &block, fill, 0, 0));
  CHECK(block >= 32);
  CHECK(block % 32 == 0);
  CHECK(grid >= 108);
}

void test_pools() {
  cudaStream_t stream;
  FINE(cudaStreamCreate(&stream));
  cudaMemPool_t pool;
  FINE(cudaDeviceGetDefaultMemPool(&pool, 0));
  uint64_t threshold = UINT64_MAX, back = 0;
  FINE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  FINE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &back));
  CHECK(back == threshold);
  int *values = nullptr, host = 0;
  FINE(cudaMallocAsync(&values, 4096, stream));
  fill<<<1, 32, 0, stream>>>(values, 21);
  FINE(cudaMemcpyAsync(&host, values, 4, cudaMemcpyDeviceToHost, stream));
  FINE(cudaFreeAsync(values, stream));
  FINE(cudaStreamSynchronize(stream));
  CHECK(host == 21);
  FINE(cudaStreamDestroy(stream));
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

void test_lacking() {
  cudaExternalMemory_t memory = nullptr;
  const cudaExternalMemoryHandleDesc form{};
  CHECK(cudaImportExternalMemory(&memory, &form) == cudaErrorNotSupported);
}

int main() {
  test_device();
  test_memory();
  test_large_blocks();
  test_pitched();
  test_host_memory();
  test_launch_errors();
  test_attributes();
  test_pools();
  test_lacking();
  return finish();
}
