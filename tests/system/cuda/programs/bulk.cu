// Copies in bulk, by cuda::memcpy_async, cuda::ptx and PTX: from and to global memory, to other
// blocks of the cluster, to several at once; reductions.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <cuda/barrier>
#include <cuda/ptx>
#include <limits>
#include <vector>

#include "device_memory.h"

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

std::vector<int> numbers(int count) {
  std::vector<int> out(count);
  for (int i = 0; i < count; ++i) out[i] = i * i - 77 * i;
  return out;
}

// --- there and back

constexpr int kTile = 500;  // words, no multiple of 64 bytes

__global__ void by_library(const int* in, int* out) {
  __shared__ alignas(128) int tile[kTile];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  cuda::memcpy_async(cg::this_thread_block(), tile, in + blockIdx.x * kTile,
                     cuda::aligned_size_t<16>(sizeof tile), barrier);
  barrier.arrive_and_wait();
  for (int i = threadIdx.x; i < kTile; i += blockDim.x) tile[i] += 1;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * kTile, tile,
                       sizeof tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

// A pipeline of two stages: the next tile comes while one is worked on.
__global__ void pipelined(const int* in, int* out, int tiles) {
  __shared__ alignas(128) int tile[2][256];
  __shared__ alignas(8) uint64_t full[2];
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full[0], 1);
    ptx::mbarrier_init(&full[1], 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  const auto fetch = [&](int t) {
    if (threadIdx.x != 0) return;
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                   &full[t % 2], sizeof tile[0]);
    for (int part = 0; part < 2; ++part)
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &tile[t % 2][128 * part],
                         in + 256 * t + 128 * part, sizeof tile[0] / 2, &full[t % 2]);
  };
  fetch(0);
  int sum = 0;
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) fetch(t + 1);
    while (!ptx::mbarrier_try_wait_parity(&full[t % 2], t / 2 % 2)) {
    }
    for (int i = 0; i < 256; i += blockDim.x) sum += tile[t % 2][(threadIdx.x + i) % 256] * (t + 1);
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

// --- within a cluster

// Each block sends its tile to the next one.
__global__ void __cluster_dims__(4, 1, 1) pass_on(const int* in, int* out) {
  __shared__ alignas(128) int own[64], received[64];
  __shared__ alignas(8) uint64_t came;
  const cg::cluster_group c = cg::this_cluster();
  own[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&came, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &came,
                                   sizeof received);
  }
  ptx::fence_proxy_async(ptx::space_shared);
  c.sync();
  const unsigned next = (c.block_rank() + 1) % 4;
  if (threadIdx.x == 0)
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, c.map_shared_rank(received, next),
                       own, sizeof own, c.map_shared_rank(&came, next));
  while (!ptx::mbarrier_try_wait_parity(&came, 0)) {
  }
  out[blockIdx.x * 64 + threadIdx.x] = received[threadIdx.x];
  c.sync();
}

// The second block gives its words to blocks 0, 1 and 3.
__global__ void __cluster_dims__(4, 1, 1) give_to_some(const int* in, int* out) {
  __shared__ alignas(128) int received[100];
  __shared__ alignas(8) uint64_t came;
  const cg::cluster_group c = cg::this_cluster();
  for (int i = threadIdx.x; i < 100; i += blockDim.x) received[i] = -1;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&came, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    if (c.block_rank() != 2)
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &came,
                                     sizeof received);
  }
  c.sync();
  if (c.block_rank() == 1 && threadIdx.x == 0)
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, received, in, sizeof received, &came,
                       static_cast<uint16_t>(0b1011));
  if (c.block_rank() != 2)
    while (!ptx::mbarrier_try_wait_parity(&came, 0)) {
    }
  c.sync();
  for (int i = threadIdx.x; i < 100; i += blockDim.x) out[blockIdx.x * 100 + i] = received[i];
}

// --- reductions

#define REDUCE(name, T, operation, ...)                                                         \
  __global__ void name(const T* in, T* out) {                                                   \
    __shared__ alignas(128) T own[64];                                                          \
    own[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];                                       \
    ptx::fence_proxy_async(ptx::space_shared);                                                  \
    __syncthreads();                                                                            \
    if (threadIdx.x == 0) {                                                                     \
      ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::operation, out, own, \
                                sizeof own);                                                    \
      ptx::cp_async_bulk_commit_group();                                                        \
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());                                           \
    }                                                                                           \
  }
REDUCE(add_s32, int, op_add)
REDUCE(add_u64, uint64_t, op_add)
REDUCE(add_f32, float, op_add)
REDUCE(add_f64, double, op_add)
REDUCE(add_f16, __half, op_add)
REDUCE(min_bf16, __nv_bfloat16, op_min)
REDUCE(max_f16, __half, op_max)
REDUCE(max_s64, int64_t, op_max)
REDUCE(min_u32, uint32_t, op_min)
REDUCE(xor_b32, uint32_t, op_xor_op)
REDUCE(inc_u32, uint32_t, op_inc)

