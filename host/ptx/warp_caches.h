// A GPU's data caches beside a kernel: which lines they hold, not how long anything takes. Warps'
// accesses to global memory feed them. CTAs are dealt out to the multiprocessors by their numbers.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "device_sim/uir/journal.h"
#include "host/caches/cache.h"
#include "host/caches/shape.h"

namespace gpusim::ptx {

/// Of one level, over all of its caches. In lines.
struct CacheLevelCounts {
  std::string name;
  uint64_t reads = 0, read_misses = 0, writes = 0, write_misses = 0;
};

struct CacheProfile {
  uint32_t line_bytes = 0;
  std::vector<CacheLevelCounts> levels;          // nearest to the multiprocessor first
  uint64_t memory_reads = 0, memory_writes = 0;  // lines
  // Loads and stores by threads, without atomics, and those that no level on the chip served.
  uint64_t accesses = 0, off_chip_accesses = 0;
  CacheProfile& operator+=(const CacheProfile& o);
};

nlohmann::ordered_json cache_profile_json(const CacheProfile& profile);
CacheProfile cache_profile_of_json(const nlohmann::ordered_json& json);
/// A line for each level.
std::string cache_profile_text(const CacheProfile& profile);

class WarpCaches {
 public:
  /// Throws Error if the file does not say how many multiprocessors there are.
  explicit WarpCaches(host::HierarchyShape shape);
  /// A multiprocessor's own caches hold nothing when a kernel begins; shared ones keep their lines.
  void begin_kernel();
  /// A warp of CTA `cta` accesses so many bytes at each address together.
  void access(uint64_t cta, std::span<const uint64_t> addresses, uint32_t bytes, AccessKind kind);
  /// Since begin_kernel().
  const CacheProfile& of_kernel() const { return counts_; }

 private:
  // Whether a level on the chip served it.
  bool request(size_t multiprocessor, size_t level, uint64_t line, bool is_write);

  const host::HierarchyShape shape_;
  uint32_t line_shift_ = 0;
  size_t private_levels_ = 0;                      // the first so many
  std::vector<std::vector<host::Cache>> private_;  // per multiprocessor and level
  std::vector<host::Cache> shared_;
  CacheProfile counts_;
};

}  // namespace gpusim::ptx
