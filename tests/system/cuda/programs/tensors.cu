// Tensor maps: boxes of one to five dimensions are copied, stored and reduced; swizzles, elements
// outside of the tensor, steps, multicast. What each byte has to be is stated element by element.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <cuda/ptx>
#include <vector>

#include "check.h"

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

decltype(&cuTensorMapEncodeTiled) encode = nullptr;

struct Shape {
  uint32_t rank = 1;
  uint64_t sizes[5] = {1, 1, 1, 1, 1};
  uint64_t pitch = 0;  // bytes of a row beyond its elements
  uint32_t box[5] = {1, 1, 1, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  bool fills_nan = false;

  uint64_t stride(uint32_t d, size_t size) const {  // bytes
    if (d == 0) return size;
    uint64_t bytes = sizes[0] * size + pitch;
    for (uint32_t k = 1; k < d; ++k) bytes *= sizes[k];
    return bytes;
  }
  uint32_t count(uint32_t d) const { return (box[d] + steps[d] - 1) / steps[d]; }
  uint32_t elements() const {
    uint32_t all = 1;
    for (uint32_t d = 0; d < rank; ++d) all *= count(d);
    return all;
  }
};

template <class T>
constexpr CUtensorMapDataType kType = CU_TENSOR_MAP_DATA_TYPE_UINT8;
template <>
constexpr CUtensorMapDataType kType<uint16_t> = CU_TENSOR_MAP_DATA_TYPE_UINT16;
template <>
constexpr CUtensorMapDataType kType<int> = CU_TENSOR_MAP_DATA_TYPE_INT32;
template <>
constexpr CUtensorMapDataType kType<unsigned> = CU_TENSOR_MAP_DATA_TYPE_UINT32;
template <>
constexpr CUtensorMapDataType kType<uint64_t> = CU_TENSOR_MAP_DATA_TYPE_UINT64;
template <>
constexpr CUtensorMapDataType kType<float> = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
template <>
constexpr CUtensorMapDataType kType<__half> = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

template <class T>
CUresult make(CUtensorMap& map, const Shape& s, T* address) {
  uint64_t strides[4] = {};
  for (uint32_t d = 1; d < s.rank; ++d) strides[d - 1] = s.stride(d, sizeof(T));
  return encode(&map, kType<T>, s.rank, address, s.sizes, strides, s.box, s.steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, s.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                s.fills_nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                            : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

struct Corner {
  int at[5] = {0, 0, 0, 0, 0};
};

template <int kRank>
__device__ void load_box(void* to, const CUtensorMap* map, const Corner& c, uint64_t* barrier) {
  int at[kRank];
  for (int d = 0; d < kRank; ++d) at[d] = c.at[d];
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, map, at, barrier);
}
template <int kRank>
__device__ void store_box(const CUtensorMap* map, const Corner& c, const void* from) {
  int at[kRank];
  for (int d = 0; d < kRank; ++d) at[d] = c.at[d];
  ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, map, at, from);
}

__device__ void wait(uint64_t* barrier) {
  while (!ptx::mbarrier_try_wait_parity(barrier, 0)) {
  }
}

// A box of `from` comes, goes out as it lies in shared memory, and goes to a box of `to`.
template <int kRank>
__global__ void pass(const __grid_constant__ CUtensorMap from,
                     const __grid_constant__ CUtensorMap to, Corner at, uint8_t* seen,
                     unsigned bytes) {
  extern __shared__ __align__(1024) uint8_t box[];
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier,
                                   bytes);
    load_box<kRank>(box, &from, at, &barrier);
  }
  __syncthreads();
  wait(&barrier);
  for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x) seen[i] = box[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    store_box<kRank>(&to, at, box);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

template <class T>
T pattern(size_t i) {
  return static_cast<T>(static_cast<float>(i * 7 % 1999));
}

// Chunks of 16 bytes of neighbouring rows change places.
uint64_t swizzled(uint64_t byte, CUtensorMapSwizzle s) {
  const uint64_t chunk = byte / 16, row = byte / 128;
  const uint64_t turn = s == CU_TENSOR_MAP_SWIZZLE_128B  ? row % 8
                        : s == CU_TENSOR_MAP_SWIZZLE_64B ? row % 4
                        : s == CU_TENSOR_MAP_SWIZZLE_32B ? row % 2
                                                         : 0;
  return (chunk ^ turn) * 16 + byte % 16;
}

template <int kRank, class T>
void check_pass(const Shape& s, const Corner& corner) {
  const size_t all = s.stride(s.rank, sizeof(T)) / sizeof(T);
  std::vector<T> in(all), expected(all, T(0.0f));
  for (size_t i = 0; i < all; ++i) in[i] = pattern<T>(i);
  T *from = nullptr, *to = nullptr;
  uint8_t* seen = nullptr;
  const unsigned bytes = s.elements() * sizeof(T);
  FINE(cudaMalloc(&from, all * sizeof(T)));
  FINE(cudaMalloc(&to, all * sizeof(T)));
  FINE(cudaMalloc(&seen, bytes));
  FINE(cudaMemcpy(from, in.data(), all * sizeof(T), cudaMemcpyHostToDevice));
  FINE(cudaMemset(to, 0, all * sizeof(T)));
  CUtensorMap source{}, target{};
  CHECK(make(source, s, from) == CUDA_SUCCESS);
  CHECK(make(target, s, to) == CUDA_SUCCESS);
  pass<kRank><<<1, 64, bytes>>>(source, target, corner, seen, bytes);
  FINE(cudaGetLastError());
  FINE(cudaDeviceSynchronize());
  std::vector<uint8_t> box(bytes);
  std::vector<T> out(all);
  FINE(cudaMemcpy(box.data(), seen, bytes, cudaMemcpyDeviceToHost));
  FINE(cudaMemcpy(out.data(), to, all * sizeof(T), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (uint32_t e = 0; e < s.elements(); ++e) {
    uint64_t offset = 0;
    bool is_inside = true;
    uint32_t rest = e;
    for (uint32_t d = 0; d < s.rank; ++d) {
      const int64_t at = corner.at[d] + int64_t{rest % s.count(d)} * s.steps[d];
      rest /= s.count(d);
      is_inside = is_inside && at >= 0 && at < static_cast<int64_t>(s.sizes[d]);
      offset += static_cast<uint64_t>(at) * s.stride(d, sizeof(T));
    }
    T got, wanted = T(0.0f);
    std::memcpy(&got, &box[swizzled(e * sizeof(T), s.swizzle)], sizeof(T));
    if (is_inside) wanted = expected[offset / sizeof(T)] = in[offset / sizeof(T)];
    if (!is_inside && s.fills_nan)
      wrong += got == got;
    else
      wrong += std::memcmp(&got, &wanted, sizeof(T)) != 0;
  }
  CHECK(wrong == 0);
  CHECK(std::memcmp(out.data(), expected.data(), all * sizeof(T)) == 0);
  cudaFree(from);
  cudaFree(to);
  cudaFree(seen);
}

// --- reductions: each block adds the same words to its own box, and to a common one
template <class T>
__global__ void reduce(const __grid_constant__ CUtensorMap map, int least) {
  __shared__ alignas(128) T box[8][16];
  for (int i = threadIdx.x; i < 128; i += blockDim.x) box[i / 16][i % 16] = T(float(i));
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x != 0) return;
  const int own[2] = {0, least + 8 * static_cast<int>(blockIdx.x)}, common[2] = {8, -3};
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &map, own,
                                   box);
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_max, &map, common,
                                   box);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

template <class T>
void check_reduction() {
  constexpr int kRows = 40, kColumns = 24;
  Shape s{.rank = 2, .sizes = {kColumns, kRows}, .box = {16, 8}};
  std::vector<T> start(kRows * kColumns, T(5.0f)), out(start.size());
  T* memory = nullptr;
  FINE(cudaMalloc(&memory, start.size() * sizeof(T)));
  FINE(cudaMemcpy(memory, start.data(), start.size() * sizeof(T), cudaMemcpyHostToDevice));
  CUtensorMap map{};
  CHECK(make(map, s, memory) == CUDA_SUCCESS);
  reduce<T><<<4, 32>>>(map, 6);
  FINE(cudaDeviceSynchronize());
  FINE(cudaMemcpy(out.data(), memory, out.size() * sizeof(T), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      float wanted = 5;
      if (row >= 6 && row < 38 && column < 16) wanted += (row - 6) % 8 * 16 + column;
      if (row < 5 && column >= 8 && column < 24)
        wanted = std::max(wanted, static_cast<float>((row + 3) * 16 + column - 8));
      wrong += static_cast<float>(out[row * kColumns + column]) != wanted;
    }
  CHECK(wrong == 0);
  cudaFree(memory);
}

// --- to several blocks at once
__global__ void __cluster_dims__(4, 1, 1)
    spread(const __grid_constant__ CUtensorMap map, int* out) {
  __shared__ alignas(128) int box[8][8];
  __shared__ alignas(8) uint64_t barrier;
  const cg::cluster_group c = cg::this_cluster();
  for (int i = threadIdx.x; i < 64; i += blockDim.x) box[i / 8][i % 8] = -1;
  const bool takes = c.block_rank() % 2 == 0;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    if (takes)
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier,
                                     sizeof box);
  }
  c.sync();
  if (c.block_rank() == 3 && threadIdx.x == 0) {
    const int at[2] = {4, 3};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, at, &barrier,
                              static_cast<uint16_t>(0b0101));
  }
  if (takes) wait(&barrier);
  c.sync();
  for (int i = threadIdx.x; i < 64; i += blockDim.x) out[blockIdx.x * 64 + i] = box[i / 8][i % 8];
}

