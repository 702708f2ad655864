// What caches did, as text for people and as JSON for programs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "host/caches/hierarchy.h"

namespace gpusim::host {

std::string caches_text(const HierarchyShape& shape, const CacheReport& report);
nlohmann::ordered_json caches_json(const HierarchyShape& shape, const CacheReport& report);

// Of memory instructions, those that were served on the chip, as a class of its own.
inline void place_memory(ClassCounts& classes, uint64_t off_chip) {
  uint64_t& all = classes[static_cast<size_t>(InsnClass::kOffChipMemory)];
  off_chip = std::min(off_chip, all);
  classes[static_cast<size_t>(InsnClass::kOnChipMemory)] += all - off_chip;
  all = off_chip;
}

}  // namespace gpusim::host
