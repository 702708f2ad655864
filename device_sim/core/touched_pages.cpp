#include "device_sim/core/touched_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace gpusim {

TouchedPages::TouchedPages(const uint8_t* data, uint64_t size_bytes)
    : first_(reinterpret_cast<uintptr_t>(data) >> kPageShift) {
  const uint64_t end =
      (reinterpret_cast<uintptr_t>(data) + size_bytes + kPageSize - 1) >> kPageShift;
  touched_.assign(end - first_, true);
  // proc(5), pagemap: a word per page; bit 63: present, bit 62: swapped out.
  const int fd = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;  // then all count as touched
  std::array<uint64_t, 4096> words;
  for (uint64_t page = 0; page < touched_.size();) {
    const uint64_t wish = std::min<uint64_t>(words.size(), touched_.size() - page);
    const ssize_t n = ::pread(fd, words.data(), wish * 8, static_cast<off_t>((first_ + page) * 8));
    if (n < 8) break;
    for (uint64_t i = 0; i < static_cast<uint64_t>(n) / 8; ++i)
      touched_[page + i] = (words[i] >> 62) != 0;
    page += static_cast<uint64_t>(n) / 8;
  }
  ::close(fd);
}

}  // namespace gpusim
