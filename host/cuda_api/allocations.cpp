#include "host/cuda_api/allocations.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#define XXH_INLINE_ALL  // programs are linked without libxxhash
#include <xxhash.h>

namespace gpusim::cuda_api {
namespace {

constexpr size_t kPage = 4096, kSmall = 1 << 20, kMostResting = 64 << 20;
constexpr size_t kMostKept = 1 << 14;

constexpr size_t kLarge = 4 << 20;
// Large blocks of device memory begin at different places of a page: elements of several matrices
// at one index would all be in one set of the processor's first cache, and a load from one would
// wait for stores to the others, whose addresses have the same low 12 bits.
constexpr size_t kStep = 512, kSteps = kPage / kStep;

// With a page behind it that kernels have no right to: the engine's rights are by pages.
size_t padded(size_t size_bytes) { return (size_bytes + 2 * kPage - 1) / kPage * kPage; }

// Room for a block that begins `offset` behind a page. Null: there is none.
char* map_room(size_t size_bytes, size_t offset) {
  void* const mapped = ::mmap(nullptr, padded(size_bytes + offset), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped) + offset;
}

// The pages of a block, which may begin behind the first one's begin.
std::span<char> room_of(const Block& block) {
  const size_t offset = reinterpret_cast<uintptr_t>(block.address) % kPage;
  return {block.address - offset, padded(block.size_bytes + offset)};
}

// The digest with what the block holds: a sum, since host threads free in any order. Host memory
// does not count.
uint64_t add_to(uint64_t digest, const Block& block) {
  if (block.type == kHostMemory) return digest;
  return digest + XXH3_64bits(block.address, block.size_bytes);
}

}  // namespace

const char* name_of(MemoryType type) {
  static constexpr const char* kNames[] = {"memory", "host memory", "device memory",
                                           "managed memory"};
  return kNames[type];
}

std::string text_of(const Block& block) {
  return fmt::format("{} of {} bytes at {}{}", name_of(block.type), block.size_bytes,
                     static_cast<const void*>(block.address),
                     block.origin.empty() ? "" : fmt::format(" ({})", block.origin));
}

uint64_t available_bytes() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/meminfo", "re"), &std::fclose);
  char line[256];
  unsigned long long kib = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr)
    if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1) return uint64_t{kib} << 10;
  return uint64_t{1} << 30;
}

std::optional<Block> Allocations::allocate(size_t size_bytes, MemoryType type, std::string origin,
                                           unsigned flags) {
  const std::lock_guard lock(mutex_);
  if (size_bytes > most_bytes_ - std::min(most_bytes_, used_bytes_)) return std::nullopt;
  if (size_bytes > available_bytes()) return std::nullopt;
  const bool is_moved = type == kDeviceMemory && size_bytes >= kLarge;
  char* const address = map_room(size_bytes, is_moved ? ++large_blocks_ % kSteps * kStep : 0);
  if (address == nullptr) return std::nullopt;
  if (type != kHostMemory) used_bytes_ += size_bytes;
  const Block block{.address = address,
                    .size_bytes = size_bytes,
                    .type = type,
                    .flags = flags,
                    .origin = std::move(origin)};
  blocks_[reinterpret_cast<uintptr_t>(address)] = block;
  return block;
}

