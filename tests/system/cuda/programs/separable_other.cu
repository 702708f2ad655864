__device__ int table[4] = {10, 20, 30, 40};
__device__ __noinline__ int twice(int value) { return 2 * value; }
