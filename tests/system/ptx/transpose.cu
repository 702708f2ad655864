// The transpose kernel whose trace section 6.1.3 of the thesis prints: an image of 513 x 513 words
// in tiles of 16 x 16, a thread per element, by way of shared memory. Ours is written anew.
// nvcc -ptx -arch=compute_75 -o transpose.ptx transpose.cu
constexpr int kTile = 16;

struct Size {
  unsigned width, height;
};

extern "C" __global__ void transpose(const unsigned* from, unsigned from_stride, unsigned* to,
                                     unsigned to_stride, Size size) {
  __shared__ unsigned tile[kTile][kTile + 1];
  const unsigned x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  if (x < size.width && y < size.height) tile[threadIdx.y][threadIdx.x] = from[y * from_stride + x];
  __syncthreads();
  const unsigned to_x = blockIdx.y * kTile + threadIdx.x, to_y = blockIdx.x * kTile + threadIdx.y;
  if (to_x < size.height && to_y < size.width)
    to[to_y * to_stride + to_x] = tile[threadIdx.x][threadIdx.y];
}
