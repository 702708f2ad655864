// Estimates as text for people and as JSON for programs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "energy/model.h"
#include "energy/schedule.h"

namespace gpusim::energy {

std::string pretty(Joules energy);  // "1.23 mJ"
std::string pretty(Watts power);
std::string pretty(Seconds time);

// For readers: "integer arithmetic", "off-chip memory". Memory that nothing places on the chip or
// off it is "memory".
std::string class_title(size_t insn_class, bool memory_is_placed = true);

// One line per target, then, if they are few, a table of classes per target, functions and lines.
std::string report_text(const Activity& activity, const std::vector<Estimate>& estimates);
nlohmann::ordered_json report_json(const Activity& activity,
                                   const std::vector<Estimate>& estimates);

std::string targets_text();                     // the list
std::string target_text(const Target& target);  // all that is known of one

std::string curve_text(const Target& target, const PowerCurve& curve);
// time_s,power_W,state,what: a row at both ends of each segment.
std::string curve_csv(const PowerCurve& curve);

}  // namespace gpusim::energy
