// What kernels do wrong with textures and surfaces.  usage: textures_faulty WHAT
#include <cstring>

#include "check.h"

__global__ void fetch(cudaTextureObject_t t, int* out) {
  out[threadIdx.x] = tex1Dfetch<int>(t, static_cast<int>(threadIdx.x));
}
__global__ void store(cudaSurfaceObject_t s) {
  surf2Dwrite(1, s, static_cast<int>(threadIdx.x) * 4, 0);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const auto is = [&](const char* name) { return std::strcmp(what, name) == 0; };
  int *memory = nullptr, *out = nullptr;
  FINE(cudaMalloc(&memory, 32 * sizeof(int)));
  FINE(cudaMalloc(&out, 32 * sizeof(int)));
  FINE(cudaMemset(memory, 0, 32 * sizeof(int)));
  cudaResourceDesc r{};
  r.resType = cudaResourceTypeLinear;
  r.res.linear = {memory, cudaCreateChannelDesc<int>(), 32 * sizeof(int)};
  cudaTextureDesc d{};
  cudaTextureObject_t t = 0;
  FINE(cudaCreateTextureObject(&t, &r, &d, nullptr));
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr;
  FINE(cudaMallocArray(&array, &desc, 16, 2, cudaArraySurfaceLoadStore));
  cudaResourceDesc a{};
  a.resType = cudaResourceTypeArray;
  a.res.array.array = array;
  cudaSurfaceObject_t s = 0;
  FINE(cudaCreateSurfaceObject(&s, &a));
  if (is("destroyed")) FINE(cudaDestroyTextureObject(t));
  if (is("freed")) FINE(cudaFree(memory));
  if (is("array")) FINE(cudaFreeArray(array));
  if (is("pointer")) t = reinterpret_cast<cudaTextureObject_t>(memory);
  if (is("null")) t = 0;
  if (is("swapped")) t = s;
  if (is("outside") || is("array"))
    store<<<1, 32>>>(s);
  else
    fetch<<<1, 32>>>(t, out);
  std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
