// The operands of the helpers for textures and surfaces (uir/helpers_texture.h).
//
// Coordinates and levels are the low 32 bits of registers. xy holds x below y, z_and_level z below
// the level; of handles the low 48 bits count, a layer stands above them.
#pragma once
#include <cstdint>

namespace gpusim::textures {

enum class Geometry : uint8_t { k1d, k2d, k3d, k1dLayers, k2dLayers, kCube, kCubeLayers };

constexpr int dimensions_of(Geometry g) {
  switch (g) {
    case Geometry::k1d:
    case Geometry::k1dLayers:
      return 1;
    case Geometry::k2d:
    case Geometry::k2dLayers:
      return 2;
    default:
      return 3;
  }
}
constexpr bool has_layers(Geometry g) {
  return g == Geometry::k1dLayers || g == Geometry::k2dLayers || g == Geometry::kCubeLayers;
}

inline constexpr int kLayerShift = 48;
inline constexpr uint64_t kHandleMask = (uint64_t{1} << kLayerShift) - 1;
inline constexpr uint64_t kMostLayer = 0xffff;

/// One word of what a fetch or a gathering gives.
struct TextureOp {
  Geometry geometry = Geometry::k1d;
  bool is_integer = false;  // coordinates
  bool has_level = false;   // else the first one
  bool gathers = false;     // `component` of the footprint's texel number `texel`
  uint8_t component = 0, texel = 0;

  constexpr uint64_t pack() const {
    return uint64_t{static_cast<uint8_t>(geometry)} | uint64_t{is_integer} << 3 |
           uint64_t{has_level} << 4 | uint64_t{gathers} << 5 | uint64_t{component} << 6 |
           uint64_t{texel} << 8;
  }
  static constexpr TextureOp unpack(uint64_t word) {
    return {static_cast<Geometry>(word & 7),
            (word >> 3 & 1) != 0,
            (word >> 4 & 1) != 0,
            (word >> 5 & 1) != 0,
            static_cast<uint8_t>(word >> 6 & 3),
            static_cast<uint8_t>(word >> 8 & 3)};
  }
};

/// What is outside of a surface: a fault, the nearest place inside, or nothing.
enum class Outside : uint8_t { kTrap, kClamp, kZero };

/// Where a surface's element lies. x counts bytes.
struct SurfaceOp {
  Geometry geometry = Geometry::k1d;
  Outside outside = Outside::kTrap;
  bool is_store = false;
  uint8_t bytes = 1;  // of the access

  constexpr uint64_t pack() const {
    return uint64_t{static_cast<uint8_t>(geometry)} | uint64_t{static_cast<uint8_t>(outside)} << 3 |
           uint64_t{is_store} << 5 | uint64_t{bytes} << 8;
  }
  static constexpr SurfaceOp unpack(uint64_t word) {
    return {static_cast<Geometry>(word & 7), static_cast<Outside>(word >> 3 & 3),
            (word >> 5 & 1) != 0, static_cast<uint8_t>(word >> 8)};
  }
};

/// What texture_object asks for: added to it, kAsks: whether it is one, 0 or 1.
enum class ObjectKind : uint8_t { kTexture, kSurface };
inline constexpr uint64_t kAsks = 2;  // added to the kind: is it one?

/// What texture_query asks for.
enum class TextureQuery : uint8_t {
  kWidth,
  kHeight,
  kDepth,
  kChannelType,
  kChannelOrder,
  kNormalized,
  kLayers,
  kLevels,
  kSamples,
  kMemoryLayout,
};

}  // namespace gpusim::textures
