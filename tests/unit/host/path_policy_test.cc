#include "host/linux/path_policy.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "device_sim/base/error.h"
#include "host/linux/open_path.h"
#include "tests/unit/host/temporary_folders.h"

namespace gpusim::host {
namespace {
namespace fs = std::filesystem;
using Last = PathPolicy::Last;

struct Folders : TemporaryFolders {
  Folders() {
    fs::create_directories(base / "open/inner");
    fs::create_directories(base / "open-not/inside");
    std::ofstream(base / "open/file") << "x";
    std::ofstream(base / "open-not/secret") << "x";
    std::ofstream(base / "prog") << "program";
    fs::create_symlink(base / "open-not/secret", base / "open/link");
    fs::create_symlink(base / "open-not/absent", base / "open/dangling");
    fs::create_symlink(base / "open-not", base / "open/folder_link");
    fs::create_symlink("inner", base / "open/inner_link");
    fs::create_symlink("loop", base / "open/loop");
  }
};

// What a guest gets that opens `path`: 0 or an error number.
int opened(const PathPolicy& policy, const std::string& path, int flags = O_RDONLY) {
  const Opened result = open_path(policy, nullptr, path, flags, 0644);
  return result.file ? 0 : result.error;
}

TEST_CASE("only files in allowed folders are opened, whatever links and dots say") {
  const Folders at;
  const PathPolicy policy({{at("open"), false}}, at("prog"));
  CHECK(opened(policy, at("open/file")) == 0);
  CHECK(policy.find(nullptr, at("open/file")).path() == at("open/file"));
  CHECK(opened(policy, at("open/inner/../file")) == 0);
  CHECK(opened(policy, at("open/inner_link/../file")) == 0);
  CHECK(opened(policy, at("open//./file")) == 0);
  CHECK(opened(policy, at("open/file/")) == ENOTDIR);
  CHECK(opened(policy, at("open/file/..")) == ENOTDIR);
  CHECK(opened(policy, at("open/inner_link/")) == 0);
  CHECK(opened(policy, at("open/absent")) == ENOENT);
  CHECK(opened(policy, at("open/absent/..")) == ENOENT);
  CHECK(opened(policy, at("open/loop")) == ELOOP);
  CHECK(opened(policy, at("open/file"), O_WRONLY) == EACCES);
  CHECK(opened(policy, at("open/file"), O_RDONLY | O_TRUNC) == EACCES);
  CHECK(opened(policy, at("open/new"), O_RDONLY | O_CREAT) == EACCES);
  CHECK(opened(policy, at("open-not/secret")) == EACCES);
  CHECK(opened(policy, at("open/../open-not/secret")) == EACCES);
  CHECK(opened(policy, at("open/../open/file")) == 0);
  CHECK(opened(policy, at("open/link")) == EACCES);
  CHECK(opened(policy, at("open/link"), O_NOFOLLOW) == ELOOP);
  CHECK(opened(policy, at("open/dangling")) == EACCES);
  CHECK(opened(policy, at("open/folder_link/secret")) == EACCES);
  CHECK(opened(policy, at("open/folder_link/new")) == EACCES);
  CHECK(opened(policy, at("open/folder_link/../open/file")) == EACCES);
  CHECK(opened(policy, "/etc/passwd") == EACCES);
  CHECK(opened(policy, "/dev/null", O_RDWR) == 0);
  CHECK(opened(policy, "/dev/./../dev/null", O_RDWR) == 0);
  CHECK(opened(policy, "") == ENOENT);
}

TEST_CASE("what is outside the roots looks the same whether it exists or not") {
  const Folders at;
  const PathPolicy policy({{at("open"), true}}, at("prog"));
  for (const char* path : {"open-not/inside", "open-not/absent", "open-not/inside/../../open/file",
                           "open-not/absent/../../open/file", "prog", "prog/x", "absent"})
    for (const Last last : {Last::kFollow, Last::kLook, Last::kEntry}) {
      CAPTURE(path);
      const Place place = policy.find(nullptr, at(path), last);
      CHECK(place.error == EACCES);
      CHECK(place.is_outside);
    }
}

// /proc/self/cwd/../../PARENT/ROOT/.. led to the parent: the path does not exist when its dots are
// taken away as text, and its own parent is the root.
TEST_CASE("no path leaves a root by one level") {
  const Folders at;
  const PathPolicy policy({{at("open"), true}}, at("prog"));
  const std::string parent = at.base.filename();
  fs::current_path(at("open"));
  for (const std::string& path :
       {"/proc/self/cwd/../../" + parent + "/open/..", std::string("/proc/self/cwd/.."),
        std::string("/proc/self/root"), std::string("/proc/thread-self/cwd"),
        "/proc/" + std::to_string(getpid()) + "/cwd", std::string("/proc/self/fd/0"),
        std::string("/proc/self/mem"), at("open/.."), at("open/inner/../.."),
        at("open/folder_link/.."), at("open/absent/../..")}) {
    CAPTURE(path);
    CHECK(opened(policy, path) != 0);
    CHECK(opened(policy, path, O_DIRECTORY) != 0);
    const Place place = policy.find(nullptr, path);
    CHECK_FALSE((place.error == 0 && (place.may_read() || place.may_change())));
  }
  fs::current_path("/");
}

TEST_CASE("a folder that was opened stays the start of its paths when it moves") {
  const Folders at;
  const PathPolicy policy({{at("open"), true}}, at("prog"));
  const FolderRef inner = policy.find(nullptr, at("open/inner")).self;
  REQUIRE(inner);
  fs::rename(at("open/inner"), at("open/moved"));
  fs::create_symlink(at("open-not"), at("open/inner"));
  CHECK(policy.find(inner, "../file").error == 0);
  CHECK(policy.find(inner, "secret").error == ENOENT);
  CHECK(policy.find(inner, "../..").may_look());  // a parent of a root
  CHECK_FALSE(policy.find(inner, "../..").may_read());
  CHECK(policy.find(inner, "../../open-not/secret").error == EACCES);
}

TEST_CASE("parents of roots may be looked at, and nothing else of them") {
  const Folders at;
  const PathPolicy policy({{at("open"), false}}, at("prog"));
  for (std::string path = at("open");; path = fs::path(path).parent_path()) {
    CAPTURE(path);
    for (const Last last : {Last::kFollow, Last::kLook}) {
      const Place place = policy.find(nullptr, path, last);
      CHECK(place.error == 0);
      CHECK(place.may_look());
      CHECK(S_ISDIR(place.status.st_mode));
      CHECK_FALSE(place.may_change());
      CHECK(place.path() == path);
      CHECK(place.may_read() == (path == at("open")));
    }
    if (path == "/") break;
  }
  CHECK(opened(policy, "/") == EACCES);
  CHECK(opened(policy, at(""), O_DIRECTORY) == EACCES);
  CHECK_FALSE(policy.find(nullptr, at("open"), Last::kEntry).may_change_entry());
}

TEST_CASE("a writable root allows new files, also through links that stay in it") {
  const Folders at;
  const PathPolicy policy({{at("open"), true}, {at("open-not"), false}}, at("prog"));
  CHECK(opened(policy, at("open/new"), O_WRONLY | O_CREAT) == 0);
  CHECK(opened(policy, at("open/new"), O_WRONLY | O_CREAT | O_EXCL) == EEXIST);
  CHECK(opened(policy, at("open/new"), O_WRONLY | O_CREAT | O_TRUNC) == 0);
  CHECK(opened(policy, at("open/inner_link/new"), O_WRONLY | O_CREAT) == 0);
  CHECK(fs::exists(at("open/inner/new")));
  CHECK(opened(policy, at("open/absent/new"), O_WRONLY | O_CREAT) == ENOENT);
  CHECK(opened(policy, at("open/link"), O_WRONLY) == EACCES);
  CHECK(opened(policy, at("open/link")) == 0);
  CHECK(opened(policy, at("open/dangling"), O_WRONLY | O_CREAT) == EACCES);
  CHECK_FALSE(fs::exists(at("open-not/absent")));
  CHECK(opened(policy, at("open/link"), O_WRONLY | O_CREAT | O_EXCL) == EEXIST);
  fs::create_symlink(at("open/inner/target"), at("open/to_target"));
  CHECK(opened(policy, at("open/to_target"), O_WRONLY | O_CREAT | O_EXCL) == EEXIST);
  CHECK(opened(policy, at("open/to_target"), O_WRONLY | O_CREAT) == 0);
  CHECK(fs::exists(at("open/inner/target")));
}

TEST_CASE("O_PATH opens folders and links to look at, not to read") {
  const Folders at;
  const PathPolicy policy({{at("open"), true}}, at("prog"));
  CHECK(opened(policy, at("open/link"), O_PATH | O_NOFOLLOW) == 0);
  CHECK(opened(policy, at("open/link"), O_PATH) == EACCES);
  CHECK(opened(policy, at("open/file"), O_PATH | O_DIRECTORY) == ENOTDIR);
  const Opened top = open_path(policy, nullptr, "/", O_PATH, 0);
  REQUIRE(top.file);
  char byte;
  CHECK(::read(top.file->host_fd(), &byte, 1) < 0);
  CHECK(policy.find(top.file->folder, "etc/passwd").error == EACCES);
}

TEST_CASE("a root that contains everything does not give away gpusim's own process") {
  const Folders at;
  const PathPolicy policy({{"/", true}}, at("prog"));
  CHECK(opened(policy, at("open-not/secret"), O_RDWR) == 0);
  CHECK(opened(policy, "/", O_DIRECTORY) == 0);
  for (const char* path : {"/proc/self/mem", "/proc/1/mem", "/proc/self/root/etc/passwd",
                           "/sys/kernel", "/dev/zero/../mem", "/dev/tty", "/dev", "/dev/shm",
                           "/dev/ptmx", "/dev/fd/0", "/dev/stdin", "/proc/../dev/pts"}) {
    CAPTURE(path);
    CHECK(opened(policy, path) != 0);
    CHECK_FALSE(policy.find(nullptr, path, Last::kEntry).may_change_entry());
  }
  CHECK(opened(policy, "/proc/../etc/passwd") == 0);
}

TEST_CASE("a root in /dev is a root") {
  const fs::path folder = "/dev/shm/gpusim-path-policy-" + std::to_string(getpid());
  fs::create_directories(folder);
  {
    const PathPolicy policy({{folder, true}, {"/", false}}, "/proc/self/exe");
    CHECK(opened(policy, folder / "new", O_RDWR | O_CREAT) == 0);
    CHECK(opened(policy, "/dev/shm", O_DIRECTORY) == EACCES);
    CHECK(policy.find(nullptr, "/dev/shm").may_look());
    CHECK(opened(policy, "/dev/null") == 0);
  }
  fs::remove_all(folder);
}

TEST_CASE("gpusim's own files cannot be changed, nor can devices in a root") {
  const Folders at;
  const PathPolicy policy({{"/", true}}, at("prog"));
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
                           "/etc/localtime", "/proc/self/exe"}) {
    CAPTURE(path);
    for (const Last last : {Last::kFollow, Last::kLook, Last::kEntry}) {
      const Place place = policy.find(nullptr, path, last);
      CHECK_FALSE(place.may_change());
      CHECK_FALSE(place.may_change_entry());
    }
  }
}

