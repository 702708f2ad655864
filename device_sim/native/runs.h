// Accesses of a strand whose addresses differ from each other by constants: one check of
// permissions serves them all.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "device_sim/uir/access.h"
#include "device_sim/uir/uop.h"

namespace gpusim::native {

struct AccessRun {
  uint32_t first = 0;         // micro-op that checks
  uint32_t count = 0;         // accesses
  int64_t low = 0, high = 0;  // bytes [low, high), from the first access's address
  bool writes = false;
};
struct AccessPlace {
  uint32_t run = 0;
  int64_t offset = 0;  // from the first access's address
};

class AccessRuns {
 public:
  // Of the micro-ops [begin, end).
  AccessRuns(const Uop* uops, uint32_t begin, uint32_t end);
  // Null if the access is alone.
  const AccessPlace* find(uint32_t uop) const;
  const AccessRun& run(const AccessPlace& place) const { return runs_[place.run]; }

 private:
  std::vector<AccessRun> runs_;
  std::unordered_map<uint32_t, AccessPlace> places_;
};

}  // namespace gpusim::native
