// Tensor maps of images (im2col): pixels between the corners of a box, which follow each other over
// the ends of rows and images, as convolutions want them. What comes is stated pixel by pixel.
#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <cuda/ptx>
#include <vector>

#include "check.h"

namespace ptx = cuda::ptx;

decltype(&cuTensorMapEncodeIm2col) encode = nullptr;

template <class F>
F* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  FINE(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  CHECK(found != nullptr && result == cudaDriverEntryPointSuccess);
  return reinterpret_cast<F*>(found);
}

struct Images {
  int rank;
  int sizes[5];                      // channels, W, H, D, images: as many as there are dimensions
  int lower[3] = {}, upper[3] = {};  // corners
  int channels = 4, pixels = 16;
  int steps[5] = {1, 1, 1, 1, 1};

  int spatial() const { return rank - 2; }
  size_t elements() const {
    size_t all = 1;
    for (int d = 0; d < rank; ++d) all *= static_cast<size_t>(sizes[d]);
    return all;
  }
};
struct Start {
  int at[5];
  uint16_t offsets[3] = {0, 0, 0};
};

CUresult make(CUtensorMap& map, const Images& i, int* address) {
  uint64_t sizes[5] = {}, strides[4] = {};
  uint32_t steps[5] = {};
  uint64_t stride = sizeof(int);
  for (int d = 0; d < i.rank; ++d) {
    sizes[d] = static_cast<uint64_t>(i.sizes[d]);
    steps[d] = static_cast<uint32_t>(i.steps[d]);
    stride *= sizes[d];
    if (d + 1 < i.rank) strides[d] = stride;
  }
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, static_cast<uint32_t>(i.rank), address, sizes,
                strides, i.lower, i.upper, static_cast<uint32_t>(i.channels),
                static_cast<uint32_t>(i.pixels), steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

template <int kRank>
__device__ void load(void* to, const CUtensorMap* map, const Start& s, uint64_t* barrier) {
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to)),
             signal = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  if constexpr (kRank == 3)
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4}], [%5], {%6};" ::"r"(shared),
        "l"(map), "r"(s.at[0]), "r"(s.at[1]), "r"(s.at[2]), "r"(signal), "h"(s.offsets[0])
        : "memory");
  else if constexpr (kRank == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(shared),
        "l"(map), "r"(s.at[0]), "r"(s.at[1]), "r"(s.at[2]), "r"(s.at[3]), "r"(signal),
        "h"(s.offsets[0]), "h"(s.offsets[1])
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10};" ::"r"(shared),
        "l"(map), "r"(s.at[0]), "r"(s.at[1]), "r"(s.at[2]), "r"(s.at[3]), "r"(s.at[4]), "r"(signal),
        "h"(s.offsets[0]), "h"(s.offsets[1]), "h"(s.offsets[2])
        : "memory");
}

// Pixels come, and go on to `seen`; those of four dimensions also back to `to`, without offsets.
template <int kRank>
__global__ void pass(const __grid_constant__ CUtensorMap from,
                     const __grid_constant__ CUtensorMap to, Start s, int* seen, unsigned count) {
  extern __shared__ __align__(128) int box[];
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier,
                                   count * 4);
    load<kRank>(box, &from, s, &barrier);
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
  }
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) seen[i] = box[i];
  __syncthreads();
  if (kRank != 4 || threadIdx.x != 0) return;
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(box));
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
      "[%0, {%1, %2, %3, %4}], [%5];" ::"l"(&to),
      "r"(s.at[0]), "r"(s.at[1]), "r"(s.at[2]), "r"(s.at[3]), "r"(shared)
      : "memory");
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

// The index of an element, or -1 where there is none.
long index_of(const Images& i, const int* at) {
  long index = 0;
  for (int d = i.rank - 1; d >= 0; --d) {
    if (at[d] < 0 || at[d] >= i.sizes[d]) return -1;
    index = index * i.sizes[d] + at[d];
  }
  return index;
}

// All pixels of all images that a box may have, in their order.
std::vector<std::vector<int>> all_pixels(const Images& i) {
  std::vector<std::vector<int>> list;
  const auto last = [&](int d) { return i.sizes[d] - 1 + i.upper[d - 1]; };
  const int deep = i.rank == 5 ? 3 : 0, high = i.rank >= 4 ? 2 : 0;
  for (int n = 0; n < i.sizes[i.rank - 1] + 3; n += i.steps[i.rank - 1])
    for (int d = deep ? i.lower[2] : 0; d <= (deep ? last(3) : 0); d += deep ? i.steps[3] : 1)
      for (int h = high ? i.lower[1] : 0; h <= (high ? last(2) : 0); h += high ? i.steps[2] : 1)
        for (int w = i.lower[0]; w <= last(1); w += i.steps[1]) {
          std::vector<int> at{0, w};
          if (high) at.push_back(h);
          if (deep) at.push_back(d);
          at.push_back(n);
          list.push_back(at);
        }
  return list;
}

