// What a guest finds in /proc and /sys: texts that describe the guest. Nothing there is the host's.
#pragma once
#include <optional>
#include <string>

#include "host/linux/kernel.h"
#include "host/linux/path_policy.h"

namespace gpusim::host {

// The text of an OwnFile::kText as it is now, for the process of that call.
std::string own_text(Kernel& kernel, const Call& call, const std::string& path);
// A file in memory that has this text and cannot be written; nothing and errno if there is no room.
FileRef make_text_file(const std::string& path, const std::string& text);

}  // namespace gpusim::host
