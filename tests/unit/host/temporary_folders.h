#pragma once
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace gpusim::host {

// A folder of a test's own, without links in its path; removed with all that is in it.
struct TemporaryFolders {
  std::filesystem::path base;
  TemporaryFolders() {
    std::string name = std::filesystem::canonical(std::filesystem::temp_directory_path()) /
                       "gpusim-host-test-XXXXXX";
    if (!::mkdtemp(name.data())) throw std::filesystem::filesystem_error(name, std::error_code());
    base = name;
  }
  TemporaryFolders(const TemporaryFolders&) = delete;
  TemporaryFolders& operator=(const TemporaryFolders&) = delete;
  ~TemporaryFolders() {
    // Tests may have taken the rights that removing takes.
    std::error_code ignored;
    namespace fs = std::filesystem;
    for (fs::recursive_directory_iterator at(base, ignored), end; at != end; at.increment(ignored))
      if (at->is_directory(ignored) && !at->is_symlink(ignored))
        fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
    fs::remove_all(base, ignored);
  }
  std::string operator()(const char* name) const { return *name ? base / name : base; }
};

}  // namespace gpusim::host
