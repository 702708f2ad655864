#pragma once
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>

namespace gpusim::host {

// All of a file that system calls could change; not the time of the last reading.
inline std::string snapshot_of(const std::filesystem::path& path) {
  struct stat s {};
  REQUIRE(::lstat(path.c_str(), &s) == 0);
  std::string text;
  for (const auto value :
       {static_cast<int64_t>(s.st_mode), static_cast<int64_t>(s.st_nlink),
        static_cast<int64_t>(s.st_size), static_cast<int64_t>(s.st_mtim.tv_sec),
        static_cast<int64_t>(s.st_mtim.tv_nsec), static_cast<int64_t>(s.st_ctim.tv_sec),
        static_cast<int64_t>(s.st_ctim.tv_nsec)})
    text += std::to_string(value) + " ";
  return text;
}

// The same of all that is in a folder, and of the folder.
inline std::map<std::string, std::string> snapshot(const std::filesystem::path& folder) {
  std::map<std::string, std::string> all{{folder, snapshot_of(folder)}};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    all[entry.path()] = snapshot_of(entry.path());
  return all;
}

}  // namespace gpusim::host
