// What the helpers for textures and surfaces compute (uir/helpers_texture.h). They take any
// operands: those that name no object have results, too.
#pragma once
#include <algorithm>

#include "device_sim/uir/textures/sample.h"

namespace gpusim::textures {

GPUSIM_HD inline std::array<uint32_t, 3> three(uint64_t xy, uint64_t z) {
  return {static_cast<uint32_t>(xy), static_cast<uint32_t>(xy >> 32), static_cast<uint32_t>(z)};
}

GPUSIM_HD_NOINLINE uint64_t object(Room room, uint64_t handle, uint64_t what) {
  const auto kind = static_cast<ObjectKind>(what & 1);
  const bool is_there = room.find(kind, handle) != nullptr;
  if (what >= kAsks) return is_there ? 1 : 0;
  return is_there ? handle : no_object(handle);
}

GPUSIM_HD_NOINLINE uint64_t query(Room room, uint64_t handle, uint64_t level, uint64_t what) {
  const TextureObject* t = room.find(ObjectKind::kTexture, handle);
  if (t == nullptr) t = room.find(ObjectKind::kSurface, handle);
  if (t == nullptr) return 0;
  const TextureLevel& l =
      t->levels[std::min<uint64_t>(static_cast<uint32_t>(level), t->level_count - 1)];
  switch (static_cast<TextureQuery>(what)) {
    case TextureQuery::kWidth:
      return l.width;
    case TextureQuery::kHeight:
      return l.height;
    case TextureQuery::kDepth:
      return l.depth;
    case TextureQuery::kChannelType: {
      // OpenCL's numbers, which PTX names: SNORM_INT8 0x10D0, UNORM_INT8 0x10D2, SIGNED_INT8
      // 0x10D7, UNSIGNED_INT8 0x10DA, HALF_FLOAT 0x10DD, FLOAT 0x10DE.
      const auto size = static_cast<uint64_t>(std::bit_width(uint32_t{t->channel_bits}) - 4);
      if (t->kind == ChannelKind::kFloat) return 0x10DD + (size == 1 ? 0 : 1);
      if (t->reads_normalized) return (t->kind == ChannelKind::kSigned ? 0x10D0 : 0x10D2) + size;
      return (t->kind == ChannelKind::kSigned ? 0x10D7 : 0x10DA) + size;
    }
    case TextureQuery::kChannelOrder:  // R 0x10B0, RG 0x10B2, RGBA 0x10B5
      return t->channels == 1 ? 0x10B0 : t->channels == 2 ? 0x10B2 : 0x10B5;
    case TextureQuery::kNormalized:
      return t->is_normalized ? 1 : 0;
    case TextureQuery::kLayers:
      return t->layers;
    case TextureQuery::kLevels:
      return t->level_count;
    case TextureQuery::kSamples:
      return 1;
    default:
      return 0;
  }
}

GPUSIM_HD_NOINLINE uint64_t level(Room room, uint64_t xy, uint64_t z, uint64_t handle) {
  const TextureObject* const t = room.find(ObjectKind::kTexture, handle & kHandleMask);
  if (t == nullptr) return 0;
  const std::array<uint32_t, 3> bits = three(xy, z);
  return std::bit_cast<uint32_t>(
      level_for(*t, {std::bit_cast<float>(bits[0]), std::bit_cast<float>(bits[1]),
                     std::bit_cast<float>(bits[2])}));
}

GPUSIM_HD_NOINLINE uint64_t fetch(Room room, uint64_t xy, uint64_t z, uint64_t handle,
                                  uint64_t op) {
  const TextureObject* const t = room.find(ObjectKind::kTexture, handle & kHandleMask);
  if (t == nullptr) return 0;
  return sample(*t, room.linear(), TextureOp::unpack(op), three(xy, z),
                std::bit_cast<float>(static_cast<uint32_t>(z >> 32)),
                static_cast<uint32_t>(handle >> kLayerShift));
}

GPUSIM_HD_NOINLINE uint64_t surface(Room room, uint64_t xy, uint64_t z, uint64_t handle,
                                    uint64_t word) {
  const TextureObject* const s = room.find(ObjectKind::kSurface, handle);
  if (s == nullptr) return no_object(handle);
  const SurfaceOp op = SurfaceOp::unpack(word);
  const TextureLevel& l = s->levels[0];
  const std::array<uint32_t, 3> bits = three(xy, z);
  std::array<int64_t, 3> at{static_cast<int32_t>(bits[0]), 0, 0};
  if (dimensions_of(op.geometry) > 1) at[1] = static_cast<int32_t>(bits[1]);
  if (op.geometry == Geometry::k3d || has_layers(op.geometry))
    at[2] = static_cast<int32_t>(bits[2]);
  const std::array<int64_t, 3> last{int64_t{l.width} * s->texel_bytes() - op.bytes,
                                    int64_t{l.height} - 1,
                                    int64_t{std::max(l.depth, s->layers)} - 1};
  for (size_t d = 0; d < 3; ++d) {
    if (at[d] >= 0 && at[d] <= last[d]) continue;
    if (op.outside == Outside::kTrap) return complaint(Complaint::kOutside, handle);
    if (op.outside == Outside::kZero || last[d] < 0)
      return room.base + (op.is_store ? Room::kSink : Room::kZeros);
    at[d] = std::clamp<int64_t>(at[d], 0, last[d]);
  }
  return reinterpret_cast<uintptr_t>(l.data) + static_cast<uint64_t>(at[2]) * l.slice_bytes +
         static_cast<uint64_t>(at[1]) * l.row_bytes + static_cast<uint64_t>(at[0]);
}

}  // namespace gpusim::textures
