#include "host/offload/program_image.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "host/memory_plan.h"
#include "device_sim/core/memory_view.h"
#include "host/offload/offload_error.h"

namespace gpusim::offload {
namespace {

using host::page_down;

// Segments need not begin and end at pages: a page has the rights of all that share it.
std::map<uint64_t, uint8_t> rights_of_pages(const Module& module) {
  constexpr uint64_t kMost = uint64_t{4} << 30;
  uint64_t size_bytes = 0;
  std::map<uint64_t, uint8_t> rights;
  for (const Segment& s : module.segments) {
    if (s.size_bytes > kMost - size_bytes)
      throw OffloadError(ENOMEM, fmt::format("the program takes more than {} GiB", kMost >> 30));
    size_bytes += s.size_bytes;
    for (uint64_t page = page_down(s.address); page < s.address + s.size_bytes; page += kPageSize)
      rights[page] |= s.flags;
  }
  return rights;
}

void write_all(int fd, std::span<const uint8_t> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw OffloadError(ENOMEM, fmt::format("no memory for a program: {}", std::strerror(errno)));
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

}  // namespace

ProgramImage::ProgramImage(const Module& module, bool live_data) {
  uint64_t size_bytes = 0;
  for (const auto& [page, rights] : rights_of_pages(module)) {
    if (live_data && (rights & kWrite)) {
      if (live_.empty() || live_.back().address + live_.back().size_bytes != page)
        live_.push_back({page, 0});
      live_.back().size_bytes += kPageSize;
      continue;
    }
    if (parts_.empty() || parts_.back().rights != rights ||
        parts_.back().address + parts_.back().piece.size_bytes != page)
      parts_.push_back({page, {-1, size_bytes, 0}, rights});
    parts_.back().piece.size_bytes += kPageSize;
    size_bytes += kPageSize;
  }
  fd_ = memfd_create("gpusim-program", MFD_CLOEXEC);
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(size_bytes)) != 0) {
    const int error = errno;
    if (fd_ >= 0) close(fd_);
    throw OffloadError(error, fmt::format("no memory for a program: {}", std::strerror(error)));
  }
  for (Part& part : parts_) {
    part.piece.fd = fd_;
    const uint64_t end = part.address + part.piece.size_bytes;
    for (const Segment& s : module.segments) {
      const uint64_t from = std::max(s.address, part.address);
      const uint64_t to = std::min(s.address + s.bytes.size(), end);
      if (from < to)
        write_all(fd_, std::span(s.bytes).subspan(from - s.address, to - from),
                  part.piece.offset + (from - part.address));
    }
  }
}

ProgramImage::~ProgramImage() { close(fd_); }

void ProgramImage::install(DeviceMemory& memory) {
  size_t done = 0;
  try {
    for (; done < parts_.size(); ++done)
      memory.place_image(parts_[done].address, parts_[done].piece, parts_[done].rights);
  } catch (...) {
    while (done-- > 0) memory.remove_image(parts_[done].address);
    throw;
  }
}

void ProgramImage::remove(DeviceMemory& memory) {
  for (const Part& p : parts_) memory.remove_image(p.address);
}

bool ProgramImage::overlaps(uint64_t address, uint64_t size_bytes) const {
  const auto meets = [&](uint64_t begin, uint64_t size) {
    return begin < address + size_bytes && address < begin + size;
  };
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& p) { return meets(p.address, p.piece.size_bytes); }) ||
         std::any_of(live_.begin(), live_.end(),
                     [&](const Range& r) { return meets(r.address, r.size_bytes); });
}

bool ProgramImage::overlaps(const ProgramImage& other) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& p) { return other.overlaps(p.address, p.piece.size_bytes); }) ||
         std::any_of(live_.begin(), live_.end(),
                     [&](const Range& r) { return other.overlaps(r.address, r.size_bytes); });
}

}  // namespace gpusim::offload