TEST_CASE("/proc/self/exe is the program that was started, whatever its name leads to now") {
  const Folders at;
  const PathPolicy policy({{at(""), true}}, at("prog"));
  CHECK(policy.find(nullptr, "/proc/self/exe", Last::kLook).is_link());
  CHECK(opened(policy, "/proc/self/exe", O_WRONLY) == ETXTBSY);
  fs::rename(at("prog"), at("other"));
  fs::create_symlink("/etc/passwd", at("prog"));
  const Opened program = open_path(policy, nullptr, "/proc/self/exe", O_RDONLY, 0);
  REQUIRE(program.file);
  char text[8] = {};
  CHECK(::read(program.file->host_fd(), text, 7) == 7);
  CHECK(std::string(text) == "program");
}

TEST_CASE("the name of a folder can be made, removed and renamed with a slash behind it") {
  const Folders at;
  const PathPolicy policy({{at("open"), true}}, at("prog"));
  const Place made = policy.find(nullptr, at("open/new/"), Last::kEntry);
  CHECK(made.error == ENOENT);
  CHECK(made.name == "new");
  CHECK(made.has_slash);
  CHECK(made.may_change_entry());
  CHECK(policy.find(nullptr, at("open/inner/"), Last::kEntry).name == "inner");
  CHECK(policy.find(nullptr, at("open/file/"), Last::kEntry).error == ENOTDIR);
  CHECK(policy.find(nullptr, at("open/inner_link/"), Last::kEntry).error == ENOTDIR);
  CHECK(policy.find(nullptr, at("open/inner/."), Last::kEntry).name.empty());
  CHECK(policy.find(nullptr, at("open/inner/.."), Last::kEntry).name.empty());
  CHECK(policy.find(nullptr, "/", Last::kEntry).name.empty());
}

