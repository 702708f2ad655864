// A program's segments in memory of their own, to be put at their addresses while its kernels run.
// Programs with the same addresses take turns.
#pragma once
#include <cstdint>
#include <vector>

#include "device_sim/uir/module.h"
#include "host/offload/device_memory.h"

namespace gpusim::offload {

class ProgramImage {
 public:
  /// `live_data`: segments that can be written are the caller's and not part of it.
  ProgramImage(const Module& module, bool live_data);
  ~ProgramImage();
  ProgramImage(const ProgramImage&) = delete;
  ProgramImage& operator=(const ProgramImage&) = delete;

  void install(DeviceMemory& memory);  // OffloadError, and nothing is installed
  void remove(DeviceMemory& memory);
  // With live data, which programs at the same addresses may not cover while kernels of this one run.
  bool overlaps(uint64_t address, uint64_t size_bytes) const;
  bool overlaps(const ProgramImage& other) const;
  // The caller's pages among its addresses.
  struct Range {
    uint64_t address = 0, size_bytes = 0;
  };
  const std::vector<Range>& live() const { return live_; }

 private:
  struct Part {
    uint64_t address = 0;
    FilePiece piece;
    uint8_t rights = 0;
  };
  int fd_ = -1;
  std::vector<Part> parts_;
  std::vector<Range> live_;
};

}  // namespace gpusim::offload
