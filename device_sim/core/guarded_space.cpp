#include "device_sim/core/guarded_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "device_sim/core/zones.h"

namespace gpusim {
namespace {

// How much address space one machine may reserve, of the 2^47 bytes that processes commonly have.
constexpr uint64_t kMostReserved = uint64_t{1} << 44;

// What the host allows; nothing: no protection of the host's says it.
std::optional<int> protection_of(uint8_t rights) {
  if (rights & kWrite) return rights & kRead ? std::optional(PROT_READ | PROT_WRITE) : std::nullopt;
  return rights & kRead ? PROT_READ : PROT_NONE;
}

// Calls f(first page, end) for the parts of [first, end) that are in a zone.
template <class F>
void for_zones(const MemoryView& view, uint64_t first, uint64_t end, F f) {
  const auto part = [&](uint64_t base, uint64_t size) {
    const uint64_t from = std::max(first, base >> kPageShift);
    const uint64_t to = std::min(end, (base + size) >> kPageShift);
    if (from < to) f(from, to);
  };
  part(view.linear_base, view.linear_size);
  part(view.window_base, view.windows_size);
}

uint8_t rights_of(const MemoryView& view, uint64_t page) {
  const PageFlag flag = page_flag(view, 0, page << kPageShift);
  return (flag.zone == Zone::kLinear ? view.linear_pages : view.window_pages)[flag.index];
}

// The end of the run of pages with the first one's rights.
uint64_t run_end(const MemoryView& view, uint64_t first, uint64_t end, uint8_t rights) {
  uint64_t page = first + 1;
  if (in_linear(view, first << kPageShift)) {
    // Most pages have no rights and lie together: eight at a time.
    const uint64_t base = view.linear_base >> kPageShift;
    const uint64_t same = uint64_t{0x0101010101010101} * rights;
    for (uint64_t eight; page + 8 <= end; page += 8) {
      std::memcpy(&eight, view.linear_pages + (page - base), sizeof eight);
      if (eight != same) break;
    }
  }
  while (page < end && rights_of(view, page) == rights) ++page;
  return page;
}

// A file that the guest mapped and may not write stays so.
void make_accessible(uint8_t* p, uint64_t size_bytes) {
  if (size_bytes == 0 || mprotect(p, size_bytes, PROT_READ | PROT_WRITE) == 0) return;
  if (size_bytes <= kPageSize) return void(mprotect(p, size_bytes, PROT_READ));
  const uint64_t half = (size_bytes / 2 + kPageSize - 1) & ~(kPageSize - 1);
  make_accessible(p, half);
  make_accessible(p + half, size_bytes - half);
}

}  // namespace

GuardedSpace::~GuardedSpace() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_size_);
}

void GuardedSpace::swap(GuardedSpace& other) {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_size_, other.mapping_size_);
  std::swap(base_, other.base_);
  std::swap(limit_, other.limit_);
  std::swap(is_guarded_, other.is_guarded_);
  std::swap(runs_, other.runs_);
  std::swap(most_runs_, other.most_runs_);
}

bool GuardedSpace::reserve(const MemoryView& view) {
  const uint64_t limit =
      std::max(view.linear_base + view.linear_size, view.window_base + view.windows_size);
  if (view.is_private || limit > kMostReserved || sysconf(_SC_PAGESIZE) != kPageSize ||
      ((view.linear_base | view.linear_size | view.window_base) & (kPageSize - 1)) != 0)
    return false;
  const uint64_t size = limit + 2 * DirectMemory::kMargin;
  void* const p =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  GuardedSpace space;
  space.mapping_ = static_cast<uint8_t*>(p);
  space.mapping_size_ = size;
  space.base_ = space.mapping_ + DirectMemory::kMargin;
  space.limit_ = limit;
  space.most_runs_ = most_runs_;
  swap(space);
  return true;
}

uint8_t* GuardedSpace::map(uint64_t address, uint64_t size_bytes) {
  if (mapping_ == nullptr) return nullptr;
  void* const p = mmap(base_ + address, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
}

bool GuardedSpace::apply(const MemoryView& view, const Pages& pages) {
  bool done = true;
  for_zones(view, pages.first, pages.end, [&](uint64_t first, uint64_t end) {
    for (uint64_t page = first; done && page < end;) {
      const uint8_t rights = rights_of(view, page);
      const uint64_t next = run_end(view, page, end, rights);
      const std::optional<int> protection = protection_of(rights);
      done = ++runs_ <= most_runs_ && protection &&
             mprotect(base_ + (page << kPageShift), (next - page) << kPageShift, *protection) == 0;
      page = next;
    }
  });
  return done;
}

bool GuardedSpace::guard(const MemoryView& view) {
  if (mapping_ == nullptr) return false;
  runs_ = 0;
  is_guarded_ = true;
  const bool done = apply(view, {0, limit_ >> kPageShift});
  // Counting takes a while: there must be room for many changes until the next time.
  if (!done || runs_ > most_runs_ - most_runs_ / 4) open(view);
  return is_guarded_;
}

bool GuardedSpace::update(const MemoryView& view, uint64_t address, uint64_t size_bytes) {
  if (size_bytes == 0) return true;
  const Pages pages{address >> kPageShift, ((address + size_bytes - 1) >> kPageShift) + 1};
  ++runs_;  // one may have been cut in two
  if (apply(view, pages)) return true;
  // Runs that were joined again still count: count anew.
  return guard(view);
}

void GuardedSpace::open(const MemoryView& view) {
  if (std::exchange(is_guarded_, false)) open_range(view, 0, limit_);
}

void GuardedSpace::open_range(const MemoryView& view, uint64_t address, uint64_t size_bytes) {
  if (size_bytes == 0) return;
  for_zones(view, address >> kPageShift, ((address + size_bytes - 1) >> kPageShift) + 1,
            [this](uint64_t first, uint64_t end) {
              make_accessible(base_ + (first << kPageShift), (end - first) << kPageShift);
            });
}

}  // namespace gpusim
