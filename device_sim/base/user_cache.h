// The folder for what a user's next run need not find out again.
#pragma once
#include <filesystem>

namespace gpusim {

// "~/.cache/gpusim", by the XDG Base Directory Specification (relative paths are ignored). It may
// not exist yet. Empty: the user has none.
std::filesystem::path user_cache_folder();

}  // namespace gpusim
