// What kernels may rely on, in any order in which their threads run.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "device_sim/cuda/launch.cuh"
#include "standin_test/cases.h"

namespace {

using gpusim::cuda::DeviceArray;
using gpusim::cuda::check;
using gpusim::cuda::launch;

constexpr uint32_t kAll = ~0u;

__device__ uint32_t sum_of_warp(uint32_t x) {
  for (int delta = 16; delta > 0; delta /= 2) x += __shfl_xor_sync(kAll, x, delta);
  return x;
}

// Bits of `out` say what was as it should be.
__global__ void vote(uint32_t* out) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t right = 0;
  right |= (__ballot_sync(kAll, lane % 3 == 0) == 0x49249249u) << 0;
  right |= (__any_sync(kAll, lane == 5) && !__any_sync(kAll, lane == 32)) << 1;
  right |= (__all_sync(kAll, lane < 32) && !__all_sync(kAll, lane < 31)) << 2;
  right |= (__shfl_sync(kAll, uint64_t{lane} << 40, 7) == uint64_t{7} << 40) << 3;
  right |= (__shfl_up_sync(kAll, lane, 3) == (lane < 3 ? lane : lane - 3)) << 4;
  right |= (__shfl_down_sync(kAll, lane, 3) == (lane > 28 ? lane : lane + 3)) << 5;
  right |= (__shfl_sync(kAll, lane, 1, 8) == lane / 8 * 8 + 1) << 6;
  right |= (__match_any_sync(kAll, lane % 2) == (lane % 2 ? 0xaaaaaaaau : 0x55555555u)) << 7;
  right |= (sum_of_warp(lane) == 496) << 8;
  if (lane < 9) right |= (__ballot_sync(0x1ff, 1) == 0x1ff) << 9;
  else right |= 1 << 9;
  const uint32_t together = __activemask();
  right |= ((together >> lane & 1) != 0) << 10;
  out[blockIdx.x * blockDim.x + threadIdx.x] = right;
}
#if __CUDA_ARCH__ >= 800
__global__ void reduce(uint32_t* out) {
  const uint32_t lane = threadIdx.x % 32;
  const bool right = __reduce_min_sync(kAll, lane + 3) == 3 &&
                     __reduce_max_sync(kAll, lane) == 31 && __reduce_add_sync(kAll, lane) == 496 &&
                     __reduce_min_sync(kAll, static_cast<int>(lane) - 20) == -20 &&
                     __reduce_or_sync(kAll, 1u << lane) == kAll &&
                     __reduce_and_sync(kAll, ~(1u << lane)) == 0;
  out[blockIdx.x * blockDim.x + threadIdx.x] = right;
}
#endif

// Adds up all threads' numbers of a block, through both kinds of shared memory.
extern __shared__ uint64_t dynamic_words[];
__global__ void sum_of_block(uint32_t* out) {
  __shared__ uint32_t total;
  if (threadIdx.x == 0) total = 0;
  dynamic_words[threadIdx.x] = threadIdx.x + blockIdx.x;
  __syncthreads();
  atomicAdd(&total, static_cast<uint32_t>(dynamic_words[blockDim.x - 1 - threadIdx.x]));
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

// A lane waits for another of its warp, and a block for an earlier one that was resident before.
__global__ void wait_for_each_other(uint32_t* flags) {
  if (threadIdx.x == 0)
    while (__nv_atomic_load_n(&flags[blockIdx.x], __NV_ATOMIC_ACQUIRE) == 0) {
    }
  if (threadIdx.x == 31) __nv_atomic_store_n(&flags[blockIdx.x], 1u, __NV_ATOMIC_RELEASE);
}
__global__ void count_under_lock(uint32_t* words) {  // lock, sum
  while (atomicCAS(&words[0], 0, 1) != 0) __nanosleep(20);
  __threadfence();
  const uint32_t seen = words[1];
  __threadfence();
  words[1] = seen + 1;
  __threadfence();
  atomicExch(&words[0], 0);
}
__global__ void count_without_lock(uint32_t* words) {
  const uint32_t seen = words[1];
  __threadfence();
  words[1] = seen + 1;
}

// Pairs of lanes store to a word each and load the other's: words, then what was loaded.
constexpr uint32_t kPairLanes = 512;
template <bool with_fence>
__global__ void store_and_load(uint32_t* words) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  __nv_atomic_store_n(&words[i], 1u, __NV_ATOMIC_RELAXED);
  if (with_fence) __threadfence();
  words[kPairLanes + i] = __nv_atomic_load_n(&words[i ^ 1], __NV_ATOMIC_RELAXED);
  __syncwarp();  // who ends has no store left
}
__global__ void bounded(uint32_t*);
__global__ void __launch_bounds__(512, 1) bounded(uint32_t* out) { out[0] = 1; }

template <class K>
std::vector<uint32_t> run(K kernel, uint32_t blocks, uint32_t threads, size_t shared_bytes,
                          size_t words) {
  DeviceArray<uint32_t> out(words, "output");
  out.zero();
  launch(kernel, blocks, threads, shared_bytes, "launching", out.data());
  std::vector<uint32_t> result(words);
  out.download(result);
  return result;
}
bool all_are(const std::vector<uint32_t>& words, uint32_t value) {
  return std::all_of(words.begin(), words.end(), [=](uint32_t w) { return w == value; });
}