// Copies of the program may come before the block does: they find zeros.
char* Allocations::reserve_for_graph(size_t size_bytes) {
  if (size_bytes > SIZE_MAX - 2 * kPage) return nullptr;
  void* const mapped = ::mmap(nullptr, padded(size_bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
}

bool Allocations::allocate_of_graph(char* address, size_t size_bytes, std::string origin) {
  const std::lock_guard lock(mutex_);
  if (size_bytes > most_bytes_ - std::min(most_bytes_, used_bytes_)) return false;
  if (size_bytes > available_bytes()) return false;
  const auto [at, is_new] = blocks_.try_emplace(reinterpret_cast<uintptr_t>(address));
  if (!is_new) return false;
  at->second = {.address = address,
                .size_bytes = size_bytes,
                .type = kDeviceMemory,
                .is_of_graph = true,
                .origin = std::move(origin)};
  used_bytes_ += size_bytes;
  return true;
}

bool Allocations::add(void* address, size_t size_bytes, MemoryType type, std::string origin,
                      unsigned flags) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (size_bytes > UINTPTR_MAX - begin) return false;
  auto next = blocks_.lower_bound(begin);
  if (next != blocks_.end() && next->first < begin + size_bytes) return false;
  if (next != blocks_.begin() &&
      std::prev(next)->first + std::prev(next)->second.size_bytes > begin)
    return false;
  blocks_[begin] = {.address = static_cast<char*>(address),
                    .size_bytes = size_bytes,
                    .type = type,
                    .flags = flags,
                    .is_registered = true,
                    .origin = std::move(origin)};
  return true;
}

void Allocations::give_up(const Freed& freed) {
  if (!remembers_freed_) {
    ::munmap(freed.address, freed.size_bytes);
    return;
  }
  // The memory goes, its addresses stay taken.
  if (::mmap(freed.address, freed.size_bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return;
  kept_.push_back(freed);
  if (kept_.size() <= kMostKept) return;
  const auto begin = reinterpret_cast<uintptr_t>(kept_.front().address);
  freed_.erase(freed_.lower_bound(begin), freed_.lower_bound(begin + kPage));
  ::munmap(kept_.front().address, kept_.front().size_bytes);
  kept_.pop_front();
}

uint64_t Allocations::digest() const {
  const std::lock_guard lock(mutex_);
  uint64_t all = digest_;
  for (const auto& [address, block] : blocks_) all = add_to(all, block);
  return all;
}

void Allocations::release(const Block& block, const std::string& by) {
  if (has_digest_) digest_ = add_to(digest_, block);
  if (block.is_registered) return;
  if (block.type != kHostMemory) used_bytes_ -= block.size_bytes;
  if (block.is_of_graph) {
    ::madvise(block.address, padded(block.size_bytes), MADV_DONTNEED);
    return;
  }
  if (remembers_freed_) {
    Block& freed = freed_[reinterpret_cast<uintptr_t>(block.address)] = block;
    if (!by.empty()) freed.origin += (freed.origin.empty() ? "" : ", ") + by;
  }
  const std::span<char> room = room_of(block);
  if (block.size_bytes >= kSmall) return give_up({room.data(), room.size()});
  resting_.push_back({room.data(), room.size()});
  resting_bytes_ += room.size();
  while (resting_bytes_ > kMostResting) {
    resting_bytes_ -= resting_.front().size_bytes;
    give_up(resting_.front());
    resting_.pop_front();
  }
}

std::optional<Block> Allocations::remove(const void* address, const std::string& by) {
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(reinterpret_cast<uintptr_t>(address));
  if (at == blocks_.end()) return std::nullopt;
  Block block = std::move(at->second);
  blocks_.erase(at);
  release(block, by);
  return block;
}

std::optional<Block> Allocations::find_freed(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  auto at = freed_.upper_bound(wanted);
  if (at == freed_.begin()) return std::nullopt;
  --at;
  if (wanted - at->first >= at->second.size_bytes) return std::nullopt;
  return at->second;
}

std::optional<Block> Allocations::find(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  auto at = blocks_.upper_bound(wanted);
  if (at == blocks_.begin()) return std::nullopt;
  --at;
  if (wanted - at->first >= at->second.size_bytes) return std::nullopt;
  return at->second;
}

bool Allocations::has(const void* address, size_t size_bytes) const {
  const auto block = find(address);
  if (!block) return false;
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - block->address);
  return size_bytes <= block->size_bytes - offset;
}

uint64_t Allocations::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return std::min(most_bytes_ - std::min(most_bytes_, used_bytes_), available_bytes());
}

void Allocations::clear() {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, block] : blocks_) release(block, {});
  blocks_.clear();
}

}  // namespace gpusim::cuda_api
