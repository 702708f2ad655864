#include "host/linux/shared_mappings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "device_sim/base/error.h"
#include "device_sim/core/memory_view.h"

namespace gpusim::host {
namespace {

// Each may take three of the host's mappings (vm.max_map_count: 65,530 by default).
constexpr size_t kMostMappings = 16384;

// A handler of SIGBUS can be given nothing else.
std::atomic<SharedMappings*> watched{nullptr};
struct sigaction action_before;

}  // namespace

// The table of mappings does not change while guest memory is accessed.
bool SharedMappings::survive(uintptr_t host_address) {
  const uintptr_t offset = host_address - reinterpret_cast<uintptr_t>(storage_);
  if (offset >= size_bytes_) return false;
  const uint64_t page = (base_ + offset) & ~(kPageSize - 1);
  const Mapping* const mapping = find(page, kPageSize);
  if (!mapping) return false;
  // All that follows at once: single pages could use up the mappings that a process may have. But
  // only as far as the guest's permissions are the same: the host's pages carry them.
  const uint8_t rights = rights_of_(page);
  uint64_t end = page + kPageSize;
  while (end < mapping->end && rights_of_(end) == rights) end += kPageSize;
  const int protection = rights == kRead || rights == (kRead | kExecute) ? PROT_READ
                                                                        : PROT_READ | PROT_WRITE;
  void* const zeros = ::mmap(pointer(page), end - page, protection,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (zeros == MAP_FAILED) return false;
  std::atomic_ref<uint64_t> lost(mapping->lost);
  uint64_t lowest = lost;
  while ((lowest == 0 || page < lowest) && !lost.compare_exchange_weak(lowest, page)) {
  }
  any_lost_ = true;
  return true;
}

void SharedMappings::on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  SharedMappings* const mappings = watched;
  if (info->si_code == BUS_ADRERR && mappings &&
      mappings->survive(reinterpret_cast<uintptr_t>(info->si_addr))) {
    errno = error;
    return;
  }
  if (action_before.sa_flags & SA_SIGINFO)
    action_before.sa_sigaction(signal, info, context);
  else
    std::signal(signal, SIG_DFL);  // the access is repeated, and ends the program
}

SharedMappings::~SharedMappings() {
  if (!is_watched_) return;
  watched = nullptr;
  sigaction(SIGBUS, &action_before, nullptr);
}

int SharedMappings::place(const Mapping& mapping) const {
  const int protection = PROT_READ | (mapping.is_writable ? PROT_WRITE : 0);
  void* const at = ::mmap(pointer(mapping.begin), mapping.end - mapping.begin, protection,
                          MAP_SHARED | MAP_FIXED, mapping.file->host_fd(),
                          static_cast<off_t>(mapping.offset));
  return at == MAP_FAILED ? errno : 0;
}

int SharedMappings::map(uint64_t address, uint64_t size_bytes, const FileRef& file, uint64_t offset,
                        bool to_write) {
  if (!are_possible() || address < base_ || address - base_ > size_bytes_ ||
      size_bytes > size_bytes_ - (address - base_))
    return ENODEV;
  if (mappings_.size() >= kMostMappings) return ENOMEM;
  const int flags = ::fcntl(file->host_fd(), F_GETFL);
  if (flags < 0) return errno;
  const int mode = flags & O_ACCMODE;
  if (mode == O_WRONLY || (to_write && mode != O_RDWR)) return EACCES;
  if (!is_watched_) {
    on_first_();
    watched = this;
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGBUS, &action, &action_before);
    is_watched_ = true;
  }
  struct stat status {};
  if (::fstat(file->host_fd(), &status) < 0) return errno;
  Mapping mapping{address, address + size_bytes, file, offset, mode == O_RDWR,
                  status.st_dev, status.st_ino};
  int error = place(mapping);
  if (error == EPERM && !to_write && mapping.is_writable) {  // sealed against writing
    mapping.is_writable = false;
    error = place(mapping);
  }
  if (error != 0) return error;
  // A mapping that has grown is one.
  if (const auto next = mappings_.lower_bound(address); next != mappings_.begin()) {
    Mapping& before = std::prev(next)->second;
    if (before.end == address && before.file == file && before.is_writable == mapping.is_writable &&
        before.offset + (before.end - before.begin) == offset) {
      before.end = mapping.end;
      return 0;
    }
  }
  mappings_[address] = mapping;
  return 0;
}

