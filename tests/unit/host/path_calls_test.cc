// System calls that name files.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/unit/host/kernel_machine.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kHere = static_cast<uint64_t>(-100);  // AT_FDCWD
constexpr uint64_t kSecond = kBuffer + 0x400, kOut = kBuffer + 0x1000;
constexpr uint64_t kNoFollow = 0x100;

struct PathMachine : Machine {
  const fs::path secret = own.base / "secret";
  PathMachine() {
    std::ofstream(secret) << "secret";
    fs::permissions(secret, fs::perms(0600));
  }
  // The call with one path, at argument 1, or with two, at 1 and 3.
  int64_t on(uint64_t number, const fs::path& path, std::vector<uint64_t> rest = {}) {
    put(kBuffer, path);
    rest.insert(rest.begin(), {kHere, kBuffer});
    return result(number, rest);
  }
  int64_t on_two(uint64_t number, const fs::path& from, const fs::path& to, uint64_t flags = 0) {
    put(kBuffer, from);
    put(kSecond, to);
    return result(number, {kHere, kBuffer, kHere, kSecond, flags});
  }
  int64_t symlink(const std::string& text, const fs::path& path) {
    put(kBuffer, text);
    put(kSecond, path);
    return result(36, {kBuffer, kHere, kSecond});
  }
  uint32_t mode_at(uint64_t address) {
    uint32_t mode;
    REQUIRE(backend->read_memory(0, address + 16, {reinterpret_cast<uint8_t*>(&mode), 4}));
    return mode;
  }
};

struct stat status_of(const fs::path& path) {
  struct stat s {};
  REQUIRE(::lstat(path.c_str(), &s) == 0);
  return s;
}

