// Fetches from textures that a file describes, for texture_model.py.  usage: texels IN OUT
// The file: cases one after the other, each a Head, the texels of all levels, and Places.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "check.h"

struct Head {
  int32_t resource, kind, bits, channels, width, height, depth, flags, levels;
  int32_t normalized, filter, mip_filter, modes[3], read_mode, srgb;
  float border[4], bias, least, most;
  int32_t op, count;
};
struct Place {
  float x, y, z;
  int32_t layer;
  float level, dx[3], dy[3];
  int32_t i;
};

enum Op {
  k1d,
  k2d,
  k3d,
  kLayers1d,
  kLayers2d,
  kCube,
  kCubes,
  kFetch,
  kLevel = 16,
  kGrad = 32,
  kGather = 64
};

__device__ uint4 bits_of(float4 v) {
  return make_uint4(__float_as_uint(v.x), __float_as_uint(v.y), __float_as_uint(v.z),
                    __float_as_uint(v.w));
}
__device__ uint4 bits_of(int4 v) {
  return make_uint4(static_cast<unsigned>(v.x), static_cast<unsigned>(v.y),
                    static_cast<unsigned>(v.z), static_cast<unsigned>(v.w));
}
__device__ uint4 bits_of(uint4 v) { return v; }

template <typename T>
__device__ T fetch(cudaTextureObject_t t, int op, const Place& p) {
  const float2 dx = make_float2(p.dx[0], p.dx[1]), dy = make_float2(p.dy[0], p.dy[1]);
  switch (op) {
    case k1d:
      return tex1D<T>(t, p.x);
    case k2d:
      return tex2D<T>(t, p.x, p.y);
    case k3d:
      return tex3D<T>(t, p.x, p.y, p.z);
    case kLayers1d:
      return tex1DLayered<T>(t, p.x, p.layer);
    case kLayers2d:
      return tex2DLayered<T>(t, p.x, p.y, p.layer);
    case kCube:
      return texCubemap<T>(t, p.x, p.y, p.z);
    case kCubes:
      return texCubemapLayered<T>(t, p.x, p.y, p.z, p.layer);
    case kFetch:
      return tex1Dfetch<T>(t, p.i);
    case kLevel + k1d:
      return tex1DLod<T>(t, p.x, p.level);
    case kLevel + k2d:
      return tex2DLod<T>(t, p.x, p.y, p.level);
    case kLevel + k3d:
      return tex3DLod<T>(t, p.x, p.y, p.z, p.level);
    case kLevel + kLayers1d:
      return tex1DLayeredLod<T>(t, p.x, p.layer, p.level);
    case kLevel + kLayers2d:
      return tex2DLayeredLod<T>(t, p.x, p.y, p.layer, p.level);
    case kLevel + kCube:
      return texCubemapLod<T>(t, p.x, p.y, p.z, p.level);
    case kLevel + kCubes:
      return texCubemapLayeredLod<T>(t, p.x, p.y, p.z, p.layer, p.level);
    case kGrad + k1d:
      return tex1DGrad<T>(t, p.x, p.dx[0], p.dy[0]);
    case kGrad + k2d:
      return tex2DGrad<T>(t, p.x, p.y, dx, dy);
    case kGrad + k3d:
      return tex3DGrad<T>(t, p.x, p.y, p.z, make_float4(p.dx[0], p.dx[1], p.dx[2], 0),
                          make_float4(p.dy[0], p.dy[1], p.dy[2], 0));
    case kGrad + kLayers1d:
      return tex1DLayeredGrad<T>(t, p.x, p.layer, p.dx[0], p.dy[0]);
    case kGrad + kLayers2d:
      return tex2DLayeredGrad<T>(t, p.x, p.y, p.layer, dx, dy);
    case kGather:
      return tex2Dgather<T>(t, p.x, p.y, 0);
    case kGather + 1:
      return tex2Dgather<T>(t, p.x, p.y, 1);
    case kGather + 2:
      return tex2Dgather<T>(t, p.x, p.y, 2);
    case kGather + 3:
      return tex2Dgather<T>(t, p.x, p.y, 3);
    default:
      return T{};
  }
}

template <typename T>
__global__ void fetch_all(cudaTextureObject_t t, int op, const Place* places, uint4* out, int n) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k < n) out[k] = bits_of(fetch<T>(t, op, places[k]));
}

static size_t halved(int size, int level) {
  const int half = size >> level;
  return static_cast<size_t>(size == 0 ? 0 : half == 0 ? 1 : half);
}

struct Memory {
  cudaArray_t array = nullptr;
  cudaMipmappedArray_t levels = nullptr;
  void* linear = nullptr;
};

