#include "host/guest_access.h"

#include <algorithm>
#include <array>

#include "device_sim/core/memory_view.h"

namespace gpusim::host {

uint64_t GuestAccess::allowed_prefix(uint64_t address, uint64_t size_bytes, uint8_t rights) const {
  uint64_t done = 0;
  while (done < size_bytes) {
    if (address + done < address) break;  // wrapped around
    if ((backend_->permissions(core_, address + done) & rights) != rights) break;
    done += std::min(size_bytes - done, kPageSize - ((address + done) & (kPageSize - 1)));
  }
  return done;
}

bool GuestAccess::allows(uint64_t address, uint64_t size_bytes, uint8_t rights) const {
  return allowed_prefix(address, size_bytes, rights) == size_bytes;
}

std::optional<std::string> GuestAccess::string(uint64_t address, size_t most) const {
  std::string text;
  std::array<uint8_t, 256> piece;
  while (text.size() < most) {
    const uint64_t wish = std::min(piece.size(), most - text.size());
    const uint64_t size = allowed_prefix(address + text.size(), wish, kRead);
    if (size == 0 || !backend_->read_memory(core_, address + text.size(), {piece.data(), size}))
      return std::nullopt;
    const auto* end = static_cast<const uint8_t*>(std::memchr(piece.data(), 0, size));
    text.append(reinterpret_cast<const char*>(piece.data()),
                end ? static_cast<size_t>(end - piece.data()) : size);
    if (end) return text;
  }
  return std::nullopt;
}

}  // namespace gpusim::host