void check_spread() {
  Shape s{.rank = 2, .sizes = {16, 16}, .box = {8, 8}};
  std::vector<int> in(256), out(4 * 64);
  for (int i = 0; i < 256; ++i) in[i] = i;
  int *memory = nullptr, *seen = nullptr;
  FINE(cudaMalloc(&memory, 1024));
  FINE(cudaMalloc(&seen, out.size() * 4));
  FINE(cudaMemcpy(memory, in.data(), 1024, cudaMemcpyHostToDevice));
  CUtensorMap map{};
  CHECK(make(map, s, memory) == CUDA_SUCCESS);
  spread<<<4, 32>>>(map, seen);
  FINE(cudaDeviceSynchronize());
  FINE(cudaMemcpy(out.data(), seen, out.size() * 4, cudaMemcpyDeviceToHost));
  for (int b = 0; b < 4; ++b)
    for (int i = 0; i < 64; ++i)
      CHECK(out[b * 64 + i] == (b % 2 == 0 ? (i / 8 + 3) * 16 + i % 8 + 4 : -1));
  cudaFree(memory);
  cudaFree(seen);
}

void check_arguments() {
  CUtensorMap map{};
  int* memory = nullptr;
  FINE(cudaMalloc(&memory, 4096));
  const Shape good{.rank = 2, .sizes = {16, 16}, .box = {8, 8}};
  CHECK(make(map, good, memory) == CUDA_SUCCESS);
  CHECK(make(map, good, memory + 1) == CUDA_ERROR_INVALID_VALUE);
  Shape bad = good;
  bad.box[0] = 6;
  CHECK(make(map, bad, memory) == CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.box[1] = 257;
  CHECK(make(map, bad, memory) == CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.rank = 6;
  CHECK(make(map, bad, memory) == CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.pitch = 4;
  CHECK(make(map, bad, memory) == CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.fills_nan = true;
  CHECK(make(map, bad, memory) == CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.box[0] = 16;
  bad.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
  CHECK(make(map, bad, memory) == CUDA_ERROR_INVALID_VALUE);
  cudaFree(memory);
}

int fail(const char* which) {
  int* memory = nullptr;
  uint8_t* seen = nullptr;
  FINE(cudaMalloc(&memory, 1024));
  FINE(cudaMalloc(&seen, 1024));
  Shape s{.rank = 2, .sizes = {16, 16}, .box = {8, 8}};
  if (std::strcmp(which, "beyond") == 0) s.sizes[1] = 64;
  CUtensorMap map{};
  CHECK(make(map, s, memory) == CUDA_SUCCESS);
  if (std::strcmp(which, "none") == 0) std::memset(&map, 1, sizeof map);
  const Corner corner{
      {std::strcmp(which, "between") == 0 ? 2 : 0, std::strcmp(which, "beyond") == 0 ? 14 : 0}};
  if (std::strcmp(which, "rank") == 0)
    pass<3><<<1, 32, 256>>>(map, map, corner, seen, 256);
  else
    pass<2><<<1, 32, 256>>>(map, map, corner, seen, 256);
  std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}

int main(int argc, char** argv) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  FINE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                        &result));
  CHECK(found != nullptr && result == cudaDriverEntryPointSuccess);
  encode = reinterpret_cast<decltype(encode)>(found);
  if (argc > 1) return fail(argv[1]);
  check_arguments();

  check_pass<1, int>({.rank = 1, .sizes = {100}, .box = {64}}, {{20}});
  check_pass<1, int>({.rank = 1, .sizes = {100}, .box = {64}}, {{72}});
  check_pass<1, uint8_t>({.rank = 1, .sizes = {100}, .box = {64}}, {{-16}});
  const Shape flat{.rank = 2, .sizes = {72, 40}, .pitch = 16, .box = {32, 16}};
  for (const Corner& c : {Corner{{0, 0}}, Corner{{8, 20}}, Corner{{64, 33}}, Corner{{-8, -7}},
                          Corner{{72, 0}}, Corner{{0, 40}}, Corner{{-40, 3}}}) {
    check_pass<2, int>(flat, c);
    check_pass<2, uint16_t>(flat, c);
    check_pass<2, uint64_t>(flat, c);
    Shape with_nan = flat;
    with_nan.fills_nan = true;
    check_pass<2, float>(with_nan, c);
  }
  for (const CUtensorMapSwizzle swizzle :
       {CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B}) {
    Shape s{.rank = 2, .sizes = {72, 40}, .box = {1, 24}, .swizzle = swizzle};
    s.box[0] = 8u << static_cast<int>(swizzle);
    check_pass<2, uint16_t>(s, {{8, 9}});
    check_pass<2, uint16_t>(s, {{48, 30}});
  }
  check_pass<3, float>({.rank = 3, .sizes = {20, 9, 11}, .box = {8, 4, 5}}, {{4, 6, 2}});
  check_pass<3, float>(
      {.rank = 3, .sizes = {20, 9, 11}, .box = {8, 6, 7}, .steps = {1, 2, 3}, .fills_nan = true},
      {{-4, 4, 1}});
  check_pass<4, int>({.rank = 4, .sizes = {12, 5, 6, 7}, .box = {4, 3, 2, 3}}, {{8, 3, 5, 4}});
  check_pass<5, uint16_t>({.rank = 5, .sizes = {16, 3, 4, 5, 3}, .box = {8, 2, 3, 2, 2}},
                          {{8, 2, 1, 4, -1}});
  check_reduction<int>();
  check_reduction<unsigned>();
  check_reduction<__half>();
  check_spread();
  FINE(cudaDeviceSynchronize());
  return finish();
}