TEST_CASE("a root in a root has the rights of both") {
  const Folders at;
  const PathPolicy policy({{at("open/inner"), true}, {at("open"), false}}, at("prog"));
  CHECK(opened(policy, at("open/inner/new"), O_WRONLY | O_CREAT) == 0);
  CHECK(opened(policy, at("open/inner_link/other"), O_WRONLY | O_CREAT) == 0);
  CHECK(opened(policy, at("open/new"), O_WRONLY | O_CREAT) == EACCES);
  CHECK(opened(policy, at("open/file")) == 0);
}

TEST_CASE("links outside the roots that lead into one are followed") {
  const Folders at;
  fs::create_symlink("open", at("way_in"));
  fs::create_symlink(at("open/inner"), at("open-not/way_in"));
  const PathPolicy policy({{at("open"), false}}, at("prog"));
  CHECK(opened(policy, at("way_in/file")) == 0);
  CHECK(policy.find(nullptr, at("way_in/file")).path() == at("open/file"));
  CHECK(policy.find(nullptr, at("open-not/way_in")).path() == at("open/inner"));
}

TEST_CASE("folders without end are refused before gpusim's descriptors are used up") {
  const Folders at;
  const PathPolicy policy({{at("open"), true}}, at("prog"));
  FolderRef here = policy.find(nullptr, at("open")).self;
  int error = 0;
  for (int depth = 0; depth < 2000 && error == 0; ++depth) {
    REQUIRE(::mkdirat(here->fd.get(), "d", 0755) == 0);
    Place next = policy.find(here, "d");
    error = next.error;
    if (next.self) here = next.self;
  }
  CHECK((error == ENAMETOOLONG || error == EMFILE));
}

