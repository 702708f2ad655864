// A hundred kernels, each of its own text, and each launched once: what a program's start costs.
// The host computes the same.
#include <cstdio>
#include <utility>
#include <vector>

constexpr unsigned kKernels = 100, kWords = 1024, kBlock = 64;

// Kernels differ in what they compute, in their loops and branches.
template <unsigned N>
__host__ __device__ unsigned first_half(unsigned x) {
  x += N;
  for (unsigned k = 0; k < 3 + N % 5; ++k) x = N % 3 == 0 ? x * 33 + k : (x ^ x >> 7) + N * k;
  return x;
}
template <unsigned N>
__host__ __device__ unsigned second_half(unsigned x, unsigned other, unsigned i) {
  if (N % 2 == 0) x += other;
  if (N % 7 == 0 && (x & 1) != 0) x -= static_cast<unsigned>(static_cast<float>(i) * (N + 0.5f));
  return x;
}

template <unsigned N>
__global__ void step(unsigned* words) {
  __shared__ unsigned part[kBlock];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned x = part[threadIdx.x] = first_half<N>(words[i]);
  if (N % 2 == 0) __syncthreads();
  words[i] = second_half<N>(x, N % 2 == 0 ? part[kBlock - 1 - threadIdx.x] : 0, i);
}

template <unsigned N>
void step_on_host(std::vector<unsigned>& words) {
  const std::vector<unsigned> before = words;
  for (unsigned i = 0; i < kWords; ++i) {
    const unsigned other = i / kBlock * kBlock + kBlock - 1 - i % kBlock;
    words[i] = second_half<N>(first_half<N>(before[i]), first_half<N>(before[other]), i);
  }
}

template <unsigned... N>
void all(unsigned* on_device, std::vector<unsigned>& on_host,
         std::integer_sequence<unsigned, N...>) {
  (step<N><<<kWords / kBlock, kBlock>>>(on_device), ...);
  (step_on_host<N>(on_host), ...);
}

int main() {
  unsigned* words = nullptr;
  std::vector<unsigned> expected(kWords), out(kWords);
  if (cudaMalloc(&words, kWords * sizeof *words) != cudaSuccess) return 1;
  cudaMemset(words, 0, kWords * sizeof *words);
  all(words, expected, std::make_integer_sequence<unsigned, kKernels>());
  if (cudaMemcpy(out.data(), words, kWords * sizeof *words, cudaMemcpyDeviceToHost) != cudaSuccess)
    return 1;
  std::puts(out == expected ? "all fine" : "other words than on the host");
  return out == expected ? 0 : 1;
}
