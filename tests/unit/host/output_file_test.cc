#include "host/output_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "device_sim/base/error.h"
#include "tests/unit/host/temporary_folders.h"

namespace gpusim::host {
namespace {
namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
auto files_in(const fs::path& folder) { return std::distance(fs::directory_iterator(folder), {}); }

TEST_CASE("an output file replaces what was there as a whole") {
  const TemporaryFolders at;
  write_output_file("-o", at("f"), "first");
  struct stat before {};
  REQUIRE(::stat(at("f").c_str(), &before) == 0);
  const FileDescriptor reader(::open(at("f").c_str(), O_RDONLY));
  write_output_file("-o", at("f"), "second");
  CHECK(contents(at("f")) == "second");
  char text[6] = {};
  CHECK(::read(reader.get(), text, 5) == 5);
  CHECK(std::string(text) == "first");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  CHECK((before.st_mode & 0777) == (0666 & ~mask));
  CHECK(files_in(at.base) == 1);
}

TEST_CASE("what cannot be written is refused before, with its name") {
  const TemporaryFolders at;
  fs::create_symlink("loop", at("loop"));
  for (const char* path : {"none/f", "", "loop", "f/"}) {
    CAPTURE(path);
    CHECK_THROWS_AS(OutputFile("-o", at(path)), Error);
  }
  CHECK_THROWS_AS(OutputFile("-o", ""), Error);
  CHECK(files_in(at.base) == 1);
  try {
    OutputFile("--stats", at("none/f"));
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "--stats " + at("none/f") + ": No such file or directory (there is no folder " +
              at("none") + "; mkdir -p " + at("none") + " makes it)");
  }
}

// A node of the same device in a folder of the test: a fault in the code must not cost the machine its
// own /dev/full.
TEST_CASE("a device is written into, never replaced") {
  const TemporaryFolders at;
  const std::string full = at("full");
  if (::mknod(full.c_str(), S_IFCHR | 0666, makedev(1, 7)) == 0 &&
      FileDescriptor(::open(full.c_str(), O_WRONLY))) {
    const OutputFile file("-o", full);
    CHECK_FALSE(file.is_plain());
    CHECK_THROWS_AS(file.write("text"), Error);  // it is full
    CHECK(fs::is_character_file(full));
    CHECK(files_in(at.base) == 1);
  }
  CHECK_NOTHROW(write_output_file("-o", "/dev/null", "text"));
  CHECK_FALSE(OutputFile("-o", "/dev/full").is_plain());
}

TEST_CASE("a file is appended to where it was when it was named") {
  const TemporaryFolders at;
  const OutputFile file("-o", at("f"));
  file.append("one ");
  file.append("two");
  CHECK(contents(at("f")) == "one two");
  std::ofstream(at("other")) << "kept";
  fs::remove(at("f"));
  fs::create_symlink("other", at("f"));  // as a guest could while it runs
  CHECK_THROWS_AS(file.append("three"), Error);
  CHECK(contents(at("other")) == "kept");
  fs::remove(at("f"));
  REQUIRE(::mkfifo(at("f").c_str(), 0600) == 0);
  CHECK_THROWS_AS(file.append("three"), Error);  // and does not wait for a reader
}

TEST_CASE("a named pipe is written into") {
  const TemporaryFolders at;
  REQUIRE(::mkfifo(at("pipe").c_str(), 0600) == 0);
  const FileDescriptor reader(::open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK));
  write_output_file("-o", at("pipe"), "text");
  char text[8] = {};
  CHECK(::read(reader.get(), text, sizeof text) == 4);
  CHECK(std::string(text) == "text");
  CHECK(fs::is_fifo(at("pipe")));
}

TEST_CASE("through a symbolic link its target is replaced") {
  const TemporaryFolders at;
  fs::create_directory(at("d"));
  std::ofstream(at("d/target")) << "old";
  fs::create_symlink("d/target", at("link"));
  fs::create_symlink("link", at("link_to_link"));
  fs::create_symlink(at("d/new"), at("dangling"));
  write_output_file("-o", at("link_to_link"), "new");
  CHECK(fs::is_symlink(at("link")));
  CHECK(fs::is_symlink(at("link_to_link")));
  CHECK(contents(at("d/target")) == "new");
  write_output_file("-o", at("dangling"), "made");
  CHECK(contents(at("d/new")) == "made");
  CHECK(files_in(at("d")) == 2);
}

// As `-o /dev/stdout >file`: the shell's file is written, from where it stands.
TEST_CASE("a descriptor of the process is written to, not its file replaced") {
  const TemporaryFolders at;
  const FileDescriptor fd(::open(at("f").c_str(), O_WRONLY | O_CREAT, 0600));
  REQUIRE(::write(fd.get(), "before ", 7) == 7);
  const std::string number = std::to_string(fd.get());
  write_output_file("-o", "/dev/fd/" + number, "and ");
  fs::create_symlink("/proc/self/fd/" + number, at("link"));
  write_output_file("-o", at("link"), "after");
  CHECK(contents(at("f")) == "before and after");
}

// Else a guest with a writable root could have gpusim write where the guest may not.
TEST_CASE("links and folders that change after the look do not turn a file elsewhere") {
  const TemporaryFolders at;
  fs::create_directories(at("root/d"));
  fs::create_directory(at("other"));
  std::ofstream(at("other/f")) << "kept";
  const OutputFile file("--stats", at("root/d/f"));
  const OutputFile plain("--stats", at("root/g"));
  fs::rename(at("root/d"), at("root/e"));
  fs::create_directory_symlink(at("other"), at("root/d"));
  fs::create_symlink(at("other/f"), at("root/g"));
  file.write("text");
  plain.write("text");
  CHECK(contents(at("other/f")) == "kept");
  CHECK(contents(at("root/e/f")) == "text");
  CHECK(contents(at("root/g")) == "text");
}

}  // namespace
}  // namespace gpusim::host