TEST_CASE("a root must be a folder") {
  const Folders at;
  CHECK_THROWS_AS(PathPolicy({{at("open/file"), false}}, at("prog")), Error);
  CHECK_THROWS_AS(PathPolicy({{at("absent"), false}}, at("prog")), Error);
}

TEST_CASE("an isolated guest has the null and random devices, and nothing else") {
  const PathPolicy policy = PathPolicy::isolated("kernel");
  CHECK(opened(policy, "/dev/null", O_RDWR) == 0);
  CHECK(opened(policy, "/dev/urandom") == 0);
  for (const char* path : {"/", "/dev", "/dev/tty", "/etc/localtime", "/proc/self/exe", "relative"})
    CHECK(opened(policy, path) == EACCES);
}

TEST_CASE("absolute paths are looked for in the sysroot first") {
  const Folders at;
  fs::create_directories(at.base / "system/lib");
  std::ofstream(at.base / "system/lib/libx.so") << "library";
  fs::create_symlink("/lib/libx.so", at.base / "system/absolute");
  fs::create_symlink("../../../open-not/secret", at.base / "system/lib/out");
  const PathPolicy policy({{at("open"), false}}, at("prog"), at("system"));
  CHECK(opened(policy, "/lib/libx.so") == 0);
  CHECK(policy.find(nullptr, "/lib/libx.so").path() == at("system/lib/libx.so"));
  CHECK(opened(policy, "/lib/../../lib/libx.so") == 0);
  CHECK(opened(policy, "/absolute") == 0);
  CHECK(opened(policy, "/lib/out") != 0);
  CHECK(opened(policy, "/lib/libx.so", O_WRONLY) == EACCES);
  CHECK(opened(policy, "/lib/new", O_WRONLY | O_CREAT) == ENOENT);
  // What it lacks is this machine's.
  CHECK(opened(policy, at("open/file")) == 0);
  CHECK(opened(policy, at("open-not/secret")) == EACCES);
  CHECK(policy.find(nullptr, "/proc/self/exe", Last::kLook).own == OwnFile::kProgram);
}

}  // namespace
}  // namespace gpusim::host