template <int kRank>
void check_pass(const Images& i, const Start& s) {
  const size_t elements = i.elements(), count = static_cast<size_t>(i.channels * i.pixels);
  std::vector<int> data(elements);
  for (size_t n = 0; n < elements; ++n) data[n] = static_cast<int>(n + 1);
  int *from = nullptr, *to = nullptr, *seen = nullptr;
  FINE(cudaMalloc(&from, elements * 4));
  FINE(cudaMalloc(&to, elements * 4));
  FINE(cudaMalloc(&seen, count * 4));
  FINE(cudaMemcpy(from, data.data(), elements * 4, cudaMemcpyHostToDevice));
  FINE(cudaMemset(to, 0, elements * 4));
  FINE(cudaMemset(seen, 0xff, count * 4));
  alignas(64) CUtensorMap source, target;
  CHECK(make(source, i, from) == CUDA_SUCCESS);
  CHECK(make(target, i, to) == CUDA_SUCCESS);
  pass<kRank><<<1, 64, count * 4>>>(source, target, s, seen, static_cast<unsigned>(count));
  FINE(cudaDeviceSynchronize());
  std::vector<int> got(count), stored(elements), wanted(elements);
  FINE(cudaMemcpy(got.data(), seen, count * 4, cudaMemcpyDeviceToHost));
  FINE(cudaMemcpy(stored.data(), to, elements * 4, cudaMemcpyDeviceToHost));
  const auto pixels = all_pixels(i);
  size_t first = 0;
  while (first < pixels.size() && std::memcmp(&pixels[first][1], &s.at[1], (kRank - 1) * 4) != 0)
    ++first;
  CHECK(first + static_cast<size_t>(i.pixels) <= pixels.size());
  int wrong = 0;
  for (size_t n = 0; n < count && first + n / static_cast<size_t>(i.channels) < pixels.size();
       ++n) {
    std::vector<int> at = pixels[first + n / static_cast<size_t>(i.channels)];
    at[0] = s.at[0] + static_cast<int>(n % static_cast<size_t>(i.channels));
    const long place = index_of(i, at.data());
    for (int d = 0; d < i.spatial(); ++d) at[static_cast<size_t>(d) + 1] += s.offsets[d];
    const long index = index_of(i, at.data());
    const int value = index < 0 ? 0 : data[static_cast<size_t>(index)];
    wrong += got[n] != value;
    if (kRank == 4 && place >= 0) wanted[static_cast<size_t>(place)] = value;
  }
  if (wrong != 0) std::printf("%d dimensions: %d of %zu elements are wrong\n", kRank, wrong, count);
  CHECK(wrong == 0);
  CHECK(stored == wanted);
  FINE(cudaFree(from));
  FINE(cudaFree(to));
  FINE(cudaFree(seen));
}

void check_arguments() {
  alignas(64) CUtensorMap map;
  int* data = nullptr;
  FINE(cudaMalloc(&data, 1 << 16));
  const Images fine{.rank = 4, .sizes = {8, 7, 6, 3}};
  CHECK(make(map, fine, data) == CUDA_SUCCESS);
  const auto refused = [&](auto change) {
    Images wrong = fine;
    change(wrong);
    CHECK(make(map, wrong, data) == CUDA_ERROR_INVALID_VALUE);
  };
  refused([](Images& i) { i.rank = 2; });
  refused([](Images& i) { i.lower[0] = -129; });
  refused([](Images& i) { i.upper[1] = 128; });
  refused([](Images& i) { i.upper[0] = -7; });  // no pixel is left
  refused([](Images& i) { i.channels = 257; });
  refused([](Images& i) { i.channels = 3; });  // 12 bytes
  refused([](Images& i) { i.pixels = 1025; });
  refused([](Images& i) { i.pixels = 0; });
  refused([](Images& i) { i.steps[1] = 9; });
  FINE(cudaFree(data));
}

// A map of tiles in an instruction for images.
__global__ void mixed(const __grid_constant__ CUtensorMap map) {
  extern __shared__ __align__(128) int box[];
  __shared__ alignas(8) uint64_t barrier;
  ptx::mbarrier_init(&barrier, 1);
  load<3>(box, &map, Start{{0, 0, 0}}, &barrier);
}
int mix() {
  int* data = nullptr;
  FINE(cudaMalloc(&data, 1 << 16));
  alignas(64) CUtensorMap map;
  const uint64_t sizes[3] = {8, 8, 8}, strides[2] = {32, 256};
  const uint32_t box[3] = {4, 4, 4}, steps[3] = {1, 1, 1};
  const auto tiled = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  CHECK(tiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 3, data, sizes, strides, box, steps,
              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
              CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  mixed<<<1, 1, 1024>>>(map);
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}

int main(int argc, char**) {
  encode = driver_function<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  if (argc > 1) return mix();
  check_arguments();
  // A convolution of 3 x 3: pixels begin one outside, and offsets are 0 to 2.
  const Images convolution{
      .rank = 4, .sizes = {8, 7, 6, 3}, .lower = {-1, -1}, .upper = {-1, -1}, .pixels = 48};
  for (const uint16_t h : {0, 1, 2})
    for (const uint16_t w : {0, 1, 2}) {
      check_pass<4>(convolution, {{0, -1, -1, 0}, {w, h}});
      check_pass<4>(convolution, {{4, 3, 2, 1}, {w, h}});
    }
  check_pass<4>(convolution, {{4, 5, 4, 2}, {1, 2}});  // beyond the last image
  check_pass<4>({.rank = 4,
                 .sizes = {8, 9, 8, 2},
                 .lower = {1, 0},
                 .upper = {-2, 1},
                 .pixels = 20,
                 .steps = {1, 2, 3, 1}},
                {{0, 3, 3, 0}, {1, 1}});
  check_pass<3>({.rank = 3, .sizes = {12, 30, 3}, .lower = {-3}, .upper = {2}, .pixels = 70},
                {{8, 10, 0}, {5}});
  check_pass<5>({.rank = 5,
                 .sizes = {4, 5, 4, 3, 3},
                 .lower = {-1, 0, -2},
                 .upper = {0, -1, 1},
                 .pixels = 100},
                {{0, 2, 1, 0, 1}, {1, 2, 1}});
  return finish();
}
