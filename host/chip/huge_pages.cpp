#include "host/chip/huge_pages.h"

#include <sys/mman.h>

namespace gpusim::host::chip {

void* huge_pages(size_t bytes, size_t alignment) {
  constexpr size_t kPage = size_t{2} << 20, kMuch = kPage / 4;
  const size_t unit = bytes < kMuch ? std::max(alignment, sizeof(void*)) : kPage;
  bytes = (bytes + unit - 1) / unit * unit;
  void* const p = std::aligned_alloc(unit, bytes);
  if (p && unit == kPage) madvise(p, bytes, MADV_HUGEPAGE);  // a wish
  return p;
}

}  // namespace gpusim::host::chip
