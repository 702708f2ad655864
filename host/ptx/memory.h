// The process's memory as kernels may see it: rights per page, and who owns what.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/core/linear_space.h"

namespace gpusim::ptx {

/// Whole pages of zeros of the process, freed at the end.
class Pages {
 public:
  Pages() = default;
  explicit Pages(uint64_t size_bytes);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  uint8_t* data() const { return data_; }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(data_); }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  uint8_t* data_ = nullptr;
  uint64_t size_bytes_ = 0;
};

/// What reports call a range: "device memory", "allocated by cudaMalloc number 3".
struct MemoryLabel {
  std::string name{}, origin{};
};

/// Which bytes of a range were written: a bit for each.
class MemoryShadow {
 public:
  explicit MemoryShadow(uint64_t size_bytes) : bits_((size_bytes + 7) / 8) {}
  void mark(uint64_t offset, uint64_t size_bytes);
  bool is_written(uint64_t offset, uint64_t size_bytes) const;
  /// Nothing of it.
  bool is_blank(uint64_t offset, uint64_t size_bytes) const;

 private:
  bool is_written(uint64_t offset) const { return bits_.data()[offset / 8] >> offset % 8 & 1; }
  Pages bits_;
};

class ProcessMemory {
 public:
  /// What lies at an address; begin == end: nothing. Without a shadow all of it counts as written.
  struct Found {
    uint64_t begin = 0, end = 0;
    MemoryShadow* shadow = nullptr;
    uint8_t flags = 0;  // SegmentFlags
  };
  /// Throws Error if the addresses that it needs cannot be reserved.
  ProcessMemory();
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  /// Machines of devices reach it by way of `spaces`, which learn of pages that come, and in the
  /// opposite order of those that go.
  void use(std::vector<LinearSpace*> spaces);
  void leave_spaces() { spaces_.clear(); }
  /// `flags`: SegmentFlags.
  void add(uint64_t address, uint64_t size_bytes, uint8_t flags, MemoryLabel label,
           bool has_shadow = false);
  /// `by`, for reports: "freed by cudaFree number 2".
  void remove(uint64_t address, const std::string& by = {});
  /// Grows when rights are taken away: machines must forget what they know of them.
  uint64_t removals() const { return removals_; }

  void configure(MachineConfig& config) const;
  /// What lies at or next to an address, for a report.
  std::string describe(uint64_t address) const;
  Found find(uint64_t address) const;
  /// "device memory of 64 bytes at 0x7f... (allocated by cudaMalloc number 3)"
  std::string name(uint64_t address) const;
  /// Whether it was a kernel's and was taken away, and nobody else has it.
  bool is_freed(uint64_t address) const;
  void mark_written(uint64_t address, uint64_t size_bytes);
  /// `to` was copied from `from`, and has been written where that was.
  void copy_written(uint64_t to, uint64_t from, uint64_t size_bytes);
  bool has_shadows() const { return shadows_ != 0; }

 private:
  struct Range {
    uint64_t size_bytes;
    uint8_t flags;
    MemoryLabel label;
    std::unique_ptr<MemoryShadow> shadow;
  };
  static std::string name(uint64_t begin, const Range& range);
  const std::pair<const uint64_t, Range>* freed_at(uint64_t address) const;
  void set_rights(uint64_t address, uint64_t size_bytes, uint8_t flags);
  void tell_spaces(uint64_t address, uint64_t size_bytes);
  void add_to_spaces(uint64_t address, uint64_t size_bytes, uint8_t flags);
  void remove_from_spaces(uint64_t address, uint64_t size_bytes, size_t count);

  std::map<uint64_t, Range> ranges_;
  std::map<uint64_t, Range> freed_;  // by their addresses; what lies over later ranges is not kept
  uint64_t shadows_ = 0;
  uint8_t* rights_ = nullptr;
  std::vector<LinearSpace*> spaces_;
  uint8_t* told_ = nullptr;  // per page: what they know
  uint64_t removals_ = 0;
};

}  // namespace gpusim::ptx
