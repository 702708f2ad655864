// The device addresses of one context, and the memory behind them. Nothing is copied here: pages of
// shared files appear at their addresses by mmap, or the addresses are the process's own. How cores
// on a GPU reach them says core/linear_space.h.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device_sim/core/linear_space.h"

namespace gpusim::offload {

struct FilePiece {
  int fd = -1;
  uint64_t offset = 0, size_bytes = 0;  // whole pages
};

class DeviceMemory {
 public:
  /// A range of this process is reserved; device address a lies at `pointer(a)`.
  explicit DeviceMemory(uint64_t size_bytes);
  /// Device addresses are pointers of this process.
  static DeviceMemory identity();
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) = delete;

  /// Before anything is mapped. Null: cores work on these pages as they are.
  void set_space(std::unique_ptr<LinearSpace> space) { space_ = std::move(space); }
  LinearSpace* space() const { return space_.get(); }

  bool is_identity() const { return identity_; }
  uint64_t lowest() const;  // device address that can be mapped
  uint64_t size_bytes() const { return size_bytes_; }
  /// Where the byte at a device address lies, whether or not it is mapped.
  uint8_t* pointer(uint64_t address) const;
  /// A device address whose memory is gone: its file was cut short while it was mapped.
  std::optional<uint64_t> lost_address() const;
  uint8_t* page_rights() const { return rights_; }  // SegmentFlags, one byte per page

  // All throw OffloadError and have then changed nothing; ranges are whole pages.
  void map_files(uint64_t address, std::span<const FilePiece> pieces, uint8_t rights);
  void map_own(uint64_t address, uint64_t size_bytes, uint8_t rights);  // identity only
  void unmap(uint64_t address, uint64_t size_bytes);  // exactly as mapped
  /// Part of a program, until it is taken away: not memory that the caller gave. It may cover another
  /// program's variables that the caller mapped, which cannot be reached meanwhile; nothing else.
  void place_image(uint64_t address, const FilePiece& piece, uint8_t rights);
  void remove_image(uint64_t address);
  /// What is mapped in this range may be covered.
  void allow_covering(uint64_t address, uint64_t size_bytes);
  void unmap_all();
  uint64_t mapped_bytes() const { return mapped_bytes_; }

  /// Bytes that a caller mapped with these rights throughout and can be reached; nothing otherwise.
  std::optional<std::span<uint8_t>> bytes(uint64_t address, uint64_t size_bytes,
                                          uint8_t rights) const;

  // What cores see now, between slices; all of it can be reached.
  void load(uint64_t address, std::span<uint8_t> out) const;
  // Cores and the caller see it.
  void store(uint64_t address, std::span<const uint8_t> in);

 private:
  DeviceMemory() = default;
  struct Mapping {
    uint64_t size_bytes = 0;
    uint8_t rights = 0;
    std::vector<FilePiece> pieces;  // none: the caller's own pages
    bool may_be_covered = false;
  };
  using Mappings = std::map<uint64_t, Mapping>;
  void check_range(uint64_t address, uint64_t size_bytes) const;
  // The first of them that has a byte in the range, or the end.
  static Mappings::const_iterator first_in(const Mappings& mappings, uint64_t address,
                                           uint64_t size_bytes);
  void check_free(uint64_t address, uint64_t size_bytes) const;
  void place(uint64_t address, const Mapping& mapping);
  void place(uint64_t address, const FilePiece& piece, uint8_t rights);
  void vacate(uint64_t address, uint64_t size_bytes);
  void set_rights(uint64_t address, uint64_t size_bytes, uint8_t rights);
  // Pages have come to their places, or are about to leave.
  void add_to_space(uint64_t address, uint64_t size_bytes, uint8_t rights, bool is_constant);
  void remove_from_space(uint64_t address, uint64_t size_bytes);
  void uncover(uint64_t address, uint64_t size_bytes);

  bool identity_ = false;
  uint64_t size_bytes_ = 0, mapped_bytes_ = 0;
  uint8_t* storage_ = nullptr;  // null with identity
  uint8_t* rights_ = nullptr;
  Mappings mappings_;  // of the caller
  Mappings images_;
  std::unique_ptr<LinearSpace> space_;
};

}  // namespace gpusim::offload
