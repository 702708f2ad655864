// Driver API: tensor maps (cuTensorMap*). What has to hold of arguments is in cuda.h's text.
#include <fmt/format.h>

#include <cstdint>

#include "host/cuda_api/driver.h"
#include "host/ptx/tensor_map.h"

using namespace gpusim::cuda_api;
using gpusim::ptx::TensorMap;
using gpusim::ptx::TensorType;

namespace {

constexpr uint64_t kMostSize = uint64_t{1} << 32, kMostStride = uint64_t{1} << 40;
constexpr uint32_t kMostBox = 256, kMostStep = 8, kChunk = 16, kMostPixels = 1024;

struct TensorArguments {
  const char* name;  // of the function
  int type;
  uint32_t rank;
  void* address;
  const uint64_t *sizes, *strides;
  const uint32_t* steps;
  int interleave, swizzle, promotion, fill;
};

// What maps of both kinds have.
TensorMap tensor_map(const TensorArguments& a) {
  require(runtime().chip().compute_capability >= 90, kNotSupported);
  require(a.type >= 0 && a.type <= 15 && a.rank >= 1 && a.rank <= TensorMap::kMostRank);
  require(a.sizes != nullptr && a.steps != nullptr && (a.strides != nullptr || a.rank == 1));
  require(a.interleave >= 0 && a.interleave <= 2 && a.swizzle >= 0 && a.swizzle <= 6 &&
          a.promotion >= 0 && a.promotion <= 3 && a.fill >= 0 && a.fill <= 1);
  if (a.type >= static_cast<int>(gpusim::ptx::kTensorTypes) || a.interleave != 0 || a.swizzle > 3) {
    say(
        fmt::format("{}: types that flush, round or are packed, interleaved layouts and swizzles "
                    "of atoms are not supported: use plain types, no interleaving, and swizzles of "
                    "32, 64 or 128 bytes",
                    a.name));
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
    require(a.steps[d] >= 1 && a.steps[d] <= kMostStep);
    map.step[d] = d == 0 ? uint8_t{1} : static_cast<uint8_t>(a.steps[d]);
    if (d + 1 == a.rank) break;
    require(a.strides[d] % kChunk == 0 && a.strides[d] < kMostStride);
    map.stride_bytes[d] = a.strides[d];
  }
  return map;
}

// Bytes next to each other in shared memory.
void check_row(const TensorMap& map, uint64_t elements) {
  const uint64_t bytes = elements * bytes_of(map.type);
  require(bytes % kChunk == 0 && (map.swizzle == 0 || bytes <= uint64_t{kChunk} << map.swizzle));
}

}  // namespace

GPUSIM_CUDA_API int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address,
                                           const uint64_t* sizes, const uint64_t* strides,
                                           const uint32_t* box, const uint32_t* steps,
                                           int interleave, int swizzle, int promotion, int fill) {
  return driver_call("cuTensorMapEncodeTiled", [&] {
    require(map != nullptr && reinterpret_cast<uintptr_t>(map) % 64 == 0 && box != nullptr);
    TensorMap made = tensor_map({.name = "cuTensorMapEncodeTiled",
                                 .type = type,
                                 .rank = rank,
                                 .address = address,
                                 .sizes = sizes,
                                 .strides = strides,
                                 .steps = steps,
                                 .interleave = interleave,
                                 .swizzle = swizzle,
                                 .promotion = promotion,
                                 .fill = fill});
    for (uint32_t d = 0; d < rank; ++d) {
      require(box[d] >= 1 && box[d] <= kMostBox);
      made.box[d] = static_cast<uint16_t>(box[d]);
    }
    check_row(made, box[0]);
    made.write(map);
  });
}
// Corners have one number for each of W, H and D, in the order of the tensor's dimensions.
GPUSIM_CUDA_API int cuTensorMapEncodeIm2col(void* map, int type, uint32_t rank, void* address,
                                            const uint64_t* sizes, const uint64_t* strides,
                                            const int* lower, const int* upper, uint32_t channels,
                                            uint32_t pixels, const uint32_t* steps, int interleave,
                                            int swizzle, int promotion, int fill) {
  return driver_call("cuTensorMapEncodeIm2col", [&] {
    require(map != nullptr && reinterpret_cast<uintptr_t>(map) % 64 == 0 && lower != nullptr &&
            upper != nullptr && rank >= 3);
    TensorMap made = tensor_map({.name = "cuTensorMapEncodeIm2col",
                                 .type = type,
                                 .rank = rank,
                                 .address = address,
                                 .sizes = sizes,
                                 .strides = strides,
                                 .steps = steps,
                                 .interleave = interleave,
                                 .swizzle = swizzle,
                                 .promotion = promotion,
                                 .fill = fill});
    made.is_of_images = 1;
    const int most = rank == 3 ? 32767 : rank == 4 ? 127 : 15;
    for (uint32_t d = 0; d < rank - 2; ++d) {
      for (const int corner : {lower[d], upper[d]}) require(corner >= -most - 1 && corner <= most);
      require(int64_t{made.last[d + 1]} + upper[d] >= lower[d]);  // pixels are between them
      made.lower[d] = static_cast<int16_t>(lower[d]);
      made.upper[d] = static_cast<int16_t>(upper[d]);
    }
    require(channels >= 1 && channels <= kMostBox && pixels >= 1 && pixels <= kMostPixels);
    made.channels = static_cast<uint16_t>(channels);
    made.pixels = static_cast<uint16_t>(pixels);
    check_row(made, channels);
    made.write(map);
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
