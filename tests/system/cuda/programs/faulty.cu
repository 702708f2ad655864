// One mistake for each word of the command line, which cases() lists, or none. test_check.py runs
// it. A line that ends in "FAULT name" is the one that the report has to name.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

__device__ int table[16];
__device__ int behind_table[16];
__constant__ int factors[4] = {1, 2, 3, 4};

__global__ void store(int* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;  // FAULT store
}
__global__ void store_table(int n) {
  const int i = threadIdx.x;
  if (i < n) table[i] = behind_table[i % 16];  // FAULT store_table
}
__global__ void store_bytes(char* a, int shift) {
  *reinterpret_cast<int*>(a + 4 * threadIdx.x + (threadIdx.x == 5 ? shift : 0)) = 1;  // FAULT bytes
}
__global__ void add(const int* a, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + factors[i % 4];  // FAULT add
}
__global__ void count(int* at) { atomicAdd(at, 1); }

// A sum in shared memory; without barriers between its steps it has races.
template <bool kBad>
__global__ void sum(const int* in, int* out) {
  __shared__ int part[128];
  const int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];  // FAULT sum
    if (!kBad) __syncthreads();
  }
  if (t == 0) *out = part[0];
}
__global__ void leave_early(int* out, int n) {
  __shared__ int part[64];
  const int t = threadIdx.x;
  part[t] = t;
  if (t >= n) return;
  __syncthreads();  // FAULT leave_early
  out[t] = part[n - 1 - t];
}
// Two warps wait at two barriers for each other.
__global__ void wait_crosswise(int* out, int n) {
  const int t = threadIdx.x;
  if (t < n)
    asm volatile("bar.sync 1, 64;");  // FAULT wait_crosswise
  else
    asm volatile("bar.sync 2, 64;");
  out[t] = t;
}
// What one block stores, the next one loads, in the order of an atomic counter.
__global__ void pass_on(int* values, int* turn) {
  if (threadIdx.x != 0) return;
  const int me = static_cast<int>(blockIdx.x);
  while (atomicAdd(turn, 0) != me) {
  }
  values[me] = me == 0 ? 1 : values[me - 1] + 1;
  __threadfence();
  atomicAdd(turn, 1);
}

template <typename T = int>
T* memory(size_t count) {
  void* made = nullptr;
  cudaMalloc(&made, count * sizeof(T));
  return static_cast<T*>(made);
}

void clean() {
  constexpr int kCount = 1000;
  std::vector<int> host(kCount, 7);
  int *a = memory(kCount), *b = memory(kCount), *c = memory(kCount), *pinned, *managed;
  cudaMallocHost(&pinned, kCount * sizeof(int));
  cudaMallocManaged(&managed, kCount * sizeof(int));
  for (int i = 0; i < kCount; ++i) pinned[i] = managed[i] = i;
  cudaMemcpy(a, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice);
  add<<<8, 128>>>(a, b, kCount);
  cudaMemcpyAsync(c, b, kCount * sizeof(int), cudaMemcpyDeviceToDevice);
  add<<<8, 128>>>(c, a, kCount);
  add<<<8, 128>>>(pinned, managed, kCount);
  add<<<8, 128>>>(managed, pinned, kCount);
  store<<<8, 128>>>(c, kCount);
  store_table<<<1, 16>>>(16);
  store_bytes<<<1, 32>>>(reinterpret_cast<char*>(c), 4);
  sum<false><<<1, 128>>>(a, b);
  leave_early<<<1, 64>>>(b, 64);
  wait_crosswise<<<1, 64>>>(b, 64);
  // Half of it is set: that half may be read.
  int* half = memory(kCount);
  cudaMemset(half, 0, kCount / 2 * sizeof(int));
  add<<<8, 128>>>(half, a, kCount / 2);
  cudaMemset2D(half, 100 * sizeof(int), 0, 10 * sizeof(int), 10);
  char* rows = nullptr;
  size_t pitch = 0;
  cudaMallocPitch(reinterpret_cast<void**>(&rows), &pitch, 40, 4);
  cudaMemcpy2D(rows, pitch, host.data(), 40, 40, 4, cudaMemcpyHostToDevice);
  for (int y = 0; y < 4; ++y) add<<<1, 32>>>(reinterpret_cast<int*>(rows + y * pitch), a, 10);
  int *turn = memory(1), *values = memory(64);
  cudaMemset(turn, 0, sizeof(int));
  pass_on<<<64, 32>>>(values, turn);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  int* pooled = nullptr;
  cudaMallocAsync(&pooled, 4096, stream);
  cudaMemsetAsync(pooled, 0, 4096, stream);
  count<<<1, 32, 0, stream>>>(pooled);
  cudaFreeAsync(pooled, stream);
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaMemcpyAsync(c, pinned, 400, cudaMemcpyHostToDevice, stream);
  add<<<1, 100, 0, stream>>>(c, b, 100);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&replay, graph, 0);
  cudaGraphLaunch(replay, stream);
  cudaGraphLaunch(replay, stream);
  cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  for (void* p : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(c),
                  static_cast<void*>(managed), static_cast<void*>(half), static_cast<void*>(rows),
                  static_cast<void*>(turn), static_cast<void*>(values)})
    cudaFree(p);
  cudaFreeHost(pinned);
}

