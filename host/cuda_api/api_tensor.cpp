// Driver API: tensor maps (cuTensorMap*). What has to hold of arguments is in cuda.h's text.
#include <cstring>

#include "host/cuda_api/driver.h"
#include "host/ptx/tensor_map.h"

using namespace gpusim::cuda_api;
using gpusim::ptx::TensorMap;
using gpusim::ptx::TensorType;

namespace {

constexpr uint64_t kMostSize = uint64_t{1} << 32, kMostStride = uint64_t{1} << 40;
constexpr uint32_t kMostBox = 256, kMostStep = 8, kChunk = 16;

struct TiledArguments {
  int type;
  uint32_t rank;
  void* address;
  const uint64_t *sizes, *strides;
  const uint32_t *box, *steps;
  int interleave, swizzle, promotion, fill;
};

TensorMap tiled_map(const TiledArguments& a) {
  require(runtime().chip().compute_capability >= 90, kNotSupported);
  require(a.type >= 0 && a.type <= 15 && a.rank >= 1 && a.rank <= TensorMap::kMostRank);
  require(a.sizes != nullptr && a.box != nullptr && a.steps != nullptr &&
          (a.strides != nullptr || a.rank == 1));
  require(a.interleave >= 0 && a.interleave <= 2 && a.swizzle >= 0 && a.swizzle <= 6 &&
          a.promotion >= 0 && a.promotion <= 3 && a.fill >= 0 && a.fill <= 1);
  if (a.type >= static_cast<int>(gpusim::ptx::kTensorTypes) || a.interleave != 0 || a.swizzle > 3) {
    say("cuTensorMapEncodeTiled: types that flush, round or are packed, interleaved layouts and "
        "swizzles of atoms are not supported: use plain types, no interleaving, and swizzles of "
        "32, 64 or 128 bytes");
    refuse(kNotSupported);
  }
  TensorMap map;
  map.rank = static_cast<uint8_t>(a.rank);
  map.type = static_cast<TensorType>(a.type);
  map.swizzle = static_cast<uint8_t>(a.swizzle);
  map.fills_nan = static_cast<uint8_t>(a.fill);
  require(a.fill == 0 || is_float(map.type));
  map.address = reinterpret_cast<uintptr_t>(a.address);
  require(map.address % kChunk == 0);
  for (uint32_t d = 0; d < a.rank; ++d) {
    require(a.sizes[d] >= 1 && a.sizes[d] <= kMostSize);
    map.last[d] = static_cast<uint32_t>(a.sizes[d] - 1);
    require(a.box[d] >= 1 && a.box[d] <= kMostBox && a.steps[d] >= 1 && a.steps[d] <= kMostStep);
    map.box[d] = static_cast<uint16_t>(a.box[d]);
    map.step[d] = d == 0 ? uint8_t{1} : static_cast<uint8_t>(a.steps[d]);
    if (d + 1 == a.rank) break;
    require(a.strides[d] % kChunk == 0 && a.strides[d] < kMostStride);
    map.stride_bytes[d] = a.strides[d];
  }
  const uint32_t inner = a.box[0] * bytes_of(map.type);
  require(inner % kChunk == 0 && (a.swizzle == 0 || inner <= kChunk << a.swizzle));
  return map;
}

}  // namespace

GPUSIM_CUDA_API int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address,
                                           const uint64_t* sizes, const uint64_t* strides,
                                           const uint32_t* box, const uint32_t* steps,
                                           int interleave, int swizzle, int promotion, int fill) {
  return driver_call("cuTensorMapEncodeTiled", [&] {
    require(map != nullptr && reinterpret_cast<uintptr_t>(map) % 64 == 0);
    tiled_map({.type = type,
               .rank = rank,
               .address = address,
               .sizes = sizes,
               .strides = strides,
               .box = box,
               .steps = steps,
               .interleave = interleave,
               .swizzle = swizzle,
               .promotion = promotion,
               .fill = fill})
        .write(map);
  });
}
GPUSIM_CUDA_API int cuTensorMapReplaceAddress(void* map, void* address) {
  return driver_call("cuTensorMapReplaceAddress", [&] {
    require(map != nullptr && reinterpret_cast<uintptr_t>(address) % kChunk == 0);
    auto changed = TensorMap::read(map);
    require(changed.has_value());
    changed->address = reinterpret_cast<uintptr_t>(address);
    changed->write(map);
  });
}
