// Sums of warps as they were written before warps had barriers of their own:
//   nvcc -ptx -arch=compute_75 volatile.cu
extern "C" __global__ void warp_sums(const unsigned* from, unsigned* sums, unsigned rounds) {
  __shared__ volatile unsigned words[2 * 64];
  const unsigned lane = threadIdx.x % 32;
  volatile unsigned* const mine = words + 2 * (threadIdx.x - lane);
  unsigned sum = 0;
  for (unsigned r = 0; r < rounds; ++r) {
    mine[lane] = from[blockIdx.x * 64 + threadIdx.x] + r;
    mine[lane + 32] = 0;
    for (unsigned apart = 16; apart > 0; apart /= 2) mine[lane] += mine[lane + apart];
    sum += mine[0];
  }
  sums[blockIdx.x * 64 + threadIdx.x] = sum;
}