std::vector<SharedMappings::Mapping> SharedMappings::overlapping(uint64_t address,
                                                                 uint64_t size_bytes) const {
  std::vector<Mapping> list;
  auto it = mappings_.lower_bound(address);
  if (it != mappings_.begin() && std::prev(it)->second.end > address) --it;
  for (; it != mappings_.end() && it->first < address + size_bytes; ++it) list.push_back(it->second);
  return list;
}

const SharedMappings::Mapping* SharedMappings::find(uint64_t address, uint64_t size_bytes) const {
  const auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return nullptr;
  const Mapping& mapping = std::prev(next)->second;
  return mapping.end > address && size_bytes <= mapping.end - address ? &mapping : nullptr;
}

void SharedMappings::unmap(uint64_t address, uint64_t size_bytes) {
  const uint64_t end = address + size_bytes;
  for (const Mapping& old : overlapping(address, size_bytes)) {
    const uint64_t first = std::max(old.begin, address), last = std::min(old.end, end);
    void* const got = ::mmap(pointer(first), last - first, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    // The guest's stores must not reach a file that it no longer maps.
    if (got == MAP_FAILED)
      throw Error(fmt::format("cannot unmap a file of the guest: {}", std::strerror(errno)));
    mappings_.erase(old.begin);
    if (old.begin < first) {
      Mapping left = old;
      left.end = first;
      if (left.lost >= first) left.lost = 0;
      mappings_[left.begin] = left;
    }
    if (last < old.end) {
      Mapping right = old;
      right.begin = last;
      if (right.lost != 0) right.lost = std::max(right.lost, last);
      right.offset += last - old.begin;
      mappings_[right.begin] = right;
    }
  }
}

int SharedMappings::sync(uint64_t address, uint64_t size_bytes) const {
  for (const Mapping& m : overlapping(address, size_bytes)) {
    const uint64_t first = std::max(m.begin, address);
    const uint64_t last = std::min(m.end, address + size_bytes);
    if (::msync(pointer(first), last - first, MS_SYNC) < 0) return errno;
  }
  return 0;
}

std::optional<FutexPlace> SharedMappings::place_of(uint64_t address) const {
  const Mapping* const m = find(address, sizeof(uint32_t));
  if (!m) return std::nullopt;
  return FutexPlace{m->device, m->inode, m->offset + (address - m->begin)};
}

uint64_t SharedMappings::lowest_address(const FutexPlace& place) const {
  for (const auto& [begin, m] : mappings_)
    if (m.device == place.device && m.inode == place.inode && place.offset >= m.offset &&
        place.offset - m.offset < m.end - begin)
      return begin + (place.offset - m.offset);
  return 0;
}

uint32_t* SharedMappings::word(uint64_t address) const {
  const Mapping* const m = find(address, sizeof(uint32_t));
  return m && m->is_writable ? reinterpret_cast<uint32_t*>(pointer(address)) : nullptr;
}

std::vector<uint64_t> SharedMappings::take_bus_errors() {
  std::vector<uint64_t> addresses;
  if (!any_lost_.exchange(false)) return addresses;
  for (const auto& [begin, mapping] : mappings_) {
    const uint64_t lost = std::exchange(mapping.lost, 0);
    if (lost == 0) continue;
    addresses.push_back(lost);
    Mapping rest = mapping;
    rest.begin = lost;
    rest.offset += lost - begin;
    place(rest);
  }
  return addresses;
}

}  // namespace gpusim::host
