// Where in the program instructions were executed: by function and by source line.
#pragma once
#include <string>
#include <vector>

#include "host/run/source_lines.h"
#include "host/run/tallies.h"

namespace gpusim::host {

struct ProfilePart {
  std::string name;  // "main"; "sobel.c:42"; "" where that is not known
  ClassCounts classes{};
};

// Most executed first; each list adds up to Tallies::total() exactly.
struct Profile {
  std::vector<ProfilePart> functions;
  std::vector<ProfilePart> lines;  // empty if no line is known
};

Profile make_profile(const Module& module, Backend& backend, const Tallies& tallies,
                     const SourceLines& source);

}  // namespace gpusim::host
