#include "host/linux/path_policy.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "host/error.h"

namespace gpusim::host {
namespace {
namespace fs = std::filesystem;

struct Folders {
  fs::path base =
      fs::canonical(fs::temp_directory_path()) / ("gpusim-path-policy-" + std::to_string(getpid()));
  Folders() {
    fs::create_directories(base / "open/inner");
    fs::create_directories(base / "open-not");
    std::ofstream(base / "open/file") << "x";
    std::ofstream(base / "open-not/secret") << "x";
    std::ofstream(base / "prog") << "x";
    fs::create_symlink(base / "open-not/secret", base / "open/link");
    fs::create_symlink(base / "open-not/absent", base / "open/dangling");
    fs::create_symlink(base / "open-not", base / "open/folder_link");
  }
  ~Folders() { fs::remove_all(base); }
  std::string operator()(const char* name) const { return base / name; }
};

TEST_CASE("only files in allowed folders are opened, whatever links and dots say") {
  const Folders at;
  const PathPolicy policy({{at("open"), false}}, at("prog"));
  CHECK(policy.judge(at("open/file"), false).error == 0);
  CHECK(policy.judge(at("open/file"), false).host_path == at("open/file"));
  CHECK(policy.judge(at("open/inner/../file"), false).error == 0);
  CHECK(policy.judge(at("open/absent"), false).error == 0);  // open(2) says ENOENT
  CHECK(policy.judge(at("open/file"), true).error == EACCES);
  CHECK(policy.judge(at("open-not/secret"), false).error == EACCES);
  CHECK(policy.judge(at("open/../open-not/secret"), false).error == EACCES);
  CHECK(policy.judge(at("open/link"), false).error == EACCES);
  CHECK(policy.judge(at("open/dangling"), false).error == EACCES);
  CHECK(policy.judge(at("open/folder_link/secret"), false).error == EACCES);
  CHECK(policy.judge(at("open/folder_link/new"), false).error == EACCES);
  CHECK(policy.judge("/etc/passwd", false).error == EACCES);
  CHECK(policy.judge("/dev/null", true).error == 0);
  CHECK(policy.judge("/proc/self/exe", false).host_path == at("prog"));
  CHECK(policy.judge("/proc/self/mem", false).error == EACCES);
}

TEST_CASE("a writable root allows new files") {
  const Folders at;
  const PathPolicy policy({{at("open"), true}, {at("open-not"), false}}, at("prog"));
  CHECK(policy.judge(at("open/new"), true).error == 0);
  CHECK(policy.judge(at("open/inner/new"), true).error == 0);
  CHECK(policy.judge(at("open/absent/new"), true).error == ENOENT);
  CHECK(policy.judge(at("open/link"), true).error == EACCES);
  CHECK(policy.judge(at("open/link"), false).error == 0);
}

TEST_CASE("a root that contains everything does not give away gpusim's own process") {
  const Folders at;
  const PathPolicy policy({{"/", true}}, at("prog"));
  CHECK(policy.judge("/proc/self/mem", true).error == EACCES);
  CHECK(policy.judge("/sys/kernel", false).error == EACCES);
}

TEST_CASE("a root must be a folder") {
  const Folders at;
  CHECK_THROWS_AS(PathPolicy({{at("open/file"), false}}, at("prog")), UserError);
  CHECK_THROWS_AS(PathPolicy({{at("absent"), false}}, at("prog")), UserError);
}

}  // namespace
}  // namespace gpusim::host
