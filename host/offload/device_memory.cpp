#include "host/offload/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "device_sim/core/device_error.h"
#include "device_sim/core/memory_view.h"
#include "host/offload/lost_pages.h"
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
      mappings_(std::exchange(other.mappings_, {})),
      images_(std::exchange(other.images_, {})),
      space_(std::exchange(other.space_, nullptr)) {}

DeviceMemory::~DeviceMemory() {
  space_.reset();
  if (rights_) munmap(rights_, size_bytes_ >> kPageShift);
  if (!storage_) return;
  note_unmapped(storage_, size_bytes_);
  munmap(storage_, size_bytes_);
}

uint64_t DeviceMemory::lowest() const { return kLowest; }

uint8_t* DeviceMemory::pointer(uint64_t address) const {
  return identity_ ? reinterpret_cast<uint8_t*>(address) : storage_ + address;
}

std::optional<uint64_t> DeviceMemory::lost_address() const {
  if (!storage_) return std::nullopt;
  const auto lost = lost_page(storage_, size_bytes_);
  return lost ? std::optional(*lost - reinterpret_cast<uintptr_t>(storage_)) : std::nullopt;
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

DeviceMemory::Mappings::const_iterator DeviceMemory::first_in(const Mappings& mappings,
                                                              uint64_t address,
                                                              uint64_t size_bytes) {
  auto it = mappings.upper_bound(address);
  if (it != mappings.begin()) {
    const auto before = std::prev(it);
    if (before->first + before->second.size_bytes > address) return before;
  }
  return it != mappings.end() && it->first < address + size_bytes ? it : mappings.end();
}

void DeviceMemory::check_free(uint64_t address, uint64_t size_bytes) const {
  for (const Mappings* mappings : {&mappings_, &images_}) {
    const auto it = first_in(*mappings, address, size_bytes);
    if (it != mappings->end())
      throw OffloadError(EEXIST, fmt::format("{:#x} bytes at device address {:#x}: {:#x} bytes are "
                                             "mapped at {:#x} already",
                                             size_bytes, address, it->second.size_bytes,
                                             it->first));
  }
}

void DeviceMemory::set_rights(uint64_t address, uint64_t size_bytes, uint8_t rights) {
  std::memset(rights_ + (address >> kPageShift), rights, size_bytes >> kPageShift);
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
  else  // if it fails, the memory is there until the device ends
    (void)mmap(pointer(address), size_bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void DeviceMemory::place(uint64_t address, const Mapping& mapping) {
  uint64_t done = 0;
  try {
    for (const FilePiece& p : mapping.pieces) {
      place(address + done, p, mapping.rights);
      done += p.size_bytes;
    }
  } catch (...) {
    if (done != 0) vacate(address, done);
    throw;
  }
  set_rights(address, mapping.size_bytes, mapping.rights);
}

void DeviceMemory::map_files(uint64_t address, std::span<const FilePiece> pieces, uint8_t rights) {
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
  Mapping mapping{size_bytes, rights, {pieces.begin(), pieces.end()}};
  place(address, mapping);
  try {
    add_to_space(address, size_bytes, rights, false);
  } catch (...) {
    vacate(address, size_bytes);
    set_rights(address, size_bytes, 0);
    throw;
  }
  // Not of programs' images: their files are this process's own.
  for (uint64_t at = address; const FilePiece& p : mapping.pieces) {
    if (!identity_) note_mapped(pointer(at), p.size_bytes);
    at += p.size_bytes;
  }
  mapped_bytes_ += size_bytes;
  mappings_.emplace(address, std::move(mapping));
}

void DeviceMemory::map_own(uint64_t address, uint64_t size_bytes, uint8_t rights) {
  check_range(address, size_bytes);
  check_free(address, size_bytes);
  add_to_space(address, size_bytes, rights, false);
  set_rights(address, size_bytes, rights);
  mapped_bytes_ += size_bytes;
  mappings_.emplace(address, Mapping{size_bytes, rights, {}});
}

void DeviceMemory::unmap(uint64_t address, uint64_t size_bytes) {
  const auto it = mappings_.find(address);
  if (it == mappings_.end() || it->second.size_bytes != size_bytes)
    throw OffloadError(EINVAL, fmt::format("nothing was mapped with {:#x} bytes at device address "
                                           "{:#x}",
                                           size_bytes, address));
  remove_from_space(address, size_bytes);
  if (!it->second.pieces.empty()) {
    if (!identity_) note_unmapped(pointer(address), size_bytes);
    vacate(address, size_bytes);
  }
  set_rights(address, size_bytes, 0);
  mapped_bytes_ -= size_bytes;
  mappings_.erase(it);
}

void DeviceMemory::unmap_all() {
  while (!images_.empty()) remove_image(images_.begin()->first);
  while (!mappings_.empty()) {
    const auto& [address, mapping] = *mappings_.begin();
    unmap(address, mapping.size_bytes);
  }
}

void DeviceMemory::place_image(uint64_t address, const FilePiece& piece, uint8_t rights) {
  check_range(address, piece.size_bytes);
  if (first_in(images_, address, piece.size_bytes) != images_.end())
    throw OffloadError(EEXIST, fmt::format("another program is at device address {:#x}", address));
  const uint64_t end = address + piece.size_bytes;
  for (auto m = first_in(mappings_, address, piece.size_bytes);
       m != mappings_.end() && m->first < end; ++m)
    if (!m->second.may_be_covered)
      throw OffloadError(EEXIST, fmt::format("{:#x} bytes are mapped at device address {:#x}, where "
                                             "the program belongs",
                                             m->second.size_bytes, m->first));
  Mapping image{piece.size_bytes, rights, {piece}};
  remove_from_space(address, piece.size_bytes);
  try {
    place(address, image);
  } catch (...) {
    if (space_) uncover(address, piece.size_bytes);
    throw;
  }
  try {
    add_to_space(address, piece.size_bytes, rights, (rights & kWrite) == 0);
  } catch (...) {
    vacate(address, piece.size_bytes);
    set_rights(address, piece.size_bytes, 0);
    uncover(address, piece.size_bytes);
    throw;
  }
  images_.emplace(address, std::move(image));
}

void DeviceMemory::allow_covering(uint64_t address, uint64_t size_bytes) {
  for (auto& [begin, mapping] : mappings_)
    if (begin < address + size_bytes && address < begin + mapping.size_bytes)
      mapping.may_be_covered = true;
}

void DeviceMemory::remove_image(uint64_t address) {
  const auto it = images_.find(address);
  if (it == images_.end()) return;
  const uint64_t size_bytes = it->second.size_bytes;
  remove_from_space(address, size_bytes);
  images_.erase(it);
  vacate(address, size_bytes);
  set_rights(address, size_bytes, 0);
  uncover(address, size_bytes);
}

// What an image covered appears again; what the device cannot take again is out of cores' reach.
void DeviceMemory::uncover(uint64_t address, uint64_t size_bytes) {
  const uint64_t end = address + size_bytes;
  for (auto m = first_in(mappings_, address, size_bytes); m != mappings_.end() && m->first < end;
       ++m) {
    remove_from_space(m->first, m->second.size_bytes);
    place(m->first, m->second);
    try {
      add_to_space(m->first, m->second.size_bytes, m->second.rights, false);
    } catch (const std::runtime_error&) {
    }
  }
}

void DeviceMemory::add_to_space(uint64_t address, uint64_t size_bytes, uint8_t rights,
                                bool is_constant) {
  if (!space_) return;
  try {
    space_->add(address, size_bytes, rights, is_constant);
  } catch (const DeviceError&) {
    throw;
  } catch (const std::exception& e) {
    throw OffloadError(ENOMEM, fmt::format("{:#x} bytes at device address {:#x}: {}", size_bytes,
                                           address, e.what()));
  }
}

// Pages leave in any case. Errors of the device stay, and the next kernel hears of them.
void DeviceMemory::remove_from_space(uint64_t address, uint64_t size_bytes) {
  if (!space_) return;
  try {
    space_->remove(address, size_bytes);
  } catch (const std::runtime_error&) {
  }
}

void DeviceMemory::load(uint64_t address, std::span<uint8_t> out) const {
  if (space_) return space_->read(address, out);
  std::memcpy(out.data(), pointer(address), out.size());
}

void DeviceMemory::store(uint64_t address, std::span<const uint8_t> in) {
  if (space_) space_->write(address, in);
  std::memcpy(pointer(address), in.data(), in.size());
}

std::optional<std::span<uint8_t>> DeviceMemory::bytes(uint64_t address, uint64_t size_bytes,
                                                      uint8_t rights) const {
  if (size_bytes > size_bytes_ || address > size_bytes_ - size_bytes) return std::nullopt;
  if (first_in(images_, address, size_bytes) != images_.end()) return std::nullopt;
  for (uint64_t at = address; at < address + size_bytes;) {
    auto it = mappings_.upper_bound(at);
    if (it == mappings_.begin()) return std::nullopt;
    const auto& [begin, mapping] = *--it;
    if (at - begin >= mapping.size_bytes || (mapping.rights & rights) != rights)
      return std::nullopt;
    at = begin + mapping.size_bytes;
  }
  return std::span<uint8_t>(pointer(address), size_bytes);
}

}  // namespace gpusim::offload
