#include "qemu_bridge/daemon/guest_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "device_sim/base/error.h"
#include "host/offload/lost_pages.h"
#include "host/offload/simulator.h"

namespace gpusim::daemon {
namespace {

using offload::FilePiece;
using offload::OffloadError;

bool whole_pages(uint64_t a, uint64_t b, uint64_t c = 0) { return (a | b | c) % kPageSize == 0; }

// Reading beyond a file's end would be a SIGBUS.
uint64_t file_size(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0)
    throw Error(fmt::format("guest memory: cannot tell its size: {}", std::strerror(errno)));
  return static_cast<uint64_t>(status.st_size);
}

void check(const RamRegion& r, const std::vector<FileDescriptor>& files) {
  const auto refuse = [&](const char* why) {
    throw Error(fmt::format("guest memory at {:#x}, {:#x} bytes: {}", r.gpa, r.size_bytes, why));
  };
  if (!whole_pages(r.gpa, r.size_bytes, r.offset) || r.size_bytes == 0)
    refuse("not whole pages of 4096 bytes");
  if (r.gpa > std::numeric_limits<uint64_t>::max() - r.size_bytes) refuse("wraps around");
  if (r.file >= files.size()) refuse("there is no such file");
  const uint64_t size = file_size(files[r.file].get());
  if (r.offset > size || r.size_bytes > size - r.offset)
    refuse("reaches beyond the end of its file");
}

}  // namespace

GuestMemory::GuestMemory(std::vector<FileDescriptor> files, std::vector<RamRegion> regions)
    : files_(std::move(files)) {
  std::sort(regions.begin(), regions.end(),
            [](const RamRegion& a, const RamRegion& b) { return a.gpa < b.gpa; });
  for (const RamRegion& r : regions) {
    check(r, files_);
    if (!regions_.empty() && regions_.back().gpa + regions_.back().size_bytes > r.gpa)
      throw Error(fmt::format("guest memory at {:#x}: two regions overlap", r.gpa));
    regions_.push_back(r);
  }
  for (const RamRegion& r : regions_) {
    void* at = mmap(nullptr, r.size_bytes, PROT_READ | (r.read_only ? 0 : PROT_WRITE), MAP_SHARED,
                    files_[r.file].get(), static_cast<off_t>(r.offset));
    if (at == MAP_FAILED) {
      const int error = errno;
      *this = GuestMemory();  // the destructor will not run
      throw Error(fmt::format("cannot map guest memory: {}", std::strerror(error)));
    }
    mapped_.push_back(static_cast<uint8_t*>(at));
    offload::note_mapped(at, r.size_bytes);
  }
}

void GuestMemory::unmap() {
  for (size_t i = 0; i < mapped_.size(); ++i) {
    offload::note_unmapped(mapped_[i], regions_[i].size_bytes);
    munmap(mapped_[i], regions_[i].size_bytes);
  }
}

GuestMemory::~GuestMemory() { unmap(); }

GuestMemory::GuestMemory(GuestMemory&& other) noexcept { *this = std::move(other); }

GuestMemory& GuestMemory::operator=(GuestMemory&& other) noexcept {
  unmap();
  files_ = std::exchange(other.files_, {});
  regions_ = std::exchange(other.regions_, {});
  mapped_ = std::exchange(other.mapped_, {});
  return *this;
}

const RamRegion* GuestMemory::region_at(uint64_t gpa) const {
  auto after = std::upper_bound(regions_.begin(), regions_.end(), gpa,
                                [](uint64_t a, const RamRegion& r) { return a < r.gpa; });
  if (after == regions_.begin()) return nullptr;
  const RamRegion& r = *--after;
  return gpa - r.gpa < r.size_bytes ? &r : nullptr;
}

uint8_t* GuestMemory::bytes(uint64_t gpa, uint64_t size_bytes, bool writable) const {
  const RamRegion* r = region_at(gpa);
  if (!r || (writable && r->read_only)) return nullptr;
  const uint64_t inside = gpa - r->gpa;
  if (size_bytes > r->size_bytes - inside) return nullptr;
  return mapped_[static_cast<size_t>(r - regions_.data())] + inside;
}

bool GuestMemory::copy_out(uint64_t gpa, std::span<uint8_t> to) const {
  while (!to.empty()) {
    const RamRegion* r = region_at(gpa);
    if (!r) return false;
    const uint64_t size = std::min<uint64_t>(to.size(), r->size_bytes - (gpa - r->gpa));
    copy_once(to.data(), bytes(gpa, size, false), size);
    to = to.subspan(size);
    gpa += size;  // regions don't wrap around
  }
  return true;
}

std::vector<FilePiece> GuestMemory::pieces(std::span<const gpusim_extent> extents,
                                           uint64_t size_bytes, bool writable,
                                           uint64_t most_pieces) const {
  std::vector<FilePiece> pieces;
  uint64_t left = size_bytes;
  const auto add = [&](const RamRegion& r, uint64_t inside, uint64_t size) {
    const int fd = files_[r.file].get();
    const uint64_t offset = r.offset + inside;
    if (!pieces.empty() && pieces.back().fd == fd &&
        pieces.back().offset + pieces.back().size_bytes == offset) {
      pieces.back().size_bytes += size;
      return;
    }
    if (pieces.size() == most_pieces)
      throw OffloadError(ENOMEM, fmt::format("the memory lies in too many pieces ({} are left, by "
                                             "the host's vm.max_map_count)",
                                             most_pieces));
    pieces.push_back({fd, offset, size});
  };
  for (const gpusim_extent& e : extents) {
    if (!whole_pages(e.gpa, e.size_bytes) || e.size_bytes == 0)
      throw OffloadError(
          EINVAL, fmt::format("extent {:#x}, {:#x} bytes: not whole pages", e.gpa, e.size_bytes));
    if (e.size_bytes > left)
      throw OffloadError(EINVAL, "the extents are larger than the range to be mapped");
    left -= e.size_bytes;
    for (uint64_t gpa = e.gpa, rest = e.size_bytes; rest != 0;) {
      const RamRegion* r = region_at(gpa);
      if (!r)
        throw OffloadError(EFAULT, fmt::format("extent {:#x}, {:#x} bytes: {:#x} is not guest RAM",
                                               e.gpa, e.size_bytes, gpa));
      if (writable && r->read_only)
        throw OffloadError(EACCES, fmt::format("guest memory at {:#x} is read-only", gpa));
      const uint64_t size = std::min(rest, r->size_bytes - (gpa - r->gpa));
      add(*r, gpa - r->gpa, size);
      gpa += size;
      rest -= size;
    }
  }
  if (left != 0) throw OffloadError(EINVAL, "the extents are smaller than the range to be mapped");
  return pieces;
}

uint64_t GuestMemory::size_bytes() const {
  uint64_t sum = 0;
  for (const RamRegion& r : regions_) sum += r.size_bytes;
  return sum;
}

}  // namespace gpusim::daemon
