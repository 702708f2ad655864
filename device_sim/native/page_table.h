// PageRights of a machine's pages, by address, for code that looks at one byte per access.
#pragma once
#include "device_sim/core/guest_memory.h"
#include "device_sim/native/frame.h"

namespace gpusim::native {

class PageTable {
 public:
  // Of pages without permissions; update() tells of others. `plain_windows`: the windows are one run
  // of storage, and take part.
  PageTable(const MemoryView& view, bool plain_windows);
  void update(uint64_t address, uint64_t size_bytes);
  uint64_t pages() const { return pages_; }
  const uint8_t* rights() const { return rights_.data(); }

 private:
  struct Zone {
    const uint8_t* flags = nullptr;  // SegmentFlags by page
    uint64_t first = 0, count = 0;   // pages
    int shift = 0;                   // of its bits
  };
  void update(const Zone& zone, uint64_t first, uint64_t last);

  Zone linear_, windows_;
  uint64_t pages_ = 0;
  LazyMemory rights_;
};

}  // namespace gpusim::native