// Of how many pairs neither lane saw the other's store.
uint32_t blind_pairs(const std::vector<uint32_t>& words) {
  uint32_t count = 0;
  for (uint32_t i = kPairLanes; i < 2 * kPairLanes; i += 2) count += words[i] + words[i + 1] == 0;
  return count;
}
bool delayed_stores() {
  const char* const stores = std::getenv("GPUSIM_EMULATED_STORES");
  const bool are_delayed = stores && std::strcmp(stores, "delayed") == 0;
  const auto without = run(store_and_load<false>, 8, kPairLanes / 8, 0, 2 * kPairLanes);
  const auto with = run(store_and_load<true>, 8, kPairLanes / 8, 0, 2 * kPairLanes);
  return (blind_pairs(without) != 0) == are_delayed && blind_pairs(with) == 0 &&
         std::all_of(without.begin(), without.begin() + kPairLanes,
                     [](uint32_t w) { return w == 1; });
}

// 65,536 registers, 128 for each thread.
bool registers() {
  cudaFuncAttributes attributes;
  int whole = 0, half = 0;
  cudaFuncGetAttributes(&attributes, bounded);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&whole, bounded, 512, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&half, bounded, 256, 0);
  return attributes.numRegs == 128 && whole == 1 && half == 2;
}

bool algorithms() {
  constexpr uint32_t kCount = 1000;
  std::vector<uint32_t> host(kCount), values(kCount), back(kCount);
  for (uint32_t i = 0; i < kCount; ++i) host[i] = i * 2654435761u % 97;
  std::iota(values.begin(), values.end(), 0);
  const auto keys = gpusim::cuda::to_device(host, "keys"),
             places = gpusim::cuda::to_device(values, "places");
  const DeviceArray<uint32_t> sorted(kCount, "keys"), sorted_places(kCount, "places"),
      count(1, "count");
  const auto twice = [](auto f) {
    size_t bytes = 0;
    check(f(nullptr, bytes), "sizing");
    const DeviceArray<uint8_t> scratch(bytes, "scratch");
    check(f(scratch.data(), bytes), "running");
  };
  twice([&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data(), sorted.data(),
                                           places.data(), sorted_places.data(),
                                           static_cast<int>(kCount));
  });
  sorted_places.download(back);
  std::stable_sort(values.begin(), values.end(),
                   [&](uint32_t x, uint32_t y) { return host[x] < host[y]; });
  if (back != values) return false;
  twice([&](void* scratch, size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, keys.data(), sorted.data(), kCount);
  });
  sorted.download(back);
  std::vector<uint32_t> sums(kCount);
  std::exclusive_scan(host.begin(), host.end(), sums.begin(), 0u);
  if (back != sums) return false;
  twice([&](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::If(scratch, bytes, thrust::counting_iterator<uint32_t>(0),
                                 sorted.data(), count.data(), kCount,
                                 [](uint32_t i) { return i % 3 == 0; });
  });
  uint32_t kept = 0;
  count.download(std::span(&kept, 1));
  return kept == 334 && thrust::reduce(thrust::device, keys.data(), keys.data() + kCount) ==
                            std::accumulate(host.begin(), host.end(), 0u);
}

bool streams() {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  check(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), "a stream");
  check(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), "a stream");
  check(cudaEventCreate(&event), "an event");
  const DeviceArray<uint32_t> word(1, "a word");
  uint32_t* pinned = nullptr;
  check(cudaMallocHost(&pinned, sizeof *pinned), "pinned memory");
  bool saw_it_early = false, right = true;
  for (int i = 0; i < 100; ++i) {
    check(cudaMemsetAsync(word.data(), i, sizeof(uint32_t), first), "a fill");
    check(cudaEventRecord(event, first), "an event");
    check(cudaStreamWaitEvent(second, event), "waiting");
    check(cudaMemcpyAsync(pinned, word.data(), sizeof *pinned, cudaMemcpyDeviceToHost, second),
          "a copy");
    saw_it_early |= *pinned != static_cast<uint32_t>(i) * 0x01010101u;
    check(cudaStreamSynchronize(second), "a stream");
    right &= *pinned == static_cast<uint32_t>(i) * 0x01010101u;
  }
  cudaFreeHost(pinned);
  cudaEventDestroy(event);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  return right && saw_it_early;
}

}  // namespace

std::vector<SoundCase> sound_cases() {
  return {
    {"votes, shuffles and matches",
     [] { return all_are(run(vote, 3, 64, 0, 192), (1u << 11) - 1); }},
#if __CUDA_ARCH__ >= 800
        {"reductions", [] { return all_are(run(reduce, 3, 64, 0, 192), 1); }},
#endif
        {"shared memory is a block's own",
         [] {
           const auto sums = run(sum_of_block, 100, 96, 96 * sizeof(uint64_t), 100);
           for (uint32_t b = 0; b < 100; ++b)
             if (sums[b] != 95 * 96 / 2 + 96 * b) return false;
           return true;
         }},
        {"lanes that wait for each other",
         [] { return all_are(run(wait_for_each_other, 50, 32, 0, 50), 1); }},
        {"a lock", [] { return run(count_under_lock, 9, 64, 0, 2)[1] == 9 * 64; }},
        {"lanes are exchanged between accesses",
         [] {
           const uint32_t sum = run(count_without_lock, 9, 64, 0, 2)[1];
           return sum > 0 && sum < 9 * 64;
         }},
        {"stores that other lanes see later", delayed_stores},
        {"registers limit how many blocks are resident", registers}, {"algorithms", algorithms},
        {"streams and events", streams},
  };
}
