// One fault each; the report must name it and where it is.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "device_sim/cuda/launch.cuh"
#include "standin_test/cases.h"

namespace {

using gpusim::cuda::DeviceArray;
using gpusim::cuda::launch;

constexpr uint32_t kAll = ~0u;

// Lines of this file that reports have to name.
std::string line(int number) { return "faulty_kernels.cu:" + std::to_string(number); }
#define LINE_OF(name) constexpr int name = __LINE__ + 1

// --- meetings

LINE_OF(kFirst);
__device__ __forceinline__ uint32_t first(uint32_t x) { return __shfl_sync(kAll, x, 0); }

LINE_OF(kShortCircuit);
__global__ void short_circuit(uint32_t* out) {
  const bool runs = threadIdx.x < 7;
  if (runs && threadIdx.x == first(threadIdx.x)) out[0] = threadIdx.x;
  __syncwarp();
}
LINE_OF(kTwoPlaces);
__global__ void one_helper_two_places(uint32_t* out) {
  if (threadIdx.x % 2) out[threadIdx.x] = first(1);
  else out[threadIdx.x] = first(2);
}
LINE_OF(kNotInMask);
__global__ void not_in_mask(uint32_t* out) { out[threadIdx.x] = __ballot_sync(0xff, 1); }
__global__ void different_masks(uint32_t* out) {
  out[threadIdx.x] = __shfl_sync(threadIdx.x < 8 ? kAll : kAll << 4, 1, 0);
}
LINE_OF(kBarrier);
__global__ void barrier_in_a_branch() {
  if (threadIdx.x < 32) __syncthreads();
  else __syncthreads();
}

// --- memory

LINE_OF(kStore);
__global__ void store_at(uint32_t* p, size_t i) { p[i] = 1; }
__device__ __attribute__((noinline)) int deep(int n) {
  volatile char room[1024];
  room[n % 1024] = static_cast<char>(n);
  return n == 0 ? 0 : deep(n - 1) + room[n % 1024];
}
__global__ void use_much_stack(uint32_t* out) { out[0] = static_cast<uint32_t>(deep(1000)); }
__global__ void few_threads_bound(uint32_t*);
__global__ void __launch_bounds__(64, 1) few_threads_bound(uint32_t* out) { out[0] = 1; }

template <class... P, class... A>
std::string run(void (*kernel)(P...), uint32_t threads, size_t shared_bytes, A... arguments) {
  try {
    launch(kernel, 2, threads, shared_bytes, "launching", arguments...);
    gpusim::cuda::check(cudaDeviceSynchronize(), "waiting");
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return {};
}
template <class K, class... A>
std::string with_output(K kernel, uint32_t threads, size_t shared_bytes, A... arguments) {
  const DeviceArray<uint32_t> out(60, "output");
  return run(kernel, threads, shared_bytes, out.data(), arguments...);
}
// An array of device 0's, with device 1 chosen; in a process that has called nothing yet.
DeviceArray<uint32_t> array_of_another_device() {
  const std::string chip = "sm_" + std::to_string(__CUDA_ARCH__ / 10);
  setenv("GPUSIM_EMULATED_CHIP", (chip + "," + chip).c_str(), 1);
  DeviceArray<uint32_t> array(60, "an array");
  cudaSetDevice(1);
  return array;
}
std::string text_of(cudaError_t error) { return cudaGetErrorString(error); }

}  // namespace

std::vector<FaultyCase> faulty_cases() {
  return {
      {"a shuffle behind a short circuit",
       [] { return with_output(short_circuit, 32, 0); },
       {"kernel short_circuit, block ", "deadlock: ",
        "lanes 0-6 wait in __shfl_sync(0xffffffff) "
        "at " +
            line(kFirst) + " in first, called at " + line(kShortCircuit + 2) + " in short_circuit",
        "lanes 7-31 wait in __syncwarp(0xffffffff) at " + line(kShortCircuit + 3),
        "GPUSIM_EMULATED_SEED="}},
      {"two calls of one helper are two places",
       [] { return with_output(one_helper_two_places, 32, 0); },
       {"deadlock", "lanes 0, 2, 4", "lanes 1, 3, 5", line(kTwoPlaces + 1) + " in",
        line(kTwoPlaces + 2) + " in"}},
      {"a caller that its mask does not name",
       [] { return with_output(not_in_mask, 32, 0); },
       {"is not in the mask of its own __ballot_sync(0xff) at " + line(kNotInMask)}},
      {"masks that differ",
       [] { return with_output(different_masks, 32, 0); },
       {"deadlock", "__shfl_sync(0xffffffff)", "__shfl_sync(0xfffffff0)"}},
      {"a partial warp waits for nobody who has ended",
       [] { return with_output(short_circuit, 9, 0); },
       {"lanes 9-31 have ended"}},
      {"a barrier of the block at two places",
       [] { return run(barrier_in_a_branch, 64, 0); },
       {"waits in __syncthreads at", "others at", line(kBarrier + 1) + " in",
        line(kBarrier + 2) + " in"}},
      {"a store behind the end",
       [] { return with_output(store_at, 1, 0, size_t{62}); },
       {"kernel store_at wrote at offset 248 of 240 bytes"}},
      {"a store far behind the end",
       [] { return with_output(store_at, 1, 0, size_t{1020}); },
       {"kernel store_at, block ", "thread 0 accesses offset 4080 of 240 bytes",
        line(kStore) + " in store_at"}},
      {"a store before the beginning",
       [] { return with_output(store_at, 1, 0, size_t(-1025)); },
       {"accesses 4100 bytes before 240 bytes of device memory"}},
      {"a store to what was freed",
       [] {
         uint32_t* p = nullptr;
         cudaMalloc(&p, 256);
         cudaFree(p);
         return run(store_at, 1, 0, p, size_t{2});
       },
       {"offset 8 of 256 bytes of device memory that were freed"}},
      {"a null pointer in a kernel",
       [] { return run(store_at, 1, 0, static_cast<uint32_t*>(nullptr), size_t{2}); },
       {"kernel store_at", "an address that is no device memory"}},
      {"host code on device memory",
       [] {
         const DeviceArray<uint32_t> array(64, "an array");
         array.data()[3] = 1;
         return std::string();
       },
       {"host code accesses offset 12 of 256 bytes", "faulty_kernels.cu:1"}},
      {"a function of the device on the host",
       [] {
         uint32_t word = 0;
         atomicAdd(&word, 1);
         return text_of(cudaDeviceSynchronize());
       },
       {"host code calls a function of the device, at faulty_kernels.cu:1"}},
      {"a copy that is too long",
       [] {
         const DeviceArray<uint32_t> array(64, "an array");
         uint32_t words[65];
         return text_of(cudaMemcpy(words, array.data(), sizeof words, cudaMemcpyDeviceToHost));
       },
       {"cudaMemcpy: 260 bytes from offset 0 of 256 bytes"}},
      {"a copy in the wrong direction",
       [] {
         const DeviceArray<uint32_t> array(64, "an array");
         uint32_t words[64] = {};
         return text_of(cudaMemcpy(array.data(), words, sizeof words, cudaMemcpyDeviceToHost));
       },
       {"cudaMemcpy: the host's side is offset 0 of 256 bytes"}},
      {"freed twice",
       [] {
         void* p = nullptr;
         cudaMalloc(&p, 256);
         cudaFree(p);
         return text_of(cudaFree(p));
       },
       {"cudaFree of offset 0 of 256 bytes of device memory that were freed"}},
      {"never freed",
       [] {
         void* p = nullptr;
         cudaMalloc(&p, 256);
         return std::string();
       },
       {"1 allocations of device memory, 256 bytes, were never freed"}},
      {"a copy from memory of another device",
       [] {
         const DeviceArray<uint32_t> array = array_of_another_device();
         uint32_t words[60];
         return text_of(cudaMemcpy(words, array.data(), sizeof words, cudaMemcpyDeviceToHost));
       },
       {"240 bytes from offset 0 of 240 bytes of device memory 0, while device 1 is current"}},
      {"a store to memory of another device",
       [] {
         const DeviceArray<uint32_t> array = array_of_another_device();
         return run(store_at, 1, 0, array.data(), size_t{2});
       },
       {"thread 0 accesses offset 8 of 240 bytes of device memory 0"}},
      {"more stack than a lane has",
       [] { return with_output(use_much_stack, 1, 0); },
       {"accesses more stack than a lane has", "in deep"}},
  };
}

std::vector<std::string> refused_launches() {
  return {with_output(few_threads_bound, 65, 0), with_output(few_threads_bound, 64, 49153),
          with_output(few_threads_bound, 1025, 0)};
}

// CUDA C++ Programming Guide, "Compute capabilities": shared memory of a block and of a
// multiprocessor, threads of a multiprocessor.
bool has_limits_of_its_chip() {
  constexpr size_t kKi = 1024;
  struct Limits {
    int architecture;
    size_t block, multiprocessor;
    int threads;
  };
  constexpr Limits kLimits[] = {{750, 64 * kKi, 64 * kKi, 1024},
                                {900, 227 * kKi, 228 * kKi, 2048},
                                {1200, 99 * kKi, 100 * kKi, 1536}};
  const auto* const want =
      std::find_if(std::begin(kLimits), std::end(kLimits),
                   [](const Limits& l) { return l.architecture == __CUDA_ARCH__; });
  cudaDeviceProp p;
  if (cudaGetDeviceProperties(&p, 0) != cudaSuccess) return false;
  const auto allow = [](size_t bytes) {
    return cudaFuncSetAttribute(few_threads_bound, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(bytes)) == cudaSuccess;
  };
  void* too_much = nullptr;
  const bool is_refused = cudaMalloc(&too_much, p.totalGlobalMem + 1) != cudaSuccess;
  return p.sharedMemPerBlockOptin == want->block &&
         p.sharedMemPerMultiprocessor == want->multiprocessor &&
         p.maxThreadsPerMultiProcessor == want->threads && !allow(want->block + 1) &&
         allow(want->block) && with_output(few_threads_bound, 64, want->block).empty() &&
         !with_output(few_threads_bound, 64, want->block + 1).empty() && is_refused;
}
