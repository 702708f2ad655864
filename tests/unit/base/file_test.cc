#include "device_sim/base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"

using namespace gpusim;

TEST_CASE("a whole file, and one that is too long") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const std::string path = "/proc/self/fd/" + std::to_string(read_end.get());
  const auto put = [&](const std::string& text) {
    REQUIRE(::write(write_end.get(), text.data(), text.size()) ==
            static_cast<ssize_t>(text.size()));
  };
  SUBCASE("a pipe does not say how long it is") {
    put(std::string("a\0b", 3));
    write_end = FileDescriptor();
    CHECK(read_text(path) == std::string("a\0b", 3));
  }
  SUBCASE("as long as it may be") {
    put("abc");
    write_end = FileDescriptor();
    CHECK(read_file(path, 3) == std::vector<uint8_t>{'a', 'b', 'c'});
  }
  SUBCASE("longer") {
    put("abcd");
    CHECK_THROWS_WITH_AS(read_file(path, 3), (path + ": longer than 3 bytes").c_str(), Error);
  }
  SUBCASE("a text as long as it may be") {
    put("abc");
    write_end = FileDescriptor();
    CHECK(read_text(path, 3) == "abc");
  }
  SUBCASE("a longer text") {
    put("abcd");
    CHECK_THROWS_WITH_AS(read_text(path, 3), (path + ": longer than 3 bytes").c_str(), Error);
  }
}

TEST_CASE("what cannot be read is named") {
  CHECK_THROWS_WITH_AS(read_text("/no/such"),
                       "/no/such: No such file or directory (there is no folder /no)", Error);
  CHECK_THROWS_WITH_AS(read_text("/etc/passwt"),
                       "/etc/passwt: No such file or directory (did you mean /etc/passwd?)", Error);
  CHECK_THROWS_WITH_AS(read_text("/zzzzzzzzzzzz"), "/zzzzzzzzzzzz: No such file or directory",
                       Error);
  const std::string here = std::filesystem::current_path().string();
  CHECK_THROWS_WITH_AS(
      read_text("quite_unlike_any_file"),
      ("quite_unlike_any_file: No such file or directory (looked for in " + here + ")").c_str(),
      Error);
  CHECK_THROWS_WITH_AS(read_text("/"), "/: Is a directory", Error);
  CHECK(read_text("/dev/null").empty());
  CHECK(read_text("/proc/self/comm").size() > 1);  // whose size is said to be 0
}
