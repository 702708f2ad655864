// The page that `gpusim run --watch` serves.
#pragma once

namespace gpusim::host {

extern const char* const kWatchPage;

}  // namespace gpusim::host
