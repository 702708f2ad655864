// bf16, copies that are not waited for, barriers in shared memory, products of matrices.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cuda/barrier>
#include <cuda/pipeline>
#include <vector>

#include "check.h"

constexpr int kSide = 16;

// One warp, C = A B with A by rows and B by columns.
template <class T, int kDepth, class Load, class Sum>
__global__ void multiply(const T* a, const T* b, Sum* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, kSide, kSide, kDepth, Load, row_major> fa;
  fragment<matrix_b, kSide, kSide, kDepth, Load, col_major> fb;
  fragment<accumulator, kSide, kSide, kDepth, Sum> sum;
  fill_fragment(sum, Sum(0));
  load_matrix_sync(fa, a, kDepth);
  load_matrix_sync(fb, b, kDepth);
  mma_sync(sum, fa, fb, sum);
  store_matrix_sync(c, sum, kSide, mem_row_major);
}

template <class T, int kDepth, class Load = T, class Sum = float>
void check_product(const char* name) {
  T *a, *b;
  Sum* c;
  FINE(cudaMallocManaged(&a, kSide * kDepth * sizeof(T)));
  FINE(cudaMallocManaged(&b, kSide * kDepth * sizeof(T)));
  FINE(cudaMallocManaged(&c, kSide * kSide * sizeof(Sum)));
  for (int i = 0; i < kSide * kDepth; ++i) {
    a[i] = T(float(i * 7 % 13 - 6));
    b[i] = T(float(i * 5 % 11 - 5));
  }
  multiply<T, kDepth, Load, Sum><<<1, 32>>>(a, b, c);
  FINE(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < kSide; ++i)
    for (int j = 0; j < kSide; ++j) {
      float sum = 0;
      for (int k = 0; k < kDepth; ++k) sum += float(a[i * kDepth + k]) * float(b[j * kDepth + k]);
      wrong += float(c[i * kSide + j]) != sum;
    }
  if (wrong != 0) std::fprintf(stderr, "%s: %d elements are wrong\n", name, wrong);
  CHECK(wrong == 0);
}

__global__ void brain(const float* in, float* out) {
  const int i = threadIdx.x;
  const __nv_bfloat16 x = __float2bfloat16(in[i]), y = __float2bfloat16(in[i] * 0.5f + 1);
  const __nv_bfloat162 both = __halves2bfloat162(x, y);
  const __nv_bfloat162 r = __hfma2(both, both, both);
  out[4 * i] = __bfloat162float(x * y + y);
  out[4 * i + 1] = __low2float(r);
  out[4 * i + 2] = __high2float(r);
  out[4 * i + 3] = __hgt(x, y) ? 1.0f : 0.0f;
}

// Each block adds up rows that it copies ahead of its sums.
__global__ void pipelined(const int* in, int* out, int rows) {
  __shared__ alignas(16) int room[2][128];
  const auto block = cooperative_groups::this_thread_block();
  constexpr auto scope = cuda::thread_scope_block;
  __shared__ cuda::pipeline_shared_state<scope, 2> state;
  auto pipe = cuda::make_pipeline(block, &state);
  const auto shape = cuda::aligned_size_t<16>(sizeof room[0]);
  int sum = 0;
  for (int next = 0, row = 0; row < rows; ++row) {
    for (; next < rows && next < row + 2; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, room[next % 2], in + 128 * (next * gridDim.x + blockIdx.x), shape,
                         pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += room[row % 2][threadIdx.x] * (row + 1);
    pipe.consumer_release();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void barriers(int* out, int rounds) {
  __shared__ int values[128];
  __shared__ cuda::barrier<cuda::thread_scope_block> meet;
  if (threadIdx.x == 0) init(&meet, blockDim.x);
  __syncthreads();
  int mine = threadIdx.x;
  for (int r = 0; r < rounds; ++r) {
    values[threadIdx.x] = mine;
    meet.arrive_and_wait();
    mine = values[(threadIdx.x + 1) % blockDim.x] + 1;
    auto token = meet.arrive();
    meet.wait(std::move(token));
  }
  out[threadIdx.x] = mine;
}

int main() {
  check_product<__half, 16>("f16");
  check_product<__nv_bfloat16, 16>("bf16");
  check_product<float, 8, nvcuda::wmma::precision::tf32>("tf32");
  check_product<signed char, 16, signed char, int>("s8");
  check_product<__half, 16, __half, __half>("f16, sums too");

  constexpr int kThreads = 128, kBlocks = 3, kRows = 7;
  float *in, *out;
  int *rows, *sums;
  FINE(cudaMallocManaged(&in, kThreads * sizeof(float)));
  FINE(cudaMallocManaged(&out, 4 * kThreads * sizeof(float)));
  FINE(cudaMallocManaged(&rows, kRows * kBlocks * kThreads * sizeof(int)));
  FINE(cudaMallocManaged(&sums, kBlocks * kThreads * sizeof(int)));
  for (int i = 0; i < kThreads; ++i) in[i] = 2 * i - 61;  // exact, and half of it
  brain<<<1, kThreads>>>(in, out);
  FINE(cudaDeviceSynchronize());
  // The header's own functions, on the host.
  const auto r = [](float x) { return __bfloat162float(__float2bfloat16(x)); };
  for (int i = 0; i < kThreads; ++i) {
    const float x = r(in[i]), y = r(in[i] * 0.5f + 1);
    CHECK(out[4 * i] == r(r(x * y) + y));
    CHECK(out[4 * i + 1] == r(x * x + x) && out[4 * i + 2] == r(y * y + y));
    CHECK(out[4 * i + 3] == (x > y ? 1.0f : 0.0f));
  }

  for (int i = 0; i < kRows * kBlocks * kThreads; ++i) rows[i] = i * 31 % 1009;
  pipelined<<<kBlocks, kThreads>>>(rows, sums, kRows);
  FINE(cudaDeviceSynchronize());
  for (int b = 0; b < kBlocks; ++b)
    for (int t = 0; t < kThreads; ++t) {
      int sum = 0;
      for (int k = 0; k < kRows; ++k) sum += rows[128 * (k * kBlocks + b) + t] * (k + 1);
      CHECK(sums[b * kThreads + t] == sum);
    }

  barriers<<<1, kThreads>>>(sums, 5);
  FINE(cudaDeviceSynchronize());
  for (int t = 0; t < kThreads; ++t) CHECK(sums[t] == (t + 5) % kThreads + 5);
  return finish();
}
