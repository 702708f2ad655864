#include "device_sim/base/child_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"

using namespace gpusim;

namespace {

std::vector<std::string> shell(const std::string& text) { return {"sh", "-c", text}; }

// What it writes to `stream`, at most a pipe's room.
std::string written(const std::string& text, int ChildSettings::*stream,
                    ChildSettings settings = {}) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  settings.*stream = write_end.get();
  ChildProcess child(shell(text), settings);
  write_end = FileDescriptor();
  CHECK(child.wait() == 0);
  std::string all(4096, 0);
  const ssize_t n = ::read(read_end.get(), all.data(), all.size());
  all.resize(n < 0 ? 0 : static_cast<size_t>(n));
  return all;
}

}  // namespace

TEST_CASE("how a child ended") {
  CHECK(ChildProcess(shell("exit 3")).wait() == 3);
  ChildProcess killed(shell("kill -USR1 $$"));
  CHECK(killed.wait() == 128 + SIGUSR1);
  CHECK(killed.ended_by_signal() == SIGUSR1);
  CHECK(killed.poll() == 128 + SIGUSR1);
  ChildProcess fine(shell("exit 138"));
  CHECK(fine.wait() == 138);
  CHECK_FALSE(fine.ended_by_signal());
}

TEST_CASE("what cannot be executed") {
  CHECK_THROWS_WITH_AS(ChildProcess({"/no/such/program"}),
                       "/no/such/program: No such file or directory", Error);
  CHECK_THROWS_WITH_AS(ChildProcess({"/dev/null"}), "/dev/null: Permission denied", Error);
  CHECK_THROWS_AS(ChildProcess({}), Error);
}

TEST_CASE("streams and variables of a child") {
  CHECK(written("echo out; echo err >&2", &ChildSettings::output,
                {.error = ChildSettings::kNoStream}) == "out\n");
  CHECK(written("echo out; echo err >&2", &ChildSettings::error,
                {.output = ChildSettings::kNoStream}) == "err\n");
  CHECK(written("cat; echo end", &ChildSettings::output, {.input = ChildSettings::kNoStream}) ==
        "end\n");
  // Nothing else is open in it than in one with our streams.
  const std::string open = "ls /proc/self/fd";
  constexpr int kNone = ChildSettings::kNoStream;
  CHECK(written(open, &ChildSettings::output, {.input = kNone, .error = kNone}) ==
        written(open, &ChildSettings::output));
  ::setenv("GPUSIM_TEST_A", "old", 1);
  CHECK(written("echo $GPUSIM_TEST_A $GPUSIM_TEST_B", &ChildSettings::output,
                {.variables = {"GPUSIM_TEST_A=new", "GPUSIM_TEST_B=x y"}}) == "new x y\n");
}

TEST_CASE("a child ends with its object, and starts without what we ignore") {
  std::signal(SIGINT, SIG_IGN);
  CHECK(ChildProcess(shell("kill -INT $$; exit 0"), {.is_apart = true}).wait() == 128 + SIGINT);
  std::signal(SIGINT, SIG_DFL);
  pid_t pid = 0;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  {
    ChildProcess child(shell("echo $$; exec sleep 1000"), {.output = write_end.get()});
    write_end = FileDescriptor();
    char text[32] = "";
    REQUIRE(::read(read_end.get(), text, sizeof text - 1) > 0);
    pid = static_cast<pid_t>(std::atoi(text));
    CHECK_FALSE(child.poll());
    REQUIRE(::kill(pid, 0) == 0);
  }
  CHECK(::kill(pid, 0) < 0);
}
