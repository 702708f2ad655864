// What commands need that run another program with a library preloaded.
#pragma once
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "device_sim/base/error.h"

namespace gpusim {

// A folder for what the program's processes leave, gone at the end. `name`: "gpusim-attach".
class SessionFolder {
 public:
  explicit SessionFolder(const std::string& name) {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr && *base != 0 ? base : "/tmp") + "/" + name + "-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error(fmt::format("{}: {}", path_, std::strerror(errno)));
  }
  ~SessionFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SessionFolder(const SessionFolder&) = delete;
  SessionFolder& operator=(const SessionFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A program that the user interrupts ends itself; what was recorded is wanted.
class IgnoreInterrupts {
 public:
  IgnoreInterrupts() { ::signal(SIGINT, SIG_IGN), ::signal(SIGQUIT, SIG_IGN); }
  ~IgnoreInterrupts() { ::signal(SIGINT, SIG_DFL), ::signal(SIGQUIT, SIG_DFL); }
};

// The library's path: `given` by --library, or `name` beside this program, or in ../lib/gpusim.
inline std::string find_preload_library(const std::string& given, const std::string& name) {
  namespace fs = std::filesystem;
  if (!given.empty()) {
    if (::access(given.c_str(), R_OK) != 0)
      throw Error(fmt::format("--library {}: {}", given, std::strerror(errno)));
    return fs::absolute(given);
  }
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place : {here / name, here / ".." / "lib" / "gpusim" / name})
    if (fs::exists(place, error)) return fs::weakly_canonical(place, error);
  throw Error(fmt::format(
      "{} is not beside the program, nor in ../lib/gpusim: name it with --library", name));
}

// The value of LD_PRELOAD, with what the user has there.
inline std::string preload_value(const std::string& library) {
  if (library.find_first_of(": ") != std::string::npos)
    throw Error(fmt::format(
        "{}: LD_PRELOAD takes no path with a colon or a space: copy the library elsewhere",
        library));
  const char* const others = std::getenv("LD_PRELOAD");
  return others != nullptr && *others != 0 ? library + ":" + others : library;
}

}  // namespace gpusim
