// Arrays, copies with them, texture and surface objects of both APIs, and what they refuse.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"

#define GOOD(call)                                                                \
  do {                                                                            \
    const CUresult result = (call);                                               \
    if (result != CUDA_SUCCESS) {                                                 \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, result); \
      ++failures;                                                                 \
    }                                                                             \
  } while (0)

static cudaResourceDesc of_array(cudaArray_t array) {
  cudaResourceDesc r{};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = array;
  return r;
}

template <typename T>
static T* device(size_t count) {
  T* p = nullptr;
  FINE(cudaMalloc(&p, count * sizeof(T)));
  FINE(cudaMemset(p, 0xee, count * sizeof(T)));
  return p;
}
template <typename T>
static std::vector<T> host(const T* from, size_t count) {
  std::vector<T> out(count);
  FINE(cudaMemcpy(out.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
  return out;
}

// --- copies

static void copies() {
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc<short2>();
  cudaArray_t a, b;
  FINE(cudaMallocArray(&a, &desc, 10, 6));
  FINE(cudaMallocArray(&b, &desc, 10, 6));
  cudaChannelFormatDesc got{};
  cudaExtent extent{};
  unsigned flags = 9;
  FINE(cudaArrayGetInfo(&got, &extent, &flags, a));
  CHECK(got.x == 16 && got.y == 16 && got.z == 0 && got.f == cudaChannelFormatKindSigned);
  CHECK(extent.width == 10 && extent.height == 6 && extent.depth == 0 && flags == 0);
  short2 in[60], out[60];
  for (int i = 0; i < 60; ++i) in[i] = make_short2(static_cast<short>(i), static_cast<short>(-i));
  FINE(cudaMemcpy2DToArray(a, 0, 0, in, 40, 40, 6, cudaMemcpyHostToDevice));
  // A box of 3 x 2 elements from (4, 1) in a to (2, 3) in b.
  FINE(cudaMemcpy2DArrayToArray(b, 8, 3, a, 16, 1, 12, 2));
  std::memset(out, 0, sizeof out);
  FINE(cudaMemcpy2DFromArray(out, 40, b, 0, 0, 40, 6, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 6; ++y)
    for (int x = 0; x < 10; ++x) {
      const bool is_in = x >= 2 && x < 5 && y >= 3 && y < 5;
      const int from = (y - 2) * 10 + x + 2;
      CHECK(out[y * 10 + x].x == (is_in ? from : 0) && out[y * 10 + x].y == (is_in ? -from : 0));
    }
  CHECK(cudaMemcpy2DToArray(a, 4, 0, in, 40, 40, 6, cudaMemcpyHostToDevice) ==
        cudaErrorInvalidValue);
  CHECK(cudaMemcpy2DFromArray(out, 40, a, 0, 5, 40, 2, cudaMemcpyDeviceToHost) ==
        cudaErrorInvalidValue);
  // Three dimensions: widths in elements; from a place in memory to one in the array and back.
  cudaArray_t c;
  FINE(cudaMalloc3DArray(&c, &desc, make_cudaExtent(5, 4, 3)));
  cudaMemcpy3DParms p{};
  p.srcPtr = make_cudaPitchedPtr(in, 40, 10, 6);
  p.srcPos = make_cudaPos(4, 1, 0);  // bytes
  p.dstArray = c;
  p.dstPos = make_cudaPos(2, 1, 2);
  p.extent = make_cudaExtent(3, 2, 1);
  p.kind = cudaMemcpyHostToDevice;
  FINE(cudaMemcpy3D(&p));
  std::memset(out, 0, sizeof out);
  cudaMemcpy3DParms q{};
  q.srcArray = c;
  q.dstPtr = make_cudaPitchedPtr(out, 20, 5, 4);
  q.extent = make_cudaExtent(5, 4, 3);
  q.kind = cudaMemcpyDeviceToHost;
  FINE(cudaMemcpy3D(&q));
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 5; ++x) {
      const bool is_in = x >= 2 && y >= 1 && y < 3;
      CHECK(out[40 + y * 5 + x].x == (is_in ? y * 10 + x - 1 : 0));
    }
  p.dstPos = make_cudaPos(3, 1, 2);
  CHECK(cudaMemcpy3D(&p) == cudaErrorInvalidValue);
  // In bytes these are 0 again, modulo 2^64.
  constexpr size_t kMany = size_t{1} << 62;
  p.dstPos = make_cudaPos(kMany, 1, 2);
  CHECK(cudaMemcpy3D(&p) == cudaErrorInvalidValue);
  p.dstPos = make_cudaPos(0, 0, 0);
  p.extent.width = kMany;
  CHECK(cudaMemcpy3D(&p) == cudaErrorInvalidValue);
  p.extent = make_cudaExtent(1, 1, 1);
  p.srcPos = make_cudaPos(0, 0, kMany);
  CHECK(cudaMemcpy3D(&p) == cudaErrorInvalidValue);
  FINE(cudaFreeArray(a));
  FINE(cudaFreeArray(b));
  FINE(cudaFreeArray(c));
  CHECK(cudaFreeArray(c) == cudaErrorInvalidResourceHandle);
  CHECK(cudaFreeArray(nullptr) == cudaSuccess);
  cudaGetLastError();
}

// --- surfaces

__global__ void write_all(cudaSurfaceObject_t s1, cudaSurfaceObject_t s2, cudaSurfaceObject_t s3,
                          cudaSurfaceObject_t l1, cudaSurfaceObject_t l2) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y),
            z = static_cast<int>(threadIdx.z);
  const int v = 100 * z + 10 * y + x;
  if (y == 0 && z == 0) surf1Dwrite(v, s1, x * 4);
  if (z == 0)
    surf2Dwrite(make_uchar4(static_cast<unsigned char>(v), 1, 2, static_cast<unsigned char>(x)), s2,
                x * 4, y);
  surf3Dwrite(static_cast<float>(v), s3, x * 4, y, z);
  if (y == 0) surf1DLayeredwrite(static_cast<short>(-v), l1, x * 2, z);
  surf2DLayeredwrite(make_int4(v, -v, x, z), l2, x * 16, y, z);
}

