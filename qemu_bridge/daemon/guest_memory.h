// The guest's RAM, mapped into this process. The guest runs meanwhile: whatever is read here may be
// something else a moment later. So things are copied out before they are looked at.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device_sim/base/file_descriptor.h"
#include "host/offload/device_memory.h"
#include "qemu_bridge/wire/gpusim_wire.h"

namespace gpusim::daemon {

inline constexpr uint64_t kPageSize = 4096;

/// [gpa, gpa + size_bytes) is what file number `file` has from `offset` on.
struct RamRegion {
  uint64_t gpa = 0, size_bytes = 0, offset = 0;
  uint32_t file = 0;
  bool read_only = false;
};

/// Copies memory that others may be changing, once: the compiler cannot read the source again
/// later.
inline void copy_once(void* to, const void* from, size_t size_bytes) {
  __builtin_memcpy(to, from, size_bytes);
  asm volatile("" : : "r"(to), "r"(from) : "memory");
}

class GuestMemory {
 public:
  GuestMemory() = default;
  /// Maps all regions. gpusim::Error: they overlap, wrap around, are no whole pages, or reach
  /// beyond their file's end.
  GuestMemory(std::vector<FileDescriptor> files, std::vector<RamRegion> regions);
  ~GuestMemory();
  GuestMemory(GuestMemory&& other) noexcept;
  GuestMemory& operator=(GuestMemory&& other) noexcept;

  /// Null unless all of it lies in one region, a writable one if it is to be written.
  uint8_t* bytes(uint64_t gpa, uint64_t size_bytes, bool writable) const;
  /// False if a byte is not RAM. The range may reach over adjoining regions.
  bool copy_out(uint64_t gpa, std::span<uint8_t> to) const;

  /// What Simulator::map takes for these extents; neighbours in a file become one piece. Throws
  /// offload::OffloadError unless all are whole pages of RAM that add up to `size_bytes`, writable
  /// ones if they are to be written, and make no more than `most_pieces`.
  std::vector<offload::FilePiece> pieces(std::span<const gpusim_extent> extents,
                                         uint64_t size_bytes, bool writable,
                                         uint64_t most_pieces) const;

  uint64_t size_bytes() const;
  const std::vector<RamRegion>& regions() const { return regions_; }

 private:
  void unmap();
  const RamRegion* region_at(uint64_t gpa) const;

  std::vector<FileDescriptor> files_;
  std::vector<RamRegion> regions_;  // by rising gpa
  std::vector<uint8_t*> mapped_;    // beside them
};

}  // namespace gpusim::daemon
