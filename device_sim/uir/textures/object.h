// What textures and surfaces are: descriptions in memory that the host and devices read.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/textures/operands.h"

namespace gpusim::textures {

enum class ChannelKind : uint8_t { kSigned, kUnsigned, kFloat };
/// The numbers of cudaTextureAddressMode and CUaddress_mode.
enum class AddressMode : uint8_t { kWrap, kClamp, kMirror, kBorder };

struct TextureLevel {
  uint8_t* data = nullptr;
  uint32_t width = 1, height = 1, depth = 1;  // texels; 1: no such dimension
  uint64_t row_bytes = 0, slice_bytes = 0;    // from a row, a slice or layer to the next
};

/// What a texture object or a surface object describes. Surfaces have the first level only, and
/// need no more than the format and the shape.
struct TextureObject {
  static constexpr uint32_t kMostLevels = 17;
  std::array<TextureLevel, kMostLevels> levels{};
  uint32_t level_count = 1, layers = 0;  // 0: none. Cubes have six layers each
  uint8_t channels = 1, channel_bits = 8;
  ChannelKind kind = ChannelKind::kUnsigned;
  bool is_linear_memory = false;                 // outside of it everything is zero
  bool is_normalized = false;                    // coordinates are
  bool reads_normalized = false;                 // integers become floats from -1 or 0 to 1
  bool is_srgb = false;                          // and the first three channels linear ones
  bool filters = false, filters_levels = false;  // linearly; else the nearest
  std::array<AddressMode, 3> modes{};
  std::array<uint32_t, 4> border{};  // as bits of what a fetch gives
  float level_bias = 0, least_level = 0, most_level = 0;
  const void* memory = nullptr;  // where the block of device memory begins that it lies in

  GPUSIM_HD uint32_t texel_bytes() const { return channels * channel_bits / 8u; }
};

enum class State : uint32_t { kNone, kTexture, kSurface, kDestroyed, kMemoryFreed };

GPUSIM_HD constexpr State state_of(ObjectKind kind) {
  return kind == ObjectKind::kTexture ? State::kTexture : State::kSurface;
}

/// A description; its address is the object's handle.
struct alignas(1024) Slot {
  State state = State::kNone;
  TextureObject object;
};

/// Memory with the descriptions of all objects of a process, seen from its beginning: a page of
/// zeros; one that takes what is stored outside of surfaces; what sRGB's 256 steps are in linear
/// light; then the descriptions.
struct Room {
  static constexpr uint32_t kMostObjects = 1 << 16;
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kZeros = 0, kSink = kPage, kLinear = 2 * kPage, kObjects = 3 * kPage;
  static constexpr uint64_t kBytes = kObjects + kMostObjects * sizeof(Slot);

  uint64_t base = 0;

  /// Null: no object has such a handle, now or at any time.
  GPUSIM_HD Slot* slot_of(uint64_t handle) const {
    const uint64_t offset = handle - base - kObjects;
    if (offset >= kMostObjects * sizeof(Slot) || offset % sizeof(Slot) != 0) return nullptr;
    return reinterpret_cast<Slot*>(base + kObjects + offset);
  }
  /// Null: there is none.
  GPUSIM_HD const TextureObject* find(ObjectKind kind, uint64_t handle) const {
    const Slot* const slot = slot_of(handle);
    if (slot == nullptr) return nullptr;
    const State state = *const_cast<const volatile State*>(&slot->state);
    return state == state_of(kind) ? &slot->object : nullptr;
  }
  GPUSIM_HD const double* linear() const { return reinterpret_cast<const double*>(base + kLinear); }
};

/// Kernels that use what is no object, or leave a surface, access such an address, where nothing
/// is. Journals have 63 bits of it.
enum class Complaint : uint8_t { kNoObject, kOutside, kNoHandle };
inline constexpr uint64_t kComplaint = 0x7f;

GPUSIM_HD constexpr uint64_t complaint(Complaint what, uint64_t handle) {
  return kComplaint << 56 | uint64_t{static_cast<uint8_t>(what)} << 48 | (handle & kHandleMask);
}
// Of a value that is the handle of no such object.
GPUSIM_HD constexpr uint64_t no_object(uint64_t value) {
  return complaint((value & ~kHandleMask) == 0 ? Complaint::kNoObject : Complaint::kNoHandle,
                   value);
}

}  // namespace gpusim::textures
