// PageRights of a machine's pages, by address, for code that looks at one byte per access.
#pragma once
#include "device_sim/core/guest_memory.h"
#include "device_sim/native/frame.h"

namespace gpusim::native {

class PageTable {
 public:
  // Of pages without permissions; update() tells of others. `plain_windows`: the windows are plain, and
  // take part.
  PageTable(const MemoryView& view, bool plain_windows);
  void update(uint64_t address, uint64_t size_bytes);
  uint64_t pages() const { return pages_; }
  const uint8_t* rights() const { return rights_.data(); }

 private:
  struct Zone {
    uint64_t first = 0, count = 0;  // pages
    int shift = 0;                  // of its bits
    bool is_windows = false;
  };
  uint8_t flags(const Zone& zone, uint64_t page) const;
  void update(const Zone& zone, uint64_t first, uint64_t last);

  MemoryView view_;
  Zone linear_, windows_;
  uint64_t pages_ = 0;
  LazyMemory rights_;
};

}  // namespace gpusim::native
