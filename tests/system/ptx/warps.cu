// What threads of a warp and of a block do together, where they went different ways.
// nvcc -ptx -arch=compute_80 -o warps.ptx warps.cu
extern "C" __global__ void meet(const unsigned* in, unsigned* out, unsigned* sums) {
  __shared__ unsigned shared[96];
  const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t, lane = t % 32;
  unsigned x = in[i];
  // Lanes leave the loop one after the other, and those that are left vote.
  unsigned votes = 0;
  for (unsigned n = x % 7, left = __ballot_sync(~0u, n != 0); n != 0; --n) {
    votes += __popc(left) + __shfl_xor_sync(left, x, 1);
    left = __ballot_sync(left, n > 1);
  }
  __syncwarp();
  shared[t] = x;
  __syncthreads();
  x += shared[95 - t];
  const bool is_odd = x & 1;
  const unsigned half = __match_any_sync(~0u, is_odd);
  if (is_odd)
    x += __reduce_add_sync(half, lane);
  else
    x ^= __reduce_max_sync(half, x);
  const int odd = __syncthreads_count(is_odd);
  if (x % 16 == 3) {  // these end before the last barrier
    out[i] = x;
    return;
  }
  atomicAdd(&sums[blockIdx.x], 1);
  __syncthreads();
  out[i] = x + votes + odd + 1000 * sums[blockIdx.x];
}

// Lane 0 waits for the others, and they for the barrier of all.
extern "C" __global__ void stuck() {
  if (threadIdx.x == 0)
    asm volatile("bar.warp.sync 0xffffffff;");
  else
    asm volatile("bar.sync 1, 64;");
}