template <class T, class F>
void check_reduction(void (*kernel)(const T*, T*), F combine) {
  std::vector<T> in(4 * 64), expected(64);
  // The same of each block: a GPU runs them in any order, and that of inc would show.
  for (size_t i = 0; i < in.size(); ++i) in[i] = T(static_cast<float>((i % 64 * 37 + 11) % 50));
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = T(20.0f);
  Device<T> given(in), out(expected);
  for (int b = 0; b < 4; ++b)
    for (int i = 0; i < 64; ++i) expected[i] = combine(expected[i], in[b * 64 + i]);
  kernel<<<4, 64>>>(given.data, out.data);
  FINE(cudaDeviceSynchronize());
  const std::vector<T> got = out.host();
  CHECK(std::memcmp(got.data(), expected.data(), 64 * sizeof(T)) == 0);
}

// All blocks add to the first one's words, which are counted at its barrier.
__global__ void __cluster_dims__(4, 1, 1) add_to_first(unsigned* out) {
  __shared__ alignas(128) unsigned own[32], sum[32];
  __shared__ alignas(8) uint64_t came;
  const cg::cluster_group c = cg::this_cluster();
  own[threadIdx.x] = threadIdx.x * (c.block_rank() + 1);
  sum[threadIdx.x] = 1000;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&came, 1);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &came,
                                   4 * sizeof own);
  }
  c.sync();
  if (threadIdx.x == 0)
    ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add,
                              c.map_shared_rank(sum, 0), own, sizeof own,
                              c.map_shared_rank(&came, 0));
  if (c.block_rank() == 0) {
    while (!ptx::mbarrier_try_wait_parity(&came, 0)) {
    }
    out[threadIdx.x] = sum[threadIdx.x];
  }
  c.sync();
}

__global__ void uneven(const int* in) {
  __shared__ alignas(128) int tile[8];
  __shared__ alignas(8) uint64_t came;
  ptx::mbarrier_init(&came, 1);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, 20, &came);
}
__global__ void behind(int* out) {
  __shared__ alignas(128) int tile[64];
  tile[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 3)
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 16, tile, sizeof tile);
}

int fail(const char* which) {
  Device<int> memory(64);
  if (std::strcmp(which, "uneven") == 0) uneven<<<1, 1>>>(memory.data);
  if (std::strcmp(which, "behind") == 0) behind<<<1, 64>>>(memory.data);
  std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 1) return fail(argv[1]);
  {
    const std::vector<int> in = numbers(3 * kTile);
    Device<int> given(in), out(in.size());
    by_library<<<3, 96>>>(given.data, out.data);
    FINE(cudaDeviceSynchronize());
    const std::vector<int> got = out.host();
    for (size_t i = 0; i < in.size(); ++i) CHECK(got[i] == in[i] + 1);
  }
  {
    const std::vector<int> in = numbers(7 * 256);
    Device<int> given(in), out(64);
    pipelined<<<1, 64>>>(given.data, out.data, 7);
    FINE(cudaDeviceSynchronize());
    const std::vector<int> got = out.host();
    for (int t = 0; t < 64; ++t) {
      int sum = 0;
      for (int k = 0; k < 7; ++k)
        for (int i = 0; i < 256; i += 64) sum += in[256 * k + (t + i) % 256] * (k + 1);
      CHECK(got[t] == sum);
    }
  }
  {
    const std::vector<int> in = numbers(8 * 64);
    Device<int> given(in), out(8 * 64);
    pass_on<<<8, 64>>>(given.data, out.data);
    FINE(cudaDeviceSynchronize());
    const std::vector<int> got = out.host();
    for (int b = 0; b < 8; ++b)
      for (int t = 0; t < 64; ++t) CHECK(got[b * 64 + t] == in[(b / 4 * 4 + (b + 3) % 4) * 64 + t]);
  }
  {
    const std::vector<int> in = numbers(100);
    Device<int> given(in), out(4 * 100);
    give_to_some<<<4, 32>>>(given.data, out.data);
    FINE(cudaDeviceSynchronize());
    const std::vector<int> got = out.host();
    for (int b = 0; b < 4; ++b)
      for (int t = 0; t < 100; ++t) CHECK(got[b * 100 + t] == (b == 2 ? -1 : in[t]));
  }
  const auto sum = [](auto a, auto b) { return decltype(a)(a + b); };
  check_reduction(add_s32, sum);
  check_reduction(add_u64, sum);
  check_reduction(add_f32, sum);
  check_reduction(add_f64, sum);
  check_reduction(
      add_f16, [](__half a, __half b) { return __float2half(__half2float(a) + __half2float(b)); });
  check_reduction(min_bf16, [](__nv_bfloat16 a, __nv_bfloat16 b) {
    return __bfloat162float(a) < __bfloat162float(b) ? a : b;
  });
  check_reduction(max_f16,
                  [](__half a, __half b) { return __half2float(a) > __half2float(b) ? a : b; });
  check_reduction(max_s64, [](int64_t a, int64_t b) { return std::max(a, b); });
  check_reduction(min_u32, [](uint32_t a, uint32_t b) { return std::min(a, b); });
  check_reduction(xor_b32, [](uint32_t a, uint32_t b) { return a ^ b; });
  check_reduction(inc_u32, [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; });
  {
    Device<unsigned> out(32);
    add_to_first<<<4, 32>>>(out.data);
    FINE(cudaDeviceSynchronize());
    for (unsigned t = 0; t < 32; ++t) CHECK(out.host()[t] == 1000 + 10 * t);
  }
  FINE(cudaDeviceSynchronize());
  return finish();
}
