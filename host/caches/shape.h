// A hierarchy of caches, as a file describes it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gpusim::host {

enum class Replacement : uint8_t { kLru, kTreePlru };

struct CacheShape {
  std::string name;           // "L1"
  uint64_t size_bytes = 0;    // of one instance
  uint32_t ways = 0;          // lines per set
  uint32_t cores = 1;         // that share one instance; 0: all
  Replacement replacement = Replacement::kLru;
  bool write_back = true;     // else written lines go on to the next level at once
  bool allocates_on_write = true;
  bool on_chip = true;        // an access served here is on-chip memory to the energy models

  uint64_t sets(uint32_t line_bytes) const { return size_bytes / line_bytes / ways; }
};

struct HierarchyShape {
  std::string name;  // of the file
  uint32_t line_bytes = 64;
  uint32_t multiprocessors = 0;  // of a GPU, for kernels of PTX; 0: not said
  std::vector<CacheShape> levels;  // nearest to the core first
};

// {"line": 64, "unit": "B", "levels": [{"name": "L1", "size": "32K", "ways": 4, "cores": 1, ...}]}
// docs/caches.md lists the keys. Throws Error that says what is wrong and where.
HierarchyShape parse_hierarchy(const std::string& text, const std::string& origin);
HierarchyShape load_hierarchy(const std::string& path);

}  // namespace gpusim::host
