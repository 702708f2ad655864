// The device addresses of one context, and the memory behind them. Nothing is copied: pages of shared
// files appear at their addresses by mmap, or the addresses are the process's own.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

  bool is_identity() const { return identity_; }
  uint64_t lowest() const;  // device address that can be mapped
  uint64_t size_bytes() const { return size_bytes_; }
  /// Where the byte at a device address lies, whether or not it is mapped.
  uint8_t* pointer(uint64_t address) const;
  uint8_t* page_rights() const { return rights_; }  // SegmentFlags, one byte per page

  // All throw OffloadError and have then changed nothing; ranges are whole pages.
  void map_files(uint64_t address, std::span<const FilePiece> pieces, uint8_t rights);
  void map_own(uint64_t address, uint64_t size_bytes, uint8_t rights);  // identity only
  /// Part of a program: not memory that the caller gave, so no part of bytes() and mapped_bytes().
  void map_image(uint64_t address, const FilePiece& piece, uint8_t rights);
  void unmap(uint64_t address, uint64_t size_bytes);  // exactly as mapped
  void unmap_all();
  uint64_t mapped_bytes() const { return mapped_bytes_; }

  /// Bytes that a caller mapped with these rights throughout; nothing otherwise.
  std::optional<std::span<uint8_t>> bytes(uint64_t address, uint64_t size_bytes,
                                          uint8_t rights) const;

 private:
  DeviceMemory() = default;
  struct Mapping {
    uint64_t size_bytes = 0;
    uint8_t rights = 0;
    bool is_image = false;
    bool is_placed = false;  // by mmap, not the caller's own pages
  };
  void check_range(uint64_t address, uint64_t size_bytes) const;
  void check_free(uint64_t address, uint64_t size_bytes) const;
  void map_pieces(uint64_t address, std::span<const FilePiece> pieces, Mapping mapping);
  void place(uint64_t address, const FilePiece& piece, uint8_t rights);
  void vacate(uint64_t address, uint64_t size_bytes);
  void add(uint64_t address, uint64_t size_bytes, Mapping mapping);

  bool identity_ = false;
  uint64_t size_bytes_ = 0, mapped_bytes_ = 0;
  uint8_t* storage_ = nullptr;  // null with identity
  uint8_t* rights_ = nullptr;
  std::map<uint64_t, Mapping> mappings_;
};

}  // namespace gpusim::offload
