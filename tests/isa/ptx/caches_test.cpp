// Caches behind warps, on streams made by hand.
#include <doctest/doctest.h>

#include <array>

#include "host/ptx/warp_caches.h"

namespace gpusim::ptx::test {
namespace {

using Counts = std::array<uint64_t, 4>;

// Two multiprocessors with one set of two lines each, written through; a shared level of eight.
const char* const kShape = R"({"line_bytes": 128, "multiprocessors": 2, "levels": [
  {"name": "L1", "size": 256, "ways": 2, "cores": 512, "write": "through", "write_miss": "around"},
  {"name": "L2", "size": 1024, "ways": 8, "cores": "all"}]})";

std::vector<uint64_t> addresses(uint64_t first, uint64_t step, size_t count = 32) {
  std::vector<uint64_t> all(count);
  for (size_t k = 0; k < count; ++k) all[k] = first + k * step;
  return all;
}

Counts level(const WarpCaches& caches, size_t number) {
  const CacheLevelCounts& l = caches.of_kernel().levels.at(number);
  return {l.reads, l.read_misses, l.writes, l.write_misses};
}

TEST_CASE("warps' accesses find what they left, on their multiprocessor or the shared level") {
  WarpCaches caches(host::parse_hierarchy(kShape, "test"));
  const CacheProfile& all = caches.of_kernel();
  const auto row = addresses(0x10000, 4);
  caches.begin_kernel();
  caches.access(0, row, 4, AccessKind::kLoad);  // from memory
  CHECK(level(caches, 0) == Counts{1, 1, 0, 0});
  CHECK(level(caches, 1) == Counts{1, 1, 0, 0});
  CHECK(all.off_chip_accesses == 32);
  caches.access(2, row, 4, AccessKind::kLoad);  // the same multiprocessor
  caches.access(1, row, 4, AccessKind::kLoad);  // the other one
  CHECK(level(caches, 0) == Counts{3, 2, 0, 0});
  CHECK(level(caches, 1) == Counts{2, 1, 0, 0});
  CHECK(all.off_chip_accesses == 32);
  // Written through; what is not there is written around.
  caches.access(0, row, 4, AccessKind::kStore);
  caches.access(0, addresses(0x20000, 4), 4, AccessKind::kStore);
  CHECK(level(caches, 0) == Counts{3, 2, 2, 1});
  CHECK(level(caches, 1) == Counts{2, 1, 2, 1});
  CHECK(all.memory_reads == 2);  // the shared level fetches what it writes
  CHECK(all.off_chip_accesses == 64);
  // Atomics go to the shared level, and are no loads or stores.
  caches.access(0, row, 4, AccessKind::kAtomic);
  CHECK(level(caches, 0) == Counts{3, 2, 2, 1});
  CHECK(level(caches, 1) == Counts{2, 1, 3, 1});
  CHECK(all.accesses == 5 * 32);
  // Eight lines push out the two that were written.
  caches.access(0, addresses(0x40000, 128, 8), 4, AccessKind::kLoad);
  CHECK(all.memory_writes == 2);
  // Over the end of a line, by one of four threads.
  const uint64_t before = all.off_chip_accesses;
  caches.access(0, addresses(0x50000 + 128 - 32, 8, 4), 16, AccessKind::kLoad);
  CHECK(all.off_chip_accesses == before + 4);
  CHECK(level(caches, 0) == Counts{3 + 8 + 2, 2 + 8 + 2, 2, 1});
}

TEST_CASE("a kernel begins with empty caches of its own, and the shared one as it was") {
  WarpCaches caches(host::parse_hierarchy(kShape, "test"));
  const auto row = addresses(0x10000, 4);
  caches.begin_kernel();
  caches.access(0, row, 4, AccessKind::kLoad);
  caches.begin_kernel();
  CHECK(caches.of_kernel().accesses == 0);
  caches.access(0, row, 4, AccessKind::kLoad);
  CHECK(level(caches, 0) == Counts{1, 1, 0, 0});
  CHECK(level(caches, 1) == Counts{1, 0, 0, 0});
  CHECK(caches.of_kernel().off_chip_accesses == 0);
}

}  // namespace
}  // namespace gpusim::ptx::test
