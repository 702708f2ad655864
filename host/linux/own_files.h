// What a guest finds in /proc and /sys: texts that describe the guest. Nothing there is the host's.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "host/linux/kernel.h"
#include "host/linux/path_policy.h"

namespace gpusim::host {

// The text of an OwnFile::kText as it is now, for the process of that call; of an OwnFile::kFolder
// what getdents64(2) says of it, one struct linux_dirent64 after the other.
std::string own_text(Kernel& kernel, const Call& call, const std::string& path);
// A file in memory that has this text and cannot be written; nothing and errno if there is no room.
FileRef make_text_file(const std::string& path, const std::string& text);

// The number of an open file that a path names: "/dev/stdin", "/dev/fd/63", "/proc/self/fd/3".
std::optional<int> number_in_path(std::string_view path);
// What such a path leads to, as readlink(2) says it: "/work/data", "pipe:[7]".
std::string descriptor_target(const OpenFile& file, int number);

}  // namespace gpusim::host
