#include "standin/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "emulated/reach.h"
#include "emulated/runtime.h"
#include "standin/chip.h"
#include "standin/random.h"
#include "standin/report.h"

namespace cuda_emulated {
namespace {

constexpr size_t kPage = 4096, kAlignment = 256, kMiB = size_t{1} << 20;
constexpr size_t kHugeFrom = 8 * kMiB;
// Closings of memory that always happen, and then one in so many.
constexpr uint32_t kAlwaysClosed = 200, kClosedOneIn = 16;

struct Allocation {
  size_t bytes;
  uint8_t* mapping;  // a guard page, then whole pages that end in the allocation, then a guard page
  size_t mapping_bytes;
  int device;
};
std::map<uintptr_t, Allocation> live;
std::map<uintptr_t, size_t> freed;  // where they were
constexpr int kNone = -1;
int open_device = kNone;  // whose memory is open
int openers = 0;
uint32_t closings = 0;
uint64_t allocations = 0;  // ever made

uint8_t* pages(const Allocation& a) { return a.mapping + kPage; }
size_t pages_bytes(const Allocation& a) { return a.mapping_bytes - 2 * kPage; }

void protect(const Allocation& a) {
  mprotect(pages(a), pages_bytes(a), a.device == open_device ? PROT_READ | PROT_WRITE : PROT_NONE);
}
void open_memory_of(int device) {
  if (device == open_device) return;
  open_device = device;
  for (const auto& [_, a] : live) protect(a);
}

size_t used_bytes() {
  size_t used = 0;
  for (const auto& [_, a] : live)
    if (a.device == current_device()) used += a.bytes;
  return used;
}

// Says so, and gives the process its status, if the program ends without freeing what it allocated.
void report_leaks() {
  if (live.empty() || sticky_error() != 0) return;
  size_t bytes = 0;
  for (const auto& [_, a] : live) bytes += a.bytes;
  report(cudaErrorMemoryAllocation, std::to_string(live.size()) +
                                        " allocations of device memory, " + std::to_string(bytes) +
                                        " bytes, were never freed");
  std::fflush(nullptr);
  _exit(kReportedStatus);
}

void write_allocations() {
  std::FILE* const file = std::fopen(std::getenv("GPUSIM_EMULATED_ALLOCATIONS"), "w");
  if (!file) return;
  std::fprintf(file, "%llu\n", static_cast<unsigned long long>(allocations));
  std::fclose(file);
}

uintptr_t number(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// The last one that begins at or below `p`.
template <class Map>
auto below(Map& map, const void* p) {
  auto it = map.upper_bound(number(p));
  return it == map.begin() ? map.end() : std::prev(it);
}

}  // namespace

void* allocate(size_t bytes) {
  static const bool looks_for_leaks = std::atexit(report_leaks) == 0;
  static const bool tells_how_many =
      std::getenv("GPUSIM_EMULATED_ALLOCATIONS") && std::atexit(write_allocations) == 0;
  static_cast<void>(looks_for_leaks);
  static_cast<void>(tells_how_many);
  ++allocations;
  if (bytes > free_bytes()) return nullptr;
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  Allocation a{bytes, nullptr, (size + kPage - 1) / kPage * kPage + 2 * kPage,
               current_device()};
  void* const mapping = mmap(nullptr, a.mapping_bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  a.mapping = static_cast<uint8_t*>(mapping);
  mprotect(pages(a), pages_bytes(a), PROT_READ | PROT_WRITE);
  if (bytes >= kHugeFrom) madvise(pages(a), pages_bytes(a), MADV_HUGEPAGE);
  uint8_t* const end = pages(a) + pages_bytes(a);
  const size_t part = std::min(pages_bytes(a), kMiB);
  std::memset(pages(a), kPoison, part);
  std::memset(end - part, kPoison, part);
  protect(a);
  live.emplace(number(end - size), a);
  freed.erase(freed.lower_bound(number(mapping)), freed.lower_bound(number(end)));
  return end - size;
}

bool free_memory(void* p) {
  const auto it = live.find(number(p));
  if (it == live.end()) return false;
  forget_reach();
  munmap(it->second.mapping, it->second.mapping_bytes);
  freed[it->first] = it->second.bytes;
  live.erase(it);
  return true;
}

void free_all_memory() {
  while (!live.empty()) free_memory(reinterpret_cast<void*>(live.begin()->first));
}

size_t free_bytes() { return chip().memory_bytes - used_bytes(); }

bool is_device_memory(const void* p) {
  const auto it = below(live, p);
  return it != live.end() && number(p) < it->first + std::max<size_t>(it->second.bytes, 1);
}

std::pair<uintptr_t, size_t> allocation_of(const void* p) {
  const auto it = below(live, p);
  return {it->first, it->second.bytes};
}

std::string range_fault(const void* p, size_t bytes) {
  if (bytes == 0) return {};
  const auto it = below(live, p);
  if (it != live.end() && number(p) - it->first < it->second.bytes &&
      bytes <= it->second.bytes - (number(p) - it->first) &&
      it->second.device == current_device())
    return {};
  return std::to_string(bytes) + " bytes from " + describe_address(p) + ", while device " +
         std::to_string(current_device()) + " is current";
}

std::string describe_address(const void* p) {
  const auto near = [&](uintptr_t begin, size_t size, const std::string& what) {
    return "offset " + std::to_string(number(p) - begin) + " of " + std::to_string(size) +
           " bytes of device memory" + what;
  };
  const auto it = below(live, p);
  if (it != live.end() && number(p) < number(it->second.mapping) + it->second.mapping_bytes)
    return near(it->first, it->second.bytes,
                chips().size() > 1 ? " " + std::to_string(it->second.device) : "");
  const auto old = below(freed, p);
  if (old != freed.end() && number(p) - old->first < old->second + kPage)
    return near(old->first, old->second, " that were freed");
  const auto next = live.upper_bound(number(p));
  if (next != live.end() && number(p) >= number(next->second.mapping))
    return std::to_string(next->first - number(p)) + " bytes before " +
           std::to_string(next->second.bytes) + " bytes of device memory";
  return "an address that is no device memory";
}

void fill(void* p, uint8_t value, size_t bytes) {
  const uintptr_t first = (number(p) + kPage - 1) / kPage * kPage;
  const uintptr_t last = (number(p) + bytes) / kPage * kPage;
  if (value != 0 || last < first + kMiB) {
    std::memset(p, value, bytes);
    return;
  }
  std::memset(p, 0, first - number(p));
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  std::memset(reinterpret_cast<void*>(last), 0, number(p) + bytes - last);
}

std::string overrun() {
  for (const auto& [begin, a] : live) {
    if (a.device != current_device()) continue;
    const uint8_t* const end = pages(a) + pages_bytes(a);
    for (auto* p = reinterpret_cast<const uint8_t*>(begin + a.bytes); p < end; ++p)
      if (*p != kPoison) return describe_address(p);
  }
  return {};
}

OpenMemory::OpenMemory() {
  if (openers++ == 0) open_memory_of(current_device());
}

OpenMemory::~OpenMemory() {
  if (--openers != 0) return;
  if (closings++ < kAlwaysClosed || chance().below(kClosedOneIn) == 0) open_memory_of(kNone);
}

}  // namespace cuda_emulated