TEST_CASE("mode and times of devices cannot be changed, by name or by descriptor") {
  PathMachine m;
  for (const char* device : {"/dev/random", "/dev/urandom", "/dev/null", "/dev/zero"}) {
    CAPTURE(device);
    const struct stat before = status_of(device);
    CHECK(m.on(53, device, {0640}) == -EPERM);              // fchmodat
    CHECK(m.on(88, device, {0, 0}) == -EPERM);              // utimensat
    CHECK(m.on(54, device, {0, 0, 0}) == -EPERM);           // fchownat
    CHECK(m.on_two(38, device, m.folder / "x") == -EPERM);  // renameat
    const int64_t fd = m.open(device, kReadWrite);
    REQUIRE(fd >= 0);
    CHECK(m.result(52, {static_cast<uint64_t>(fd), 0640}) == -EPERM);     // fchmod
    CHECK(m.result(88, {static_cast<uint64_t>(fd), 0, 0, 0}) == -EPERM);  // futimens
    const struct stat after = status_of(device);
    CHECK(after.st_mode == before.st_mode);
    CHECK(after.st_mtim.tv_sec == before.st_mtim.tv_sec);
    CHECK(after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
  }
}

TEST_CASE("times of what is only read, or is not the guest's, stay as they are") {
  PathMachine m;
  CHECK(m.result(88, {0, 0, 0, 0}) == -EPERM);  // standard input
  CHECK(m.result(52, {0, 0600}) == -EPERM);
  const int64_t zone = m.open("/etc/localtime", 0);
  if (zone >= 0) CHECK(m.result(88, {static_cast<uint64_t>(zone), 0, 0, 0}) == -EPERM);
  const auto file = static_cast<uint64_t>(m.open(m.folder / "f", kReadWrite | kCreate));
  CHECK(m.result(88, {file, 0, 0, 0}) == 0);
  CHECK(m.result(52, {file, 0640}) == 0);
  CHECK((status_of(m.folder / "f").st_mode & 07777) == 0640);
  CHECK(m.result(55, {file, ~uint64_t{0}, ~uint64_t{0}}) == 0);
  CHECK(m.result(55, {file, 12345, ~uint64_t{0}}) == -EPERM);
}

TEST_CASE("links are made in writable roots and judged where they are followed") {
  PathMachine m;
  std::ofstream(m.folder / "f") << "contents";
  CHECK(m.symlink("f", m.folder / "near") == 0);
  CHECK(m.symlink("f", m.folder / "near") == -EEXIST);
  CHECK(m.symlink("", m.folder / "none") == -ENOENT);
  CHECK(m.symlink("f", m.own.base / "outside") == -EACCES);
  CHECK_FALSE(fs::exists(fs::symlink_status(m.own.base / "outside")));
  CHECK(m.open(m.folder / "near", 0) >= 0);
  CHECK(m.symlink(m.secret, m.folder / "far") == 0);
  CHECK(m.open(m.folder / "far", 0) == -EACCES);
  CHECK(m.on(53, m.folder / "far", {0777}) == -EACCES);
  CHECK((status_of(m.secret).st_mode & 07777) == 0600);
  CHECK(m.symlink("..", m.folder / "up") == 0);
  CHECK(m.open(m.folder / "up/secret", 0) == -EACCES);
  CHECK(m.open(m.folder / "up", 0) == -EACCES);

  // readlink
  m.put(kBuffer, m.folder / "near");
  CHECK(m.result(78, {kHere, kBuffer, kOut, 100}) == 1);
  CHECK(m.get(kOut, 1) == "f");
  CHECK(m.on(78, m.folder / "f", {kOut, 100}) == -EINVAL);
  CHECK(m.on(79, m.folder / "near", {kOut, kNoFollow}) == 0);
  CHECK(S_ISLNK(m.mode_at(kOut)));
  CHECK(m.on(79, m.folder / "near", {kOut, 0}) == 0);
  CHECK(S_ISREG(m.mode_at(kOut)));
}

TEST_CASE("hard links only join names in writable roots") {
  PathMachine m;
  std::ofstream(m.folder / "f") << "contents";
  fs::create_directory(m.folder / "d");
  fs::create_symlink(m.secret, m.folder / "far");
  CHECK(m.on_two(37, m.folder / "f", m.folder / "g") == 0);
  CHECK(status_of(m.folder / "g").st_ino == status_of(m.folder / "f").st_ino);
  CHECK(m.on_two(37, m.folder / "f", m.folder / "g") == -EEXIST);
  CHECK(m.on_two(37, m.folder / "d", m.folder / "e") == -EPERM);
  CHECK(m.on_two(37, m.folder / "f", m.own.base / "out") == -EACCES);
  CHECK(m.on_two(37, m.secret, m.folder / "in") == -EACCES);
  CHECK(m.on_two(37, m.folder / "far", m.folder / "in", 0x400) == -EACCES);  // AT_SYMLINK_FOLLOW
  CHECK(m.on_two(37, m.folder / "far", m.folder / "link") == 0);             // of the link itself
  CHECK(S_ISLNK(status_of(m.folder / "link").st_mode));
  CHECK(m.on_two(37, "/dev/null", m.folder / "null") == -EPERM);
  CHECK(m.on_two(37, m.folder / "f", m.folder / "new/") == -ENOENT);
  CHECK(status_of(m.secret).st_nlink == 1);
}

TEST_CASE("a root itself is not removed, renamed or replaced") {
  PathMachine m;
  CHECK(m.on(35, m.folder, {0x200}) == -EACCES);
  CHECK(m.on_two(38, m.folder, m.own.base / "other") == -EACCES);
  CHECK(m.on(35, m.folder / ".", {0x200}) == -EACCES);
  CHECK(m.on(35, m.folder / "..", {0x200}) == -EACCES);
  CHECK(m.on(34, m.folder / "new/", {0755}) == 0);
  CHECK(m.on(35, m.folder / "new/.", {0x200}) == -EINVAL);
  CHECK(m.on(35, m.folder / "new/", {0x200}) == 0);
}

TEST_CASE("parents of a root have a status and no contents") {
  PathMachine m;
  for (fs::path path = m.folder;; path = path.parent_path()) {
    CAPTURE(path);
    CHECK(m.on(79, path, {kOut, kNoFollow}) == 0);
    CHECK(S_ISDIR(m.mode_at(kOut)));
    CHECK(m.on(78, path, {kOut, 100}) == -EINVAL);  // readlink: not a link, as realpath asks
    m.put(kBuffer, path);
    CHECK(m.result(43, {kBuffer, kOut}) == 0);  // statfs
    if (path != m.folder) CHECK(m.open(path, 0) == -EACCES);
    if (path == "/") break;
  }
  CHECK(m.on(79, "/etc", {kOut, 0}) == -EACCES);
  CHECK(m.on(48, "/", {1}) == 0);        // faccessat: search
  CHECK(m.on(48, "/", {4}) == -EACCES);  // read
  CHECK(m.on(53, "/", {0777}) == -EACCES);
}

TEST_CASE("a process can be in a parent of a root, and go on from there by relative paths") {
  PathMachine m;
  std::ofstream(m.folder / "f") << "contents";
  m.put(kBuffer, m.own.base);
  CHECK(m.result(49, {kBuffer}) == 0);
  CHECK(m.open("root/f", 0) >= 0);
  CHECK(m.open("secret", 0) == -EACCES);
  m.put(kBuffer, "root");
  CHECK(m.result(49, {kBuffer}) == 0);
  CHECK(m.open("f", 0) >= 0);
  CHECK(m.result(17, {kOut, 4096}) == static_cast<int64_t>(m.folder.string().size()) + 1);
  CHECK(m.get(kOut, m.folder.string().size()) == m.folder);
  m.put(kBuffer, "f");
  CHECK(m.result(49, {kBuffer}) == -ENOTDIR);
}

TEST_CASE("an open folder is where its paths begin, also when it was renamed") {
  PathMachine m;
  fs::create_directory(m.folder / "d");
  std::ofstream(m.folder / "d/f") << "contents";
  const auto d = static_cast<uint64_t>(m.open(m.folder / "d", 0));
  CHECK(m.on_two(38, m.folder / "d", m.folder / "e") == 0);
  m.put(kBuffer, "f");
  CHECK(m.result(56, {d, kBuffer, 0, 0}) >= 0);
  CHECK(m.result(35, {d, kBuffer, 0}) == 0);
  CHECK_FALSE(fs::exists(m.folder / "e/f"));
}

TEST_CASE("renameat2 exchanges and does not replace, as asked") {
  PathMachine m;
  std::ofstream(m.folder / "a") << "a";
  std::ofstream(m.folder / "b") << "bb";
  CHECK(m.on_two(276, m.folder / "a", m.folder / "b", 1) == -EEXIST);
  CHECK(m.on_two(276, m.folder / "a", m.folder / "b", 2) == 0);
  CHECK(fs::file_size(m.folder / "a") == 2);
  CHECK(m.on_two(276, m.folder / "a", m.folder / "b", 4) == -EINVAL);
  CHECK(m.on_two(276, m.folder / "a", m.folder / "absent", 2) == -ENOENT);
  CHECK(m.on_two(38, m.folder / "a", m.folder / "c/") == -ENOTDIR);
}

// Opening it for reading alone stopped the whole simulation.
TEST_CASE("a named pipe whose other end is missing makes its core wait, no other") {
  PathMachine m;
  const fs::path pipe = m.folder / "pipe";
  // What comes from outside is looked at from time to time.
  Clock::time_point now = Clock::now();
  const auto look = [&] { m.kernel->expire(now += std::chrono::milliseconds(1)); };
  CHECK(m.on(33, pipe, {S_IFIFO | 0600}) == 0);
  CHECK(m.on(33, m.folder / "device", {S_IFCHR | 0600, 0x103}) == -EPERM);
  CHECK(m.on(33, m.own.base / "outside", {S_IFIFO | 0600}) == -EACCES);
  m.put(kBuffer, pipe);
  CHECK(m.call(0, 56, {kHere, kBuffer, 0}).kind == Reply::Kind::kParked);
  look();
  CHECK(m.kernel->is_parked(0));
  const FileDescriptor writer(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(writer);  // it found a reader
  look();
  CHECK(!m.kernel->is_parked(0));
  CHECK(m.backend->slot(0, 0) == 3);
  CHECK(m.call(0, 63, {3, kOut, 1}).kind == Reply::Kind::kParked);
  REQUIRE(::write(writer.get(), "x", 1) == 1);
  look();
  CHECK(m.backend->slot(0, 0) == 1);
  CHECK(m.result(57, {3}) == 0);
  m.put(kBuffer, pipe);
  CHECK(m.call(0, 56, {kHere, kBuffer, kWriteOnly}).kind == Reply::Kind::kParked);
  const FileDescriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(reader);
  look();
  CHECK(m.backend->slot(0, 0) == 3);
  CHECK(m.result(57, {3}) == 0);
}

TEST_CASE("files are made without the bits that chmod does not give") {
  PathMachine m;
  const fs::path made = m.folder / "made", node = m.folder / "node";
  CHECK(m.on(56, made, {kCreate | kWriteOnly, 06700}) == 3);
  CHECK(m.on(33, node, {S_IFREG | 06700}) == 0);
  CHECK((status_of(made).st_mode & 07777) == 0700);
  CHECK((status_of(node).st_mode & 07777) == 0700);
}

TEST_CASE("a device is no folder") {
  PathMachine m;
  for (const char* path : {"/dev/null/x", "/dev/null/", "/dev/zero/..", "/etc/localtime/x"})
    CHECK(m.open(path, 0) == -ENOTDIR);
}

}  // namespace
}  // namespace gpusim::host
