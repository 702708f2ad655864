#include "host/sweep/claims.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "device_sim/base/child_session.h"
#include "device_sim/base/error.h"

namespace gpusim::sweep {
namespace {

TEST_CASE("a generation of a point's claims is one process's") {
  const SessionFolder folder("gpusim-claims");
  Claims one(folder.path() + "/claims", "one"), two(folder.path() + "/claims", "two");
  CHECK(one.take("p-1", 1));
  CHECK_FALSE(one.take("p-1", 1));
  CHECK_FALSE(two.take("p-1", 1));
  CHECK(two.take("p-2", 1));
  CHECK(two.take("p-1", 2));
  CHECK(one.last() == std::map<std::string, uint32_t>{{"p-1", 2}, {"p-2", 1}});
  REQUIRE(one.holder("p-1", 2));
  CHECK(one.holder("p-1", 2)->worker == "two");
  CHECK_FALSE(one.holder("p-1", 2)->gave_back);
  CHECK_FALSE(one.holder("p-1", 3));
  two.give_back("p-1", 2);
  CHECK(one.holder("p-1", 2)->gave_back);
  CHECK(one.holder("p-1", 2)->worker == "two");
  CHECK(one.lost("p-1", 1, 2) == 1);
  CHECK(one.lost("p-1", 2, 2) == 0);
}

TEST_CASE("of many that take a point at the same time one has it") {
  const SessionFolder folder("gpusim-claims");
  constexpr int kProcesses = 8, kPoints = 200;
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kProcesses; ++t)
    threads.emplace_back([&, t] {
      Claims claims(folder.path(), std::to_string(t));
      for (int p = 0; p < kPoints; ++p) taken += claims.take(std::to_string(p), 1);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(taken == kPoints);
  CHECK(Claims(folder.path(), "x").last().size() == kPoints);
}

TEST_CASE("other files are no claims, and what cannot be written is an error") {
  const SessionFolder folder("gpusim-claims");
  Claims claims(folder.path(), "one");
  for (const char* name : {"p", "p.x", "p.1.77-0.tmp", ".1x"})
    std::ofstream(folder.path() + "/" + name) << "x";
  CHECK(claims.last().empty());
  std::filesystem::remove_all(folder.path());
  CHECK_THROWS_AS((void)claims.take("p", 1), Error);
}

}  // namespace
}  // namespace gpusim::sweep
