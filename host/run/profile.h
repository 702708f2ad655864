// Where in the program instructions were executed: by function and by source line.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "host/run/source_lines.h"
#include "host/run/tallies.h"

namespace gpusim::host {

// What one place of the program took.
struct PlaceUse {
  ClassCounts classes{};
  // Lanes whose core could have run while these instructions were executed, times instructions: what is
  // beyond the instructions was lost to divergence. 0 where the backend does not count lanes.
  uint64_t lanes = 0;
  uint64_t in_vain = 0;  // instructions of looks in vain (profile_waiting.h)

  uint64_t instructions() const { return Tally{classes, 0}.instructions(); }
  PlaceUse& operator+=(const PlaceUse& other);
};

// By guest address. They add up to Tallies::total() exactly.
using ProfilePlaces = std::unordered_map<uint64_t, PlaceUse>;
ProfilePlaces profile_places(const Module& module, Backend& backend, const Tallies& tallies);

// Of a whole run. Instructions of blocks that faulted half-way are not among the lanes.
struct LaneSummary {
  bool lanes_are_known = false;
  GroupUse lanes;        // of all groups
  uint64_t in_vain = 0;  // instructions of looks in vain
};
LaneSummary summarise_lanes(const Module& module, Backend& backend);

struct ProfilePart {
  std::string name;  // "main"; "sobel.c:42"; "" where that is not known
  ClassCounts classes{};
};

// Most executed first; each list adds up to Tallies::total() exactly.
struct Profile {
  std::vector<ProfilePart> functions;
  std::vector<ProfilePart> lines;  // empty if no line is known
};

Profile make_profile(const Module& module, const ProfilePlaces& places, const SourceLines& source);
// The symbol that an address belongs to, or nothing; in a shared object "qsort [libc.so.6]", or its
// name alone: "[libc.so.6]".
std::string function_at(const Module& module, uint64_t pc);

}  // namespace gpusim::host
