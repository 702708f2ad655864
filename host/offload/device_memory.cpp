#include "host/offload/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "device_sim/core/memory_view.h"
#include "host/offload/offload_error.h"

namespace gpusim::offload {
namespace {

// Nothing is ever mapped below it, so that addresses of a process and null pointers keep apart.
constexpr uint64_t kLowest = 0x10000;
constexpr uint64_t kHighestOfProcess = uint64_t{1} << 47;  // of user space on 64-bit hosts

void* reserve(uint64_t size_bytes, int protection, const char* what) {
  void* p = mmap(nullptr, size_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw OffloadError(ENOMEM, fmt::format("cannot reserve {} GiB of addresses for {}: {}",
                                           size_bytes >> 30, what, std::strerror(errno)));
  return p;
}

bool is_whole_pages(uint64_t a) { return a % kPageSize == 0; }

}  // namespace

DeviceMemory::DeviceMemory(uint64_t size_bytes) : size_bytes_(size_bytes) {
  rights_ = static_cast<uint8_t*>(
      reserve(size_bytes >> kPageShift, PROT_READ | PROT_WRITE, "page rights"));
  try {
    storage_ = static_cast<uint8_t*>(reserve(size_bytes, PROT_NONE, "device memory"));
  } catch (...) {
    munmap(rights_, size_bytes >> kPageShift);
    throw;
  }
}

DeviceMemory DeviceMemory::identity() {
  DeviceMemory memory;
  memory.identity_ = true;
  memory.size_bytes_ = kHighestOfProcess;
  memory.rights_ = static_cast<uint8_t*>(
      reserve(kHighestOfProcess >> kPageShift, PROT_READ | PROT_WRITE, "page rights"));
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : identity_(other.identity_),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      storage_(std::exchange(other.storage_, nullptr)),
      rights_(std::exchange(other.rights_, nullptr)),
      mappings_(std::exchange(other.mappings_, {})) {}

DeviceMemory::~DeviceMemory() {
  if (rights_) munmap(rights_, size_bytes_ >> kPageShift);
  if (storage_) munmap(storage_, size_bytes_);
}

uint64_t DeviceMemory::lowest() const { return kLowest; }

uint8_t* DeviceMemory::pointer(uint64_t address) const {
  return identity_ ? reinterpret_cast<uint8_t*>(address) : storage_ + address;
}

void DeviceMemory::check_range(uint64_t address, uint64_t size_bytes) const {
  if (!is_whole_pages(address) || !is_whole_pages(size_bytes) || size_bytes == 0)
    throw OffloadError(EINVAL, fmt::format("{:#x} bytes at device address {:#x}: not whole pages of "
                                           "{} bytes",
                                           size_bytes, address, kPageSize));
  if (address < kLowest || address >= size_bytes_ || size_bytes > size_bytes_ - address)
    throw OffloadError(EINVAL, fmt::format("{:#x} bytes at device address {:#x}: outside "
                                           "{:#x} to {:#x}",
                                           size_bytes, address, kLowest, size_bytes_));
}

void DeviceMemory::check_free(uint64_t address, uint64_t size_bytes) const {
  const auto refuse = [&](uint64_t at, uint64_t size) {
    throw OffloadError(EEXIST, fmt::format("{:#x} bytes at device address {:#x}: {:#x} bytes are "
                                           "mapped at {:#x} already",
                                           size_bytes, address, size, at));
  };
  const auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + size_bytes)
    refuse(next->first, next->second.size_bytes);
  if (next == mappings_.begin()) return;
  const auto& [begin, before] = *std::prev(next);
  if (begin + before.size_bytes > address) refuse(begin, before.size_bytes);
}

void DeviceMemory::add(uint64_t address, uint64_t size_bytes, Mapping mapping) {
  std::memset(rights_ + (address >> kPageShift), mapping.rights, size_bytes >> kPageShift);
  if (!mapping.is_image) mapped_bytes_ += size_bytes;
  mapping.size_bytes = size_bytes;
  mappings_[address] = mapping;
}

void DeviceMemory::place(uint64_t address, const FilePiece& piece, uint8_t rights) {
  const int protection = PROT_READ | (rights & kWrite ? PROT_WRITE : 0);
  // In this process's own addresses, what is there stays there.
  const int fixed = identity_ ? MAP_FIXED_NOREPLACE : MAP_FIXED;
  void* const at = pointer(address);
  void* const got = mmap(at, piece.size_bytes, protection, MAP_SHARED | fixed, piece.fd,
                         static_cast<off_t>(piece.offset));
  if (got == at) return;
  const int error = got == MAP_FAILED ? errno : EEXIST;
  if (got != MAP_FAILED) munmap(got, piece.size_bytes);
  if (error == EEXIST)
    throw OffloadError(EEXIST,
                       fmt::format("device addresses {:#x} to {:#x} are in use by this process; "
                                   "link the kernels or the host program elsewhere",
                                   address, address + piece.size_bytes));
  throw OffloadError(error, fmt::format("cannot map {:#x} bytes at device address {:#x}: {}",
                                        piece.size_bytes, address, std::strerror(error)));
}

void DeviceMemory::vacate(uint64_t address, uint64_t size_bytes) {
  if (identity_)
    munmap(pointer(address), size_bytes);
  else
    mmap(pointer(address), size_bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void DeviceMemory::map_pieces(uint64_t address, std::span<const FilePiece> pieces,
                              Mapping mapping) {
  uint64_t size_bytes = 0;
  for (const FilePiece& p : pieces) {
    if (!is_whole_pages(p.size_bytes) || !is_whole_pages(p.offset) || p.size_bytes == 0 ||
        p.size_bytes > size_bytes_ - size_bytes)
      throw OffloadError(EINVAL, fmt::format("a piece of {:#x} bytes of memory for device address "
                                             "{:#x}: not whole pages, or more than there can be",
                                             p.size_bytes, address));
    size_bytes += p.size_bytes;
  }
  check_range(address, size_bytes);
  check_free(address, size_bytes);
  uint64_t done = 0;
  try {
    for (const FilePiece& p : pieces) {
      place(address + done, p, mapping.rights);
      done += p.size_bytes;
    }
  } catch (...) {
    if (done != 0) vacate(address, done);
    throw;
  }
  mapping.is_placed = true;
  add(address, size_bytes, mapping);
}

void DeviceMemory::map_files(uint64_t address, std::span<const FilePiece> pieces, uint8_t rights) {
  map_pieces(address, pieces, {.rights = rights});
}

void DeviceMemory::map_image(uint64_t address, const FilePiece& piece, uint8_t rights) {
  map_pieces(address, {&piece, 1}, {.rights = rights, .is_image = true});
}

void DeviceMemory::map_own(uint64_t address, uint64_t size_bytes, uint8_t rights) {
  check_range(address, size_bytes);
  check_free(address, size_bytes);
  add(address, size_bytes, {.rights = rights});
}

void DeviceMemory::unmap(uint64_t address, uint64_t size_bytes) {
  const auto it = mappings_.find(address);
  if (it == mappings_.end() || it->second.size_bytes != size_bytes)
    throw OffloadError(EINVAL, fmt::format("nothing was mapped with {:#x} bytes at device address "
                                           "{:#x}",
                                           size_bytes, address));
  if (it->second.is_placed) vacate(address, size_bytes);
  std::memset(rights_ + (address >> kPageShift), 0, size_bytes >> kPageShift);
  if (!it->second.is_image) mapped_bytes_ -= size_bytes;
  mappings_.erase(it);
}

void DeviceMemory::unmap_all() {
  while (!mappings_.empty()) {
    const auto& [address, mapping] = *mappings_.begin();
    unmap(address, mapping.size_bytes);
  }
}

std::optional<std::span<uint8_t>> DeviceMemory::bytes(uint64_t address, uint64_t size_bytes,
                                                      uint8_t rights) const {
  if (size_bytes > size_bytes_ || address > size_bytes_ - size_bytes) return std::nullopt;
  for (uint64_t at = address; at < address + size_bytes;) {
    auto it = mappings_.upper_bound(at);
    if (it == mappings_.begin()) return std::nullopt;
    const auto& [begin, mapping] = *--it;
    const bool covers = at - begin < mapping.size_bytes;
    if (!covers || mapping.is_image || (mapping.rights & rights) != rights) return std::nullopt;
    at = begin + mapping.size_bytes;
  }
  return std::span<uint8_t>(pointer(address), size_bytes);
}

}  // namespace gpusim::offload
