// Kernels with one fault each, and the same without it (kBad false). test_check.py runs them.
template <bool kBad>
__global__ void out_of_bounds(int* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (kBad ? i <= n : i < n) a[i] = i;  // FAULT out_of_bounds
}

template <bool kBad>
__global__ void misaligned(char* a) {
  const int shift = kBad && threadIdx.x == 5;
  *reinterpret_cast<int*>(a + 4 * threadIdx.x + shift) = 1;  // FAULT misaligned
}

// A sum in shared memory; the bad one lacks a barrier in its loop.
template <bool kBad>
__global__ void race(const int* in, int* out) {
  __shared__ int part[128];
  const int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];  // FAULT race
    if (!kBad) __syncthreads();
  }
  if (t == 0) *out = part[0];
}

// The last steps of such a sum, in one warp.
template <bool kBad>
__global__ void warp_race(int* out) {
  __shared__ int part[64];
  const int t = threadIdx.x;
  part[t] = t;
  part[t + 32] = t;
  __syncwarp();
  for (int half = 32; half > 0; half /= 2) {
    const int sum = part[t] + part[t + half];  // FAULT warp_race
    if (!kBad) __syncwarp();
    part[t] = sum;
    if (!kBad) __syncwarp();
    if (half == 32 && t >= 32) return;
  }
  if (t == 0) *out = part[0];
}

template <bool kBad>
__global__ void atomic_race(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;  // FAULT atomic_race
  if (!kBad) __syncthreads();
  atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) *out = count;
}

template <bool kBad>
__global__ void ended_before_barrier(int* out, int n) {
  __shared__ int part[64];
  const int t = threadIdx.x;
  part[t] = 0;
  if (kBad && t >= n) return;
  if (t < n) part[t] = t;
  __syncthreads();  // FAULT ended_before_barrier
  if (t < n) out[t] = part[n - 1 - t];
}

template <bool kBad>
__global__ void two_barriers(int* out) {
  __shared__ int part[64];
  const int t = threadIdx.x;
  part[t] = t;
  if (kBad && t >= 32) {
    __syncthreads();  // FAULT two_barriers
    out[t] = part[t - 32] + 1;
  } else {
    __syncthreads();
    out[t] = part[63 - t];
  }
}

template <bool kBad>
__global__ void uninitialised(int* out) {
  __shared__ int part[64];
  const int t = threadIdx.x;
  if (!kBad || t != 7) part[t] = t;
  __syncthreads();
  out[t] = part[63 - t];  // FAULT uninitialised
}

// Two warps wait at two barriers for each other.
template <bool kBad>
__global__ void deadlock(int* out) {
  const int t = threadIdx.x;
  if (kBad && t < 32)
    asm volatile("bar.sync 1, 64;");  // FAULT deadlock
  else
    asm volatile("bar.sync 2, 64;");
  if (!kBad) asm volatile("bar.sync 1, 64;");
  out[t] = t;
}

template <bool kBad>
__global__ void shared_bounds(int* out) {
  extern __shared__ int part[];
  const int t = threadIdx.x;
  part[t] = t;
  __syncthreads();
  if (kBad && t == 63) part[64] = 1;  // FAULT shared_bounds
  out[t] = part[63 - t];
}

#define BOTH(name, ...)                             \
  template __global__ void name<true>(__VA_ARGS__); \
  template __global__ void name<false>(__VA_ARGS__);
BOTH(out_of_bounds, int*, int)
BOTH(misaligned, char*)
BOTH(race, const int*, int*)
BOTH(warp_race, int*)
BOTH(atomic_race, int*)
BOTH(ended_before_barrier, int*, int)
BOTH(two_barriers, int*)
BOTH(uninitialised, int*)
BOTH(deadlock, int*)
BOTH(shared_bounds, int*)
