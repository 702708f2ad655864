// Another process exchanges a folder and a link that leads out of the root while the guest's calls use
// paths through them. Whatever it meets, nothing outside is seen or changed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "tests/unit/host/kernel_machine.h"
#include "tests/unit/host/snapshot.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kHere = static_cast<uint64_t>(-100);

// A process that exchanges the names of each pair again and again until it is told to stop.
class Exchanger {
 public:
  using Pairs = std::vector<std::pair<fs::path, fs::path>>;
  explicit Exchanger(const Pairs& pairs) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      for (const auto& [a, b] : pairs)
        ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  }
  Exchanger(const Exchanger&) = delete;
  Exchanger& operator=(const Exchanger&) = delete;
  ~Exchanger() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

TEST_CASE("links exchanged in the middle and at the end of a path lead nowhere outside") {
  Machine m;
  const fs::path outside = m.own.base / "outside";
  for (const fs::path& place : {m.folder / "here", outside}) {
    fs::create_directories(place / "sub");
    for (const char* name : {"f", "sub/f", "extra"})
      std::ofstream(place / name) << (place == outside ? "secret" : "inside");
  }
  fs::create_directory_symlink(outside, m.folder / "there");
  std::ofstream(m.folder / "plain") << "inside";
  fs::create_symlink(outside / "f", m.folder / "link");
  const auto before = snapshot(outside);
  struct stat secret {};
  REQUIRE(::stat((outside / "f").c_str(), &secret) == 0);

  const Exchanger exchanger(
      {{m.folder / "here", m.folder / "there"}, {m.folder / "plain", m.folder / "link"}});
  const uint64_t second = kBuffer + 0x400, out = kBuffer + 0x1000;
  int met = 0, refused = 0;
  for (int round = 0; round < 1000; ++round) {
    for (const char* name : {"here/f", "here/sub/f", "here/sub/../f", "plain"}) {
      const int64_t fd = m.open(m.folder / name, round & 1 ? kReadWrite : 0);
      (fd >= 0 ? met : refused) += 1;
      if (fd >= 0) {
        REQUIRE(m.result(63, {static_cast<uint64_t>(fd), out, 6}) == 6);
        REQUIRE(m.get(out, 6) == "inside");
        m.result(57, {static_cast<uint64_t>(fd)});
      }
      m.put(kBuffer, m.folder / name);
      if (m.result(79, {kHere, kBuffer, out, 0}) == 0) {
        uint64_t inode;
        REQUIRE(m.backend->read_memory(0, out + 8, {reinterpret_cast<uint8_t*>(&inode), 8}));
        REQUIRE(inode != secret.st_ino);
      }
      m.result(53, {kHere, kBuffer, 0600u + static_cast<unsigned>(round % 2) * 040});  // fchmodat
      m.result(88, {kHere, kBuffer, 0, 0});                        // utimensat
      m.result(45, {kBuffer, 6});                                  // truncate
    }
    m.put(second, m.folder / "here/made");
    m.put(kBuffer, m.folder / "here/extra");
    m.result(38, {kHere, kBuffer, kHere, second});
    m.result(38, {kHere, second, kHere, kBuffer});
    m.result(34, {kHere, second, 0755});
    m.result(35, {kHere, second, 0x200});
    m.result(37, {kHere, kBuffer, kHere, second, 0});
    m.result(35, {kHere, second, 0});
    m.open(m.folder / "here/made", kReadWrite | kCreate);
    m.put(second, m.folder / "here/made");
    m.result(35, {kHere, second, 0});
  }
  CHECK(met > 0);
  MESSAGE("paths that led inside: " << met << ", refused: " << refused);
  CHECK(snapshot(outside) == before);
}

}  // namespace
}  // namespace gpusim::host