__global__ void read_all(cudaSurfaceObject_t s1, cudaSurfaceObject_t s2, cudaSurfaceObject_t s3,
                         cudaSurfaceObject_t l1, cudaSurfaceObject_t l2, int* wrong) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y),
            z = static_cast<int>(threadIdx.z);
  const int v = 100 * z + 10 * y + x;
  int bad = surf1Dread<int>(s1, x * 4) != x;
  const uchar4 c = surf2Dread<uchar4>(s2, x * 4, y);
  bad += c.x != 10 * y + x || c.y != 1 || c.z != 2 || c.w != x;
  bad += surf3Dread<float>(s3, x * 4, y, z) != static_cast<float>(v);
  bad += surf1DLayeredread<short>(l1, x * 2, z) != -(100 * z + x);
  const int4 w = surf2DLayeredread<int4>(l2, x * 16, y, z);
  bad += w.x != v || w.y != -v || w.z != x || w.w != z;
  if (bad != 0) atomicAdd(wrong, bad);
}

// Outside: clamped, or zeros and nothing.
__global__ void outside(cudaSurfaceObject_t s, int* out) {
  out[0] = surf2Dread<int>(s, -8, 2, cudaBoundaryModeClamp);
  out[1] = surf2Dread<int>(s, 400, 99, cudaBoundaryModeClamp);
  out[2] = surf2Dread<int>(s, 16, 1, cudaBoundaryModeZero);
  out[3] = surf2Dread<int>(s, 12, -1, cudaBoundaryModeZero);
  surf2Dwrite(555, s, 4, 3, cudaBoundaryModeZero);
  surf2Dwrite(666, s, 4, -7, cudaBoundaryModeClamp);
  surf2Dwrite(make_int2(7, 8), s, 12, 1, cudaBoundaryModeZero);  // partly outside
}

