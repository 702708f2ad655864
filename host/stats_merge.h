// Statistics of parts of a machine (RunOptions::Part), put together as if one run had had all
// cores.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gpusim::host {

// `parts`: names of files, for messages, and what `gpusim run --part K/N --stats` wrote. `seconds`
// becomes the longest part's; all else that was not measured is as that one run's. Throws Error
// that says which part is missing, there twice, or of another run.
nlohmann::ordered_json merged_stats(
    std::vector<std::pair<std::string, nlohmann::ordered_json>> parts);

}  // namespace gpusim::host
