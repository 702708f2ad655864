// The process's memory as kernels may see it: rights per page, and who owns what.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "device_sim/core/backend.h"

namespace gpusim::ptx {

class ProcessMemory {
 public:
  /// What lies at an address; begin == end: nothing.
  struct Found {
    uint64_t begin = 0, end = 0;
  };
  /// Throws Error if the addresses that it needs cannot be reserved.
  ProcessMemory();
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  /// `flags`: SegmentFlags.
  void add(uint64_t address, uint64_t size_bytes, uint8_t flags, std::string tag);
  void remove(uint64_t address);
  /// Grows when rights are taken away: machines must forget what they know of them.
  uint64_t removals() const { return removals_; }

  void configure(MachineConfig& config) const;
  /// What lies at or next to an address, for a report.
  std::string describe(uint64_t address) const;
  Found find(uint64_t address) const;
  /// Whether it was a kernel's and was taken away, and nobody else has it.
  bool is_freed(uint64_t address) const;

 private:
  struct Range {
    uint64_t size_bytes;
    uint8_t flags;
    std::string tag;
  };
  const std::pair<const uint64_t, Range>* freed_at(uint64_t address) const;
  void set_rights(uint64_t address, uint64_t size_bytes, uint8_t flags);

  std::map<uint64_t, Range> ranges_;
  std::map<uint64_t, Range> freed_;  // by their addresses; what lies over later ranges is not kept
  uint8_t* rights_ = nullptr;
  uint64_t removals_ = 0;
};

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

}  // namespace gpusim::ptx
