// The objects of textures and surfaces, which kernels name by handles. What fetches give:
// device_sim/uir/textures.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "device_sim/uir/textures/object.h"
#include "host/ptx/memory.h"

namespace gpusim::ptx {

using textures::AddressMode;
using textures::ChannelKind;
using textures::ObjectKind;
using textures::TextureLevel;
using textures::TextureObject;

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

  /// textures::Room::base
  uint64_t address() const { return room_.base; }

  static constexpr bool is_complaint(uint64_t address) {
    return address >> 56 == textures::kComplaint;
  }
  /// What it says.
  std::string describe(uint64_t complaint) const;
  /// Whether it says that something is gone.
  bool is_freed(uint64_t complaint) const;

 private:
  TextureObjects();

  Pages pages_;
  textures::Room room_;
  mutable std::mutex mutex_;  // of what follows
  uint32_t next_ = 0;         // objects' places are used in a circle, so that old handles stay bad
  std::map<uint64_t, std::string> origins_;  // by handle
  std::set<std::pair<const void*, uint64_t>>
      on_memory_;  // block and handle, of those that are there
};

}  // namespace gpusim::ptx
