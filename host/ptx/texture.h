// Textures and surfaces: their objects, which kernels name by handles, and what fetches give.
//
// Fetches follow the CUDA C++ Programming Guide, appendix "Texture Fetching": texel coordinates,
// address modes, filters with weights of 8 fractional bits, and the faces of cubes. What it leaves
// open: docs/ptx.md.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "host/ptx/memory.h"
#include "translator/ptx/texture_op.h"

namespace gpusim::ptx {

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

  uint32_t texel_bytes() const { return channels * channel_bits / 8u; }
};

/// The objects of this process. Handles are addresses of their descriptions, which kernels may
/// read; so they are known to all engines.
class TextureObjects {
 public:
  static TextureObjects& instance();

  /// `origin`, for reports: "made by cudaCreateTextureObject number 2". Throws Error: too many.
  uint64_t add(ObjectKind kind, const TextureObject& object, std::string origin);
  /// False: there is no such object. `by`: "destroyed by cudaDestroyTextureObject number 2".
  bool remove(ObjectKind kind, uint64_t handle, const std::string& by);
  /// The block of device memory that begins there goes: objects on it can be used no more.
  void memory_freed(const void* block, const std::string& by);

  /// Null: there is none. Valid until it is removed.
  const TextureObject* find(ObjectKind kind, uint64_t handle) const;

  /// Memory of kernels: descriptions, and zeros, which they may read; and what takes the stores of
  /// accesses outside of surfaces.
  void add_to(ProcessMemory& memory) const;

  /// Kernels that use what is no object, or leave a surface, access such an address.
  /// Journals have 63 bits of it.
  static constexpr bool is_complaint(uint64_t address) { return address >> 56 == kComplaint; }
  /// What it says.
  std::string describe(uint64_t complaint) const;
  /// Whether it says that something is gone.
  bool is_freed(uint64_t complaint) const;

 private:
  struct Slot;
  enum class State : uint32_t { kNone, kTexture, kSurface, kDestroyed, kMemoryFreed };
  static constexpr uint64_t kComplaint = 0x7f;
  enum class Complaint : uint8_t { kNoObject, kOutside, kNoHandle };
  // Of a value that is the handle of no such object.
  static uint64_t no_object(uint64_t value) {
    return complaint((value & ~kHandleMask) == 0 ? Complaint::kNoObject : Complaint::kNoHandle,
                     value);
  }

  TextureObjects();
  static uint64_t complaint(Complaint what, uint64_t handle) {
    return kComplaint << 56 | uint64_t{static_cast<uint8_t>(what)} << 48 | (handle & kHandleMask);
  }
  static Complaint what_of(uint64_t complaint) {
    return static_cast<Complaint>(complaint >> 48 & 0xff);
  }
  Slot* slot_of(uint64_t handle) const;
  static State state_of(ObjectKind kind) {
    return kind == ObjectKind::kTexture ? State::kTexture : State::kSurface;
  }

  static uint64_t object_of(uint64_t handle, uint64_t what);
  static uint64_t query_of(uint64_t handle, uint64_t level, uint64_t what);
  static uint64_t level_of(uint64_t xy, uint64_t z, uint64_t handle);
  static uint64_t fetch(uint64_t xy, uint64_t z, uint64_t handle, uint64_t op);
  static uint64_t surface_address(uint64_t xy, uint64_t z, uint64_t handle, uint64_t op);

  Pages pages_;
  mutable std::mutex mutex_;  // of what follows
  uint32_t next_ = 0;         // objects' places are used in a circle, so that old handles stay bad
  std::map<uint64_t, std::string> origins_;  // by handle
  std::set<std::pair<const void*, uint64_t>>
      on_memory_;  // block and handle, of those that are there
};

/// One word of a texel that a texture gives; `coordinates` as bits of registers.
uint32_t sample(const TextureObject& texture, const TextureOp& op,
                const std::array<uint32_t, 3>& coordinates, float level, uint32_t layer);

/// Level of detail for one of a fetch's gradients.
float level_for(const TextureObject& texture, const std::array<float, 3>& gradient);

}  // namespace gpusim::ptx
