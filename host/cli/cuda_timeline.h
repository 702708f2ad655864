// The picture of `gpusim cuda --timeline`, of what the program's processes recorded.
#pragma once
#include <string>

namespace gpusim::host {

// From the files *.events in `folder` (host/cuda_api/timeline.h). Chrome's trace events: for each
// process a track for each thread that called the API, and one for each stream.
std::string cuda_timeline_json(const std::string& folder, const std::string& program);

}  // namespace gpusim::host
