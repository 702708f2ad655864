#include "host/sweep/workers.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "device_sim/base/child_session.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file.h"

namespace gpusim::sweep {
namespace {

using Json = nlohmann::ordered_json;
using Life = Workers::Life;
constexpr Workers::Limits kQuick = {
    .beat_seconds = 0.02, .silent_seconds = 0.3, .open_seconds = 0.3};

Launch rank(uint32_t number, const std::string& session = "mpi-1") {
  return {.kind = Launch::Kind::kRanks,
          .session = session,
          .name = "rank " + std::to_string(number),
          .number = number,
          .node = "here"};
}

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// The card of a worker, as if it were of another machine, with this count of signs of life.
void move_elsewhere(const std::string& path, uint64_t beat) {
  Json json = Json::parse(read_text(path));
  json["boot"] = "another";
  json["beat"] = beat;
  std::ofstream(path) << json.dump();
}

TEST_CASE("a process of this machine is alive while it runs, whether its parent waits or not") {
  const SessionFolder folder("gpusim-workers");
  Workers ours(folder.path(), rank(0), true, kQuick);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Workers theirs(folder.path(), rank(1), false, kQuick);
    if (::write(ends[1], theirs.id().c_str(), theirs.id().size()) < 0) ::_exit(1);
    while (true) ::pause();
  }
  char text[200] = {};
  REQUIRE(::read(ends[0], text, sizeof text - 1) > 0);
  CHECK(ours.life(text) == Life::kAlive);
  wait(2 * kQuick.silent_seconds);
  CHECK(ours.life(text) == Life::kAlive);  // although it gives no sign
  REQUIRE(ours.working().size() == 1);
  CHECK(ours.working()[0].text() == "rank 1 at here");
  ::kill(child, SIGKILL);
  siginfo_t info;
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(ours.life(text) == Life::kDead);  // a zombie
  ::waitpid(child, nullptr, 0);
  CHECK(ours.life(text) == Life::kDead);
  CHECK(ours.working().empty());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a process of another machine is watched") {
  const SessionFolder folder("gpusim-workers");
  Workers ours(folder.path(), rank(0), false, kQuick);
  Workers theirs(folder.path(), rank(1), false, kQuick);
  const std::string path = folder.path() + "/" + theirs.id() + ".json";
  move_elsewhere(path, 1);
  CHECK(ours.life(theirs.id()) == Life::kUnknown);
  CHECK(ours.working().size() == 1);  // it may live
  move_elsewhere(path, 2);
  CHECK(ours.life(theirs.id()) == Life::kAlive);
  wait(0.5 * kQuick.silent_seconds);
  CHECK(ours.life(theirs.id()) == Life::kAlive);
  wait(kQuick.silent_seconds);
  CHECK(ours.life(theirs.id()) == Life::kDead);
  move_elsewhere(path, 3);  // it was asleep
  CHECK(ours.life(theirs.id()) == Life::kAlive);
  // One that never gives a sign while we look.
  wait(1.5 * kQuick.silent_seconds);
  Workers late(folder.path(), rank(2), false, kQuick);
  CHECK(late.life(theirs.id()) == Life::kUnknown);
  wait(1.5 * kQuick.silent_seconds);
  CHECK(late.life(theirs.id()) == Life::kDead);
  CHECK(late.life("nobody") == Life::kUnknown);
}

TEST_CASE("one that ended says how") {
  const SessionFolder folder("gpusim-workers");
  Workers ours(folder.path(), rank(0), true, kQuick);
  Workers theirs(folder.path(), rank(1), false, kQuick);
  CHECK_FALSE(ours.card(theirs.id())->status);
  theirs.end(1);
  CHECK(ours.life(theirs.id()) == Life::kEnded);
  CHECK(ours.card(theirs.id())->status == 1);
  CHECK(ours.working().empty());
  { const Workers gone(folder.path(), rank(2), false, kQuick); }
  CHECK(ours.cards().size() == 1);
}

TEST_CASE("signs of life are given") {
  const SessionFolder folder("gpusim-workers");
  Workers ours(folder.path(), rank(0), true, kQuick);
  const auto beat = [&] {
    return Json::parse(read_text(folder.path() + "/" + ours.id() + ".json"))["beat"]
        .get<uint64_t>();
  };
  const uint64_t first = beat();
  wait(2 * kQuick.beat_seconds);
  ours.beat();
  CHECK(beat() == first + 1);
}

TEST_CASE("ranks wait for the one that opens the study, and for no other") {
  const SessionFolder folder("gpusim-workers");
  Workers first(folder.path(), rank(0), true, kQuick);
  Workers second(folder.path(), rank(1), false, kQuick);
  Workers other(folder.path(), rank(0, "mpi-2"), true, kQuick);
  other.say_opened();
  CHECK_THROWS_WITH_AS(second.wait_for_opener("study"),
                       "-o study: rank 1 at here does not see there what rank 0 wrote, after "
                       "0.3 s: the folder must be on a file system that all machines share",
                       Error);
  std::thread opens([&] {
    wait(0.1);
    first.say_opened();
  });
  CHECK_NOTHROW(second.wait_for_opener("study"));
  opens.join();
}

TEST_CASE("who leads a study of another session is seen") {
  const SessionFolder folder("gpusim-workers");
  Workers ours(folder.path(), rank(1), false, kQuick);
  Workers leader(folder.path(), rank(0), true, kQuick);
  CHECK_FALSE(ours.opener_works());  // ours
  Workers other(folder.path(), {.name = "process 5", .node = "there"}, true, kQuick);
  CHECK(ours.opener_works());
  other.leave_no_trace();
  CHECK_FALSE(ours.opener_works());
}

TEST_CASE("damaged cards are nobody's") {
  const SessionFolder folder("gpusim-workers");
  Workers ours(folder.path(), rank(0), true, kQuick);
  std::ofstream(folder.path() + "/a.json") << "{";
  std::ofstream(folder.path() + "/b.json") << R"({"schema": "gpusim-worker-1", "pid": "x",
                                                 "beat": -1, "number": "y", "status": []})";
  CHECK(ours.life("a") == Life::kUnknown);
  CHECK(ours.cards().size() == 1);
  CHECK_NOTHROW((void)ours.working());
  CHECK_THROWS_AS(Workers("/proc/none", rank(0), true, kQuick), Error);
}

}  // namespace
}  // namespace gpusim::sweep