// Reductions and questions that have no functions.
__global__ void by_hand(cudaSurfaceObject_t s, cudaTextureObject_t t, int* out) {
  const int x = static_cast<int>(threadIdx.x % 4) * 4;
  asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(0), "r"(1));
  asm volatile("sured.b.max.2d.s32.trap [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(1),
               "r"(static_cast<int>(threadIdx.x) - 1000));
  asm volatile("sured.b.or.2d.b32.clamp [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(2),
               "r"(1 << threadIdx.x / 4));
  if (threadIdx.x != 0) return;
  asm("suq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(s));
  asm("suq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(s));
  asm("txq.width.b32 %0, [%1];" : "=r"(out[2]) : "l"(t));
  asm("txq.height.b32 %0, [%1];" : "=r"(out[3]) : "l"(t));
  asm("txq.num_mipmap_levels.b32 %0, [%1];" : "=r"(out[4]) : "l"(t));
  asm("txq.normalized_coords.b32 %0, [%1];" : "=r"(out[5]) : "l"(t));
  asm("txq.channel_data_type.b32 %0, [%1];" : "=r"(out[6]) : "l"(t));
  asm("txq.level.width.b32 %0, [%1], %2;" : "=r"(out[7]) : "l"(t), "r"(1));
  int answers[5];
  asm("{ .reg .pred p; istypep.texref p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(answers[0]) : "l"(t));
  asm("{ .reg .pred p; istypep.samplerref p, %1; selp.s32 %0, 1, 0, p; }"
      : "=r"(answers[1])
      : "l"(t));
  asm("{ .reg .pred p; istypep.surfref p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(answers[2]) : "l"(s));
  asm("{ .reg .pred p; istypep.texref p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(answers[3]) : "l"(s));
  asm("{ .reg .pred p; istypep.surfref p, %1; selp.s32 %0, 1, 0, p; }"
      : "=r"(answers[4])
      : "l"(12345ull));
  out[8] = answers[0] * 10000 + answers[1] * 1000 + answers[2] * 100 + answers[3] * 10 + answers[4];
}

static cudaArray_t make_array(const cudaChannelFormatDesc& desc, cudaExtent extent,
                              unsigned flags) {
  cudaArray_t a = nullptr;
  FINE(cudaMalloc3DArray(&a, &desc, extent, flags));
  return a;
}
static cudaSurfaceObject_t surface(cudaArray_t a) {
  cudaSurfaceObject_t s = 0;
  const cudaResourceDesc r = of_array(a);
  FINE(cudaCreateSurfaceObject(&s, &r));
  return s;
}

static void surfaces() {
  const unsigned store = cudaArraySurfaceLoadStore, layered = store | cudaArrayLayered;
  cudaArray_t arrays[] = {
      make_array(cudaCreateChannelDesc<int>(), make_cudaExtent(5, 0, 0), store),
      make_array(cudaCreateChannelDesc<uchar4>(), make_cudaExtent(5, 3, 0), store),
      make_array(cudaCreateChannelDesc<float>(), make_cudaExtent(5, 3, 2), store),
      make_array(cudaCreateChannelDesc<short>(), make_cudaExtent(5, 0, 2), layered),
      make_array(cudaCreateChannelDesc<int4>(), make_cudaExtent(5, 3, 2), layered)};
  cudaSurfaceObject_t s[5];
  for (int i = 0; i < 5; ++i) s[i] = surface(arrays[i]);
  int* wrong = device<int>(1);
  FINE(cudaMemset(wrong, 0, sizeof(int)));
  write_all<<<1, dim3(5, 3, 2)>>>(s[0], s[1], s[2], s[3], s[4]);
  read_all<<<1, dim3(5, 3, 2)>>>(s[0], s[1], s[2], s[3], s[4], wrong);
  CHECK(host(wrong, 1)[0] == 0);
  // What the host reads is what was stored.
  uchar4 bytes[15];
  FINE(cudaMemcpy2DFromArray(bytes, 20, arrays[1], 0, 0, 20, 3, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 15; ++i) CHECK(bytes[i].x == i / 5 * 10 + i % 5 && bytes[i].w == i % 5);
  cudaResourceDesc asked{};
  FINE(cudaGetSurfaceObjectResourceDesc(&asked, s[1]));
  CHECK(asked.resType == cudaResourceTypeArray && asked.res.array.array == arrays[1]);
  for (int i = 0; i < 5; ++i) {
    FINE(cudaDestroySurfaceObject(s[i]));
    FINE(cudaFreeArray(arrays[i]));
  }
  // 4 x 3 integers: 10 to 21.
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
  cudaArray_t a, plain;
  FINE(cudaMallocArray(&a, &desc, 4, 3, store));
  FINE(cudaMallocArray(&plain, &desc, 4, 3));
  int values[12];
  for (int i = 0; i < 12; ++i) values[i] = 10 + i;
  FINE(cudaMemcpy2DToArray(a, 0, 0, values, 16, 16, 3, cudaMemcpyHostToDevice));
  const cudaSurfaceObject_t t = surface(a);
  int* out = device<int>(9);
  outside<<<1, 1>>>(t, out);
  const std::vector<int> found = host(out, 4);
  CHECK(found[0] == 18 && found[1] == 21 && found[2] == 0 && found[3] == 0);
  FINE(cudaMemcpy2DFromArray(values, 16, a, 0, 0, 16, 3, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 12; ++i) CHECK(values[i] == (i == 1 ? 666 : 10 + i));
  FINE(cudaMemset(out, 0, 9 * sizeof(int)));
  for (int i = 0; i < 12; ++i) values[i] = i < 4 ? 100 : i < 8 ? -2000 : 0;
  FINE(cudaMemcpy2DToArray(a, 0, 0, values, 16, 16, 3, cudaMemcpyHostToDevice));
  cudaTextureObject_t texture;
  cudaTextureDesc how{};
  const cudaResourceDesc r = of_array(a);
  FINE(cudaCreateTextureObject(&texture, &r, &how, nullptr));
  by_hand<<<1, 32>>>(t, texture, out);
  const std::vector<int> answers = host(out, 9);
  CHECK(answers[0] == 4 && answers[1] == 3 && answers[2] == 4 && answers[3] == 3);
  CHECK(answers[4] == 1 && answers[5] == 0 && answers[6] == 0x10D9 && answers[7] == 4);
  CHECK(answers[8] == 11100);
  FINE(cudaMemcpy2DFromArray(values, 16, a, 0, 0, 16, 3, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4; ++i) {
    CHECK(values[i] == 108);
    CHECK(values[4 + i] == 28 + i - 1000);
    CHECK(values[8 + i] == 255);
  }
  const cudaResourceDesc cannot = of_array(plain);
  cudaSurfaceObject_t none;
  CHECK(cudaCreateSurfaceObject(&none, &cannot) == cudaErrorInvalidValue);
  FINE(cudaDestroyTextureObject(texture));
  CHECK(cudaDestroyTextureObject(texture) == cudaErrorInvalidValue);
  CHECK(cudaDestroyTextureObject(t) == cudaErrorInvalidValue);
  FINE(cudaDestroySurfaceObject(t));
  FINE(cudaFreeArray(a));
  FINE(cudaFreeArray(plain));
  FINE(cudaFree(out));
  FINE(cudaFree(wrong));
  cudaGetLastError();
}

// --- textures

__global__ void copy_out(cudaTextureObject_t t, float* out) {
  out[threadIdx.x] = tex2D<float>(t, static_cast<float>(threadIdx.x % 4) + 0.5f,
                                  static_cast<float>(threadIdx.x / 4) + 0.5f);
}
__global__ void copy_cube(cudaTextureObject_t t, int* out) {
  const float at[] = {1, -1};
  const int k = static_cast<int>(threadIdx.x);
  const float v = at[k % 2];
  out[k] = tex2DLayered<int>(t, 0.5f, 0.5f, k);
  out[6 + k] = k < 2   ? texCubemap<int>(t, v, 0.1f, 0.1f)
               : k < 4 ? texCubemap<int>(t, 0.1f, v, 0.1f)
                       : texCubemap<int>(t, 0.1f, 0.1f, v);
}

static void refusals() {
  const cudaChannelFormatDesc ints = cudaCreateChannelDesc<int>();
  int* memory = device<int>(64);
  cudaResourceDesc r{};
  r.resType = cudaResourceTypeLinear;
  r.res.linear = {memory, ints, 64 * sizeof(int)};
  cudaTextureDesc d{};
  cudaTextureObject_t t = 0;
  FINE(cudaCreateTextureObject(&t, &r, &d, nullptr));
  cudaTextureDesc asked{};
  FINE(cudaGetTextureObjectTextureDesc(&asked, t));
  CHECK(std::memcmp(&asked, &d, sizeof d) == 0);
  cudaResourceDesc resource{};
  FINE(cudaGetTextureObjectResourceDesc(&resource, t));
  CHECK(resource.res.linear.devPtr == memory && resource.res.linear.sizeInBytes == 256);
  FINE(cudaDestroyTextureObject(t));
  d.filterMode = cudaFilterModeLinear;
  CHECK(cudaCreateTextureObject(&t, &r, &d, nullptr) == cudaErrorInvalidFilterSetting);
  d.filterMode = cudaFilterModePoint;
  r.res.linear.sizeInBytes = 65 * sizeof(int);
  CHECK(cudaCreateTextureObject(&t, &r, &d, nullptr) == cudaErrorInvalidValue);
  r.res.linear.sizeInBytes = 64 * sizeof(int);
  r.res.linear.desc = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
  CHECK(cudaCreateTextureObject(&t, &r, &d, nullptr) == cudaErrorInvalidChannelDescriptor);
  cudaArray_t a;
  CHECK(cudaMallocArray(&a, &r.res.linear.desc, 4, 4) == cudaErrorInvalidChannelDescriptor);
  // A kind that says 8 bits and one channel.
  for (const int channels : {1, 2}) {
    const cudaChannelFormatDesc other =
        cudaCreateChannelDesc(channels == 1 ? 32 : 8, channels == 1 ? 0 : 8, 0, 0,
                              cudaChannelFormatKindUnsignedNormalized8X1);
    CHECK(cudaMallocArray(&a, &other, 4, 4) == cudaErrorInvalidChannelDescriptor);
  }
  CHECK(cudaMalloc3DArray(&a, &ints, make_cudaExtent(4, 4, 5), cudaArrayCubemap) ==
        cudaErrorInvalidValue);
  CHECK(cudaMallocArray(&a, &ints, 0, 4) == cudaErrorInvalidValue);
  r.res.linear.desc = ints;
  std::vector<cudaTextureObject_t> many;
  cudaError_t status = cudaSuccess;
  while (status == cudaSuccess && many.size() < 100000)
    if (status = cudaCreateTextureObject(&t, &r, &d, nullptr); status == cudaSuccess)
      many.push_back(t);
  CHECK(status == cudaErrorMemoryAllocation);
  for (const cudaTextureObject_t each : many) FINE(cudaDestroyTextureObject(each));
  r = of_array(reinterpret_cast<cudaArray_t>(memory));
  CHECK(cudaCreateTextureObject(&t, &r, &d, nullptr) == cudaErrorInvalidResourceHandle);
  FINE(cudaFree(memory));
  cudaGetLastError();
}

static void views_and_cubes() {
  // Six faces as layers and as a cube; a view of the last two.
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
  cudaArray_t a = make_array(desc, make_cudaExtent(2, 2, 6), cudaArrayCubemap);
  int faces[24];
  for (int i = 0; i < 24; ++i) faces[i] = i / 4 + 1;
  cudaMemcpy3DParms p{};
  p.srcPtr = make_cudaPitchedPtr(faces, 8, 2, 2);
  p.dstArray = a;
  p.extent = make_cudaExtent(2, 2, 6);
  p.kind = cudaMemcpyHostToDevice;
  FINE(cudaMemcpy3D(&p));
  cudaResourceDesc r = of_array(a);
  cudaTextureDesc d{};
  d.normalizedCoords = 1;
  cudaTextureObject_t t;
  FINE(cudaCreateTextureObject(&t, &r, &d, nullptr));
  int* out = device<int>(12);
  copy_cube<<<1, 6>>>(t, out);
  std::vector<int> found = host(out, 12);
  for (int i = 0; i < 12; ++i) CHECK(found[static_cast<size_t>(i)] == i % 6 + 1);
  FINE(cudaDestroyTextureObject(t));
  cudaResourceViewDesc view{};
  view.format = cudaResViewFormatSignedInt1;
  view.width = 2;
  view.height = 2;
  view.depth = 2;
  view.firstLayer = 4;
  view.lastLayer = 5;
  FINE(cudaCreateTextureObject(&t, &r, &d, &view));
  copy_cube<<<1, 6>>>(t, out);
  found = host(out, 2);
  CHECK(found[0] == 5 && found[1] == 6);
  cudaResourceViewDesc asked{};
  FINE(cudaGetTextureObjectResourceViewDesc(&asked, t));
  CHECK(asked.firstLayer == 4);
  FINE(cudaDestroyTextureObject(t));
  view.format = cudaResViewFormatSignedInt2;
  CHECK(cudaCreateTextureObject(&t, &r, &d, &view) == cudaErrorInvalidValue);
  cudaGetLastError();
  FINE(cudaFreeArray(a));
  FINE(cudaFree(out));
}

static void driver() {
  CUDA_ARRAY_DESCRIPTOR desc{4, 3, CU_AD_FORMAT_HALF, 1}, got{};
  CUarray a;
  GOOD(cuArrayCreate(&a, &desc));
  GOOD(cuArrayGetDescriptor(&got, a));
  CHECK(got.Width == 4 && got.Height == 3 && got.Format == CU_AD_FORMAT_HALF);
  CHECK(got.NumChannels == 1);
  __half halves[20];
  for (int i = 0; i < 20; ++i) halves[i] = __float2half(static_cast<float>(i) * 0.25f);
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = halves;
  c.srcXInBytes = 2;
  c.srcPitch = 10;
  c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  c.dstArray = a;
  c.WidthInBytes = 8;
  c.Height = 3;
  GOOD(cuMemcpy2D(&c));
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_ARRAY;
  r.res.array.hArray = a;
  CUDA_TEXTURE_DESC d{}, asked{};
  d.addressMode[0] = d.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
  CUtexObject t;
  GOOD(cuTexObjectCreate(&t, &r, &d, nullptr));
  GOOD(cuTexObjectGetTextureDesc(&asked, t));
  CHECK(std::memcmp(&asked, &d, sizeof d) == 0);
  float* out = device<float>(12);
  copy_out<<<1, 12>>>(t, out);
  std::vector<float> found = host(out, 12);
  for (int i = 0; i < 12; ++i)
    CHECK(found[static_cast<size_t>(i)] == 0.25f * static_cast<float>(i / 4 * 5 + i % 4 + 1));
  GOOD(cuTexObjectDestroy(t));
  GOOD(cuArrayDestroy(a));
  CHECK(cuArrayDestroy(a) == CUDA_ERROR_INVALID_HANDLE);
  // Bytes are floats up to 1 unless they are read as integers.
  unsigned char bytes[64] = {};
  for (int i = 0; i < 12; ++i) bytes[i / 4 * 16 + i % 4] = static_cast<unsigned char>(i * 20);
  CUdeviceptr memory;
  size_t pitch = 0;
  void* rows = nullptr;
  FINE(cudaMallocPitch(&rows, &pitch, 4, 3));
  memory = reinterpret_cast<CUdeviceptr>(rows);
  c = {};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = bytes;
  c.srcPitch = 16;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = memory;
  c.dstPitch = pitch;
  c.WidthInBytes = 4;
  c.Height = 3;
  GOOD(cuMemcpy2D(&c));
  c.srcPitch = size_t{1} << 62;
  c.srcY = 4;  // 2^64 bytes behind the first row
  c.Height = 1;
  CHECK(cuMemcpy2D(&c) == CUDA_ERROR_INVALID_VALUE);
  r = {};
  r.resType = CU_RESOURCE_TYPE_PITCH2D;
  r.res.pitch2D.devPtr = memory;
  r.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
  r.res.pitch2D.numChannels = 1;
  r.res.pitch2D.width = 4;
  r.res.pitch2D.height = 3;
  r.res.pitch2D.pitchInBytes = pitch;
  GOOD(cuTexObjectCreate(&t, &r, &d, nullptr));
  copy_out<<<1, 12>>>(t, out);
  found = host(out, 12);
  for (int i = 0; i < 12; ++i)
    CHECK(found[static_cast<size_t>(i)] == static_cast<float>(i * 20) / 255.0f);
  GOOD(cuTexObjectDestroy(t));
  GOOD(cuMemFree(memory));
  // Three dimensions, and levels.
  CUDA_ARRAY3D_DESCRIPTOR large{8, 4, 2, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray levels;
  CUarray second;
  GOOD(cuMipmappedArrayCreate(&levels, &large, 9));
  GOOD(cuMipmappedArrayGetLevel(&second, levels, 1));
  GOOD(cuArray3DGetDescriptor(&large, second));
  CHECK(large.Width == 4 && large.Height == 2 && large.Depth == 1);
  GOOD(cuMipmappedArrayGetLevel(&second, levels, 3));
  CHECK(cuMipmappedArrayGetLevel(&second, levels, 4) == CUDA_ERROR_INVALID_VALUE);
  GOOD(cuMipmappedArrayDestroy(levels));
  FINE(cudaFree(out));
}

int main() {
  copies();
  surfaces();
  refusals();
  views_and_cubes();
  driver();
  return finish();
}
