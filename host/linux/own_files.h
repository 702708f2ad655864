// What a guest finds in /proc and /sys. Nothing there is the host's.
#pragma once
#include <string>

#include "host/linux/path_policy.h"

namespace gpusim::host {

// `path` begins with /proc or /sys and has no dots and no double slashes; kNone: nothing is there.
OwnFile own_file_in_proc(const std::string& path);

}  // namespace gpusim::host