// The resource, filled from `texels`, which is moved on behind them.
static cudaResourceDesc make(const Head& h, const char*& texels, Memory& memory) {
  const int b = h.bits, c = h.channels;
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc(
      b, c > 1 ? b : 0, c > 2 ? b : 0, c > 2 ? b : 0, static_cast<cudaChannelFormatKind>(h.kind));
  const size_t texel = static_cast<size_t>(b * c / 8);
  cudaResourceDesc r{};
  const size_t row = static_cast<size_t>(h.width) * texel;
  if (h.resource == cudaResourceTypeLinear) {
    FINE(cudaMalloc(&memory.linear, row));
    FINE(cudaMemcpy(memory.linear, texels, row, cudaMemcpyHostToDevice));
    texels += row;
    r.resType = cudaResourceTypeLinear;
    r.res.linear = {memory.linear, desc, row};
    return r;
  }
  if (h.resource == cudaResourceTypePitch2D) {
    size_t pitch = 0;
    const auto height = static_cast<size_t>(h.height);
    FINE(cudaMallocPitch(&memory.linear, &pitch, row, height));
    FINE(cudaMemcpy2D(memory.linear, pitch, texels, row, row, height, cudaMemcpyHostToDevice));
    texels += row * height;
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D = {memory.linear, desc, static_cast<size_t>(h.width), height, pitch};
    return r;
  }
  const cudaExtent extent{static_cast<size_t>(h.width), static_cast<size_t>(h.height),
                          static_cast<size_t>(h.depth)};
  const auto flags = static_cast<unsigned>(h.flags);
  if (h.resource == cudaResourceTypeMipmappedArray) {
    FINE(cudaMallocMipmappedArray(&memory.levels, &desc, extent, static_cast<unsigned>(h.levels),
                                  flags));
    r.resType = cudaResourceTypeMipmappedArray;
    r.res.mipmap.mipmap = memory.levels;
  } else {
    FINE(cudaMalloc3DArray(&memory.array, &desc, extent, flags));
    r.resType = cudaResourceTypeArray;
    r.res.array.array = memory.array;
  }
  for (int level = 0; level < h.levels; ++level) {
    const size_t width = halved(h.width, level), height = halved(h.height, level);
    const bool has_layers = (flags & (cudaArrayLayered | cudaArrayCubemap)) != 0;
    const size_t depth = has_layers ? extent.depth : halved(h.depth, level);
    const size_t rows = height == 0 ? 1 : height, slices = depth == 0 ? 1 : depth;
    cudaMemcpy3DParms p{};
    p.srcPtr = make_cudaPitchedPtr(const_cast<char*>(texels), width * texel, width, rows);
    p.dstArray = memory.array;
    if (memory.levels != nullptr)
      FINE(cudaGetMipmappedArrayLevel(&p.dstArray, memory.levels, static_cast<unsigned>(level)));
    p.extent = {width, rows, slices};
    p.kind = cudaMemcpyHostToDevice;
    FINE(cudaMemcpy3D(&p));
    texels += width * rows * slices * texel;
  }
  return r;
}

static void run(const Head& h, const char*& at, std::vector<uint4>& results) {
  Memory memory;
  const cudaResourceDesc resource = make(h, at, memory);
  cudaTextureDesc d{};
  for (int k = 0; k < 3; ++k) d.addressMode[k] = static_cast<cudaTextureAddressMode>(h.modes[k]);
  for (int k = 0; k < 4; ++k) d.borderColor[k] = h.border[k];
  d.filterMode = static_cast<cudaTextureFilterMode>(h.filter);
  d.readMode = static_cast<cudaTextureReadMode>(h.read_mode);
  d.sRGB = h.srgb;
  d.normalizedCoords = h.normalized;
  d.mipmapFilterMode = static_cast<cudaTextureFilterMode>(h.mip_filter);
  d.mipmapLevelBias = h.bias;
  d.minMipmapLevelClamp = h.least;
  d.maxMipmapLevelClamp = h.most;
  cudaTextureObject_t texture = 0;
  FINE(cudaCreateTextureObject(&texture, &resource, &d, nullptr));
  const auto count = static_cast<size_t>(h.count);
  Place* places = nullptr;
  uint4* out = nullptr;
  FINE(cudaMalloc(&places, count * sizeof(Place)));
  FINE(cudaMalloc(&out, count * sizeof(uint4)));
  FINE(cudaMemcpy(places, at, count * sizeof(Place), cudaMemcpyHostToDevice));
  at += count * sizeof(Place);
  const unsigned blocks = static_cast<unsigned>(count + 63) / 64;
  if (h.kind == cudaChannelFormatKindFloat || h.read_mode == cudaReadModeNormalizedFloat)
    fetch_all<float4><<<blocks, 64>>>(texture, h.op, places, out, h.count);
  else if (h.kind == cudaChannelFormatKindSigned)
    fetch_all<int4><<<blocks, 64>>>(texture, h.op, places, out, h.count);
  else
    fetch_all<uint4><<<blocks, 64>>>(texture, h.op, places, out, h.count);
  FINE(cudaGetLastError());
  const size_t before = results.size();
  results.resize(before + count);
  FINE(cudaMemcpy(results.data() + before, out, count * sizeof(uint4), cudaMemcpyDeviceToHost));
  FINE(cudaDestroyTextureObject(texture));
  FINE(cudaFree(places));
  FINE(cudaFree(out));
  FINE(cudaFree(memory.linear));
  FINE(cudaFreeArray(memory.array));
  FINE(cudaFreeMipmappedArray(memory.levels));
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream in(argv[1], std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<uint4> results;
  const char* at = bytes.data();
  while (at < bytes.data() + bytes.size()) {
    Head h;
    std::memcpy(&h, at, sizeof h);
    at += sizeof h;
    run(h, at, results);
  }
  std::ofstream out(argv[2], std::ios::binary);
  out.write(reinterpret_cast<const char*>(results.data()),
            static_cast<std::streamsize>(results.size() * sizeof(uint4)));
  return finish();
}
