#include "host/ptx/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "device_sim/base/error.h"
#include "device_sim/core/memory_view.h"
#include "translator/ptx/memory_map.h"

namespace gpusim::ptx {
namespace {

// What lies below is not the kernels': a CTA's shared memory has addresses there.
constexpr uint64_t kLowest = uint64_t{1} << 32, kHighest = kLocalWindowBase;
static_assert(kCtaBase + kMostCtaBytes <= kLowest);

constexpr size_t kMostFreed = 1 << 16;  // remembered

uint64_t page_of(uint64_t address) { return address >> kPageShift; }

uint8_t* reserve_rights() {
  void* rights = mmap(nullptr, kHighest >> kPageShift, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (rights == MAP_FAILED)
    throw Error(fmt::format("cannot reserve {} GiB of addresses for page rights: {}",
                            kHighest >> kPageShift >> 30, std::strerror(errno)));
  return static_cast<uint8_t*>(rights);
}

}  // namespace

ProcessMemory::ProcessMemory() : rights_(reserve_rights()) {}

ProcessMemory::~ProcessMemory() {
  munmap(rights_, kHighest >> kPageShift);
  if (told_) munmap(told_, kHighest >> kPageShift);
}

void ProcessMemory::use(std::vector<LinearSpace*> spaces) {
  told_ = reserve_rights();
  spaces_ = std::move(spaces);
  for (const auto& [address, range] : ranges_) tell_spaces(address, range.size_bytes);
}

// All of them, or none.
void ProcessMemory::add_to_spaces(uint64_t address, uint64_t size_bytes, uint8_t flags) {
  size_t done = 0;
  try {
    for (; done < spaces_.size(); ++done) {
      spaces_[done]->enter();
      spaces_[done]->add(address, size_bytes, flags, false);
    }
  } catch (...) {
    remove_from_spaces(address, size_bytes, done);
    throw;
  }
}

// The first so many. All lose the pages, whatever a device says.
void ProcessMemory::remove_from_spaces(uint64_t address, uint64_t size_bytes, size_t count) {
  std::exception_ptr trouble;
  while (count-- != 0) {
    try {
      spaces_[count]->enter();
      spaces_[count]->remove(address, size_bytes);
    } catch (...) {
      trouble = std::current_exception();
    }
  }
  if (trouble) std::rethrow_exception(trouble);
}

void ProcessMemory::tell_spaces(uint64_t address, uint64_t size_bytes) {
  if (spaces_.empty()) return;
  const uint64_t end = page_of(address + size_bytes - 1) + 1;
  for (uint64_t p = page_of(address); p < end;) {
    uint64_t last = p;
    while (last < end && rights_[last] == rights_[p] && told_[last] == told_[p]) ++last;
    const uint64_t at = p << kPageShift, bytes = (last - p) << kPageShift;
    if (told_[p] != rights_[p]) {
      const bool was_told = told_[p] != 0;
      std::memset(told_ + p, 0, last - p);
      if (was_told) remove_from_spaces(at, bytes, spaces_.size());
      if (rights_[p] != 0) add_to_spaces(at, bytes, rights_[p]);
      std::memcpy(told_ + p, rights_ + p, last - p);
    }
    p = last;
  }
}

void ProcessMemory::set_rights(uint64_t address, uint64_t size_bytes, uint8_t flags) {
  for (uint64_t p = page_of(address); p <= page_of(address + size_bytes - 1); ++p)
    rights_[p] = flags;
}

void ProcessMemory::add(uint64_t address, uint64_t size_bytes, uint8_t flags, MemoryLabel label,
                        bool has_shadow) {
  if (size_bytes == 0) return;
  if (address < kLowest || address >= kHighest || size_bytes > kHighest - address)
    throw Error(
        fmt::format("memory at {:#x}, {} bytes: kernels reach only what lies above 4 GiB; "
                    "a program that is linked with -pie has its variables there",
                    address, size_bytes));
  auto old = freed_.lower_bound(address);
  if (old != freed_.begin() && std::prev(old)->first + std::prev(old)->second.size_bytes > address)
    --old;
  while (old != freed_.end() && old->first < address + size_bytes) old = freed_.erase(old);
  shadows_ += has_shadow ? 1 : 0;
  ranges_[address] = {size_bytes, flags, std::move(label),
                      has_shadow ? std::make_unique<MemoryShadow>(size_bytes) : nullptr};
  for (uint64_t p = page_of(address); p <= page_of(address + size_bytes - 1); ++p)
    rights_[p] |= flags;
  tell_spaces(address, size_bytes);
}

void ProcessMemory::remove(uint64_t address, const std::string& by) {
  const auto found = ranges_.find(address);
  if (found == ranges_.end()) return;
  const uint64_t size_bytes = found->second.size_bytes;
  if (found->second.shadow) {
    found->second.shadow.reset();
    --shadows_;
  }
  if (freed_.size() == kMostFreed) freed_.erase(freed_.begin());
  std::string& origin = found->second.label.origin;
  if (!by.empty()) origin += (origin.empty() ? "" : ", ") + by;
  freed_[address] = std::move(found->second);
  ranges_.erase(found);
  set_rights(address, size_bytes, 0);
  // Pages at both ends may have others' memory, too.
  const uint64_t begin = page_of(address) << kPageShift;
  const uint64_t end = (page_of(address + size_bytes - 1) + 1) << kPageShift;
  auto it = ranges_.lower_bound(begin);
  if (it != ranges_.begin()) --it;
  for (; it != ranges_.end() && it->first < end; ++it)
    for (uint64_t p = page_of(it->first); p <= page_of(it->first + it->second.size_bytes - 1); ++p)
      if (p >= page_of(begin) && p < page_of(end)) rights_[p] |= it->second.flags;
  tell_spaces(address, size_bytes);
  ++removals_;
}

void ProcessMemory::configure(MachineConfig& config) const {
  config.linear_base = kLowest;
  config.linear_size = kHighest - kLowest;
  config.linear_storage = reinterpret_cast<uint8_t*>(kLowest);
  config.linear_rights = rights_ + page_of(kLowest);
}

std::string ProcessMemory::describe(uint64_t address) const {
  if (address < kCtaBase) return "a null pointer, or an offset from one";
  if (address < kLowest) return "beyond the shared memory of the block";
  if (address >= kLocalWindowBase)
    return "beyond the thread's local memory; if that is a stack that overflows, "
           "cudaDeviceSetLimit(cudaLimitStackSize, ...) makes it larger";
  if (const auto* freed = freed_at(address); freed != nullptr && find(address).end == 0)
    return fmt::format("in {}, which was freed", name(freed->first, freed->second));
  const auto next = ranges_.upper_bound(address);
  if (next != ranges_.begin()) {
    const auto& [begin, range] = *std::prev(next);
    const uint64_t end = begin + range.size_bytes;
    if (address < end) return fmt::format("in {}, which is read-only", name(begin, range));
    if (next == ranges_.end() || address - end <= next->first - address)
      return fmt::format("{} bytes behind the end of {}", address - end, name(begin, range));
  }
  if (next == ranges_.end()) return "no memory is registered";
  return fmt::format("{} bytes before {}", next->first - address, name(next->first, next->second));
}

ProcessMemory::Found ProcessMemory::find(uint64_t address) const {
  const auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return {};
  const auto& [begin, range] = *std::prev(it);
  if (address - begin >= range.size_bytes) return {};
  return {begin, begin + range.size_bytes, range.shadow.get(), range.flags};
}

std::string ProcessMemory::name(uint64_t begin, const Range& range) {
  return fmt::format("{} of {} bytes at {:#x}{}",
                     range.label.name.empty() ? "memory" : range.label.name, range.size_bytes,
                     begin,
                     range.label.origin.empty() ? "" : fmt::format(" ({})", range.label.origin));
}

std::string ProcessMemory::name(uint64_t address) const {
  const auto it = ranges_.upper_bound(address);
  return it == ranges_.begin() ? "memory" : name(std::prev(it)->first, std::prev(it)->second);
}

const std::pair<const uint64_t, ProcessMemory::Range>* ProcessMemory::freed_at(
    uint64_t address) const {
  const auto it = freed_.upper_bound(address);
  if (it == freed_.begin()) return nullptr;
  const auto& range = *std::prev(it);
  return address - range.first < range.second.size_bytes ? &range : nullptr;
}

bool ProcessMemory::is_freed(uint64_t address) const {
  return freed_at(address) != nullptr && find(address).end == 0;
}

void ProcessMemory::mark_written(uint64_t address, uint64_t size_bytes) {
  const Found f = find(address);
  if (f.shadow != nullptr) f.shadow->mark(address - f.begin, std::min(size_bytes, f.end - address));
}

void ProcessMemory::copy_written(uint64_t to, uint64_t from, uint64_t size_bytes) {
  const Found target = find(to), source = find(from);
  if (target.shadow == nullptr) return;
  if (source.shadow == nullptr) return mark_written(to, size_bytes);
  const uint64_t size = std::min({size_bytes, target.end - to, source.end - from});
  if (source.shadow->is_written(from - source.begin, size)) return mark_written(to, size);
  for (uint64_t k = 0; k < size; ++k)
    if (source.shadow->is_written(from - source.begin + k, 1))
      target.shadow->mark(to - target.begin + k, 1);
}

void MemoryShadow::mark(uint64_t offset, uint64_t size_bytes) {
  uint8_t* const bits = bits_.data();
  uint64_t at = offset;
  const uint64_t end = offset + size_bytes;
  for (; at < end && at % 8 != 0; ++at) bits[at / 8] |= static_cast<uint8_t>(1 << at % 8);
  if (at < end) {
    std::memset(&bits[at / 8], 0xff, (end - at) / 8);
    at += (end - at) / 8 * 8;
  }
  for (; at < end; ++at) bits[at / 8] |= static_cast<uint8_t>(1 << at % 8);
}

bool MemoryShadow::is_written(uint64_t offset, uint64_t size_bytes) const {
  uint64_t at = offset;
  const uint64_t end = offset + size_bytes;
  for (; at < end && at % 8 != 0; ++at)
    if (!is_written(at)) return false;
  for (; at + 8 <= end; at += 8)
    if (bits_.data()[at / 8] != 0xff) return false;
  for (; at < end; ++at)
    if (!is_written(at)) return false;
  return true;
}

bool MemoryShadow::is_blank(uint64_t offset, uint64_t size_bytes) const {
  for (uint64_t at = offset; at < offset + size_bytes; ++at)
    if (is_written(at)) return false;
  return true;
}

Pages::Pages(uint64_t size_bytes) : size_bytes_((size_bytes + kPageSize - 1) & ~(kPageSize - 1)) {
  if (size_bytes_ == 0) size_bytes_ = kPageSize;
  // Behind it a page that is nobody's: what lies next in the process is not reached by a step.
  void* p = mmap(nullptr, size_bytes_ + kPageSize, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw Error(
        fmt::format("cannot have {} bytes of memory: {}", size_bytes_, std::strerror(errno)));
  data_ = static_cast<uint8_t*>(p);
}

Pages::~Pages() {
  if (data_) munmap(data_, size_bytes_ + kPageSize);
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

}  // namespace gpusim::ptx
