// Tensor maps: what cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col leave in 128 bytes that
// programs hand on, and cp.async.bulk.tensor reads. NVIDIA does not say what is in them; this
// layout is our own.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

namespace gpusim::ptx {

// The numbers of enum CUtensorMapDataType.
enum class TensorType : uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF64,
  kBf16,
};
inline constexpr uint32_t kTensorTypes = 10;  // those behind them are refused
constexpr uint32_t bytes_of(TensorType t) {
  constexpr uint8_t kBytes[kTensorTypes] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  return kBytes[static_cast<size_t>(t)];
}
constexpr bool is_float(TensorType t) {
  return t == TensorType::kF16 || t == TensorType::kF32 || t == TensorType::kF64 ||
         t == TensorType::kBf16;
}

struct TensorMap {
  static constexpr uint64_t kMark = 0x7061'4d72'6f73'6e54;
  static constexpr uint32_t kMostRank = 5, kBytes = 128;

  uint64_t mark = kMark;
  uint64_t address = 0;
  std::array<uint64_t, kMostRank - 1> stride_bytes{};  // of dimensions 1 and on
  std::array<uint32_t, kMostRank> last{};              // sizes of the tensor, less one
  std::array<uint16_t, kMostRank> box{};               // elements to be traversed
  std::array<uint8_t, kMostRank> step{};               // of which each step-th is taken
  uint8_t rank = 1;
  TensorType type = TensorType::kU8;
  uint8_t swizzle = 0;  // 1, 2, 3: of 16-byte chunks within 32, 64, 128 bytes
  uint8_t fills_nan = 0;
  // Of images (im2col): dimensions are channels, then W, H and D, and images. Pixels between
  // corners, which are counted from the first and from the last pixel, follow each other, image by
  // image.
  uint8_t is_of_images = 0;
  std::array<int16_t, kMostRank - 2> lower{}, upper{};
  uint16_t channels = 0, pixels = 0;  // of a box

  uint32_t count(uint32_t dimension) const {
    return (box[dimension] + step[dimension] - 1u) / step[dimension];
  }
  uint32_t row_elements() const { return is_of_images != 0 ? channels : count(0); }
  // Of a box in shared memory.
  uint64_t box_bytes() const {
    uint64_t bytes = bytes_of(type);
    if (is_of_images != 0) return bytes * channels * pixels;
    for (uint32_t d = 0; d < rank; ++d) bytes *= count(d);
    return bytes;
  }
  // Where a byte of shared memory goes: chunks of 16 bytes change places within rows of 128.
  uint64_t swizzled(uint64_t address_in_cta) const {
    const uint64_t row = address_in_cta >> 7;
    const uint64_t chunk = swizzle == 0   ? 0
                           : swizzle == 1 ? row & 1
                           : swizzle == 2 ? row & 3
                                          : row & 7;
    return address_in_cta ^ chunk << 4;
  }

  void write(void* to) const {
    std::memset(to, 0, kBytes);
    std::memcpy(to, this, sizeof *this);
  }
  // Nothing: it is none.
  static std::optional<TensorMap> read(const void* from) {
    TensorMap map;
    std::memcpy(&map, from, sizeof map);
    const bool is_one = map.mark == kMark && map.rank >= 1 && map.rank <= kMostRank &&
                        static_cast<uint32_t>(map.type) < kTensorTypes && map.swizzle <= 3;
    if (!is_one) return std::nullopt;
    if (map.is_of_images != 0 && (map.rank < 3 || map.channels == 0 || map.pixels == 0))
      return std::nullopt;
    for (uint32_t d = 0; d < map.rank; ++d)
      if ((map.is_of_images == 0 && map.box[d] == 0) || map.step[d] == 0) return std::nullopt;
    return map;
  }
};
static_assert(std::is_trivially_copyable_v<TensorMap> && sizeof(TensorMap) <= TensorMap::kBytes);

}  // namespace gpusim::ptx