std::map<std::string, std::function<void()>> cases() {
  return {
      {"clean", clean},
      {"device_bounds",
       [] {
         cudaFree(memory(3));
         store<<<1, 128>>>(memory(64), 65);
       }},
      {"pinned_bounds",
       [] {
         int* a = nullptr;
         cudaMallocHost(&a, 256);
         store<<<1, 128>>>(a, 65);
         cudaDeviceSynchronize();
         cudaFreeHost(a);
       }},
      {"managed_bounds",
       [] {
         int* a = nullptr;
         cudaMallocManaged(&a, 256);
         store<<<1, 128>>>(a, 65);
       }},
      {"registered_bounds",
       [] {
         static int values[128];
         cudaHostRegister(values, 256, 0);
         store<<<1, 128>>>(values, 65);
       }},
      {"global_bounds", [] { store_table<<<1, 32>>>(17); }},
      // Two pages, and the first word behind them.
      {"page_bounds", [] { store<<<9, 256>>>(memory(2048), 2049); }},
      {"before", [] { store<<<1, 32>>>(memory(64) - 1, 1); }},
      {"use_after_free",
       [] {
         int* const a = memory(64);
         cudaFree(a);
         store<<<1, 64>>>(a, 64);
       }},
      {"large_after_free",
       [] {
         int* const a = memory(1 << 20);
         cudaFree(a);
         cudaMemset(memory(1 << 20), 0, 4 << 20);
         store<<<1, 64>>>(a, 64);
       }},
      {"misaligned", [] { store_bytes<<<1, 32>>>(memory<char>(256), 1); }},
      {"uninitialised",
       [] {
         int* const a = memory(64);
         cudaMemset(a, 0, 63 * sizeof(int));
         add<<<1, 64>>>(a, memory(64), 64);
       }},
      {"uninitialised_copy",
       [] {
         int *const a = memory(64), *const b = memory(64);
         cudaMemset(a, 0, 10 * sizeof(int));
         cudaMemcpy(b, a, 64 * sizeof(int), cudaMemcpyDeviceToDevice);
         add<<<1, 64>>>(b, memory(64), 11);
       }},
      {"race",
       [] {
         int* const a = memory(128);
         cudaMemset(a, 0, 512);
         sum<true><<<1, 128>>>(a, memory(1));
       }},
      {"barrier", [] { leave_early<<<1, 64>>>(memory(64), 48); }},
      {"deadlock", [] { wait_crosswise<<<1, 64>>>(memory(64), 32); }},
      {"repeated",
       [] {
         int* const a = memory(64);
         for (int n : {64, 65, 66}) store<<<1, 128>>>(a, n);
       }},
      {"double_free",
       [] {
         int* const a = memory(64);
         cudaFree(a);
         cudaFree(a);
       }},
      {"invalid_free", [] { cudaFree(memory(64) + 4); }},
      {"wrong_free", [] { cudaFreeHost(memory(64)); }},
      {"stray_free",
       [] {
         static int here;
         cudaFree(&here);
       }},
      {"copy_bounds",
       [] {
         int host[65] = {};
         cudaMemcpy(memory(64), host, sizeof host, cudaMemcpyHostToDevice);
       }},
      {"set_bounds", [] { cudaMemset(memory(64), 0, 257); }},
      {"copy_after_free",
       [] {
         int host[64];
         int* const a = memory(64);
         cudaFree(a);
         cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost);
       }},
      {"leak", [] { store<<<1, 128>>>(memory(64), 64); }},
      {"ends_at_once",
       [] {
         store<<<1, 128>>>(memory(64), 65);
         cudaDeviceSynchronize();
         _exit(0);
       }},
      {"own_status",
       [] {
         store<<<1, 128>>>(memory(64), 65);
         cudaDeviceSynchronize();
         exit(3);
       }},
  };
}

int main(int argc, char** argv) {
  const auto all = cases();
  for (int i = 1; i < argc; ++i) {
    const auto at = all.find(argv[i]);
    if (at == all.end()) {
      std::fprintf(stderr, "no case %s\n", argv[i]);
      return 1;
    }
    at->second();
  }
  cudaDeviceSynchronize();
  std::puts("ended");
  return 0;
}
