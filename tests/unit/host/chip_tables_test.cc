// The tables in which a chip keeps what its parts have and when they are taken, against plain ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "host/chip/calendar.h"
#include "host/chip/core_queue.h"
#include "host/chip/line_map.h"
#include "host/chip/line_set.h"
#include "host/chip/sharers.h"
#include "host/chip/side_thread.h"

namespace gpusim::host::chip {
namespace {

uint64_t seed() {
  const char* const text = std::getenv("GPUSIM_SEED");
  return text ? std::strtoull(text, nullptr, 0) : std::random_device{}();
}

// When something is taken: from begin to end.
class PlainCalendar {
 public:
  Ticks take(Ticks at, Ticks length, Ticks now) {
    while (!taken_.empty() && taken_.begin()->second <= now) taken_.erase(taken_.begin());
    for (const auto& [begin, end] : taken_) {
      if (end <= at) continue;
      if (begin >= at + length) break;
      at = end;
    }
    taken_[at] = at + length;
    return at;
  }

 private:
  std::map<Ticks, Ticks> taken_;
};

}  // namespace

TEST_CASE("a calendar gives the first free place") {
  const uint64_t with = seed();
  INFO("replay: GPUSIM_SEED=" << with);
  std::mt19937_64 random(with);
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    Calendar calendar;
    PlainCalendar plain;
    const bool has_parts = below(4) == 0;  // of cycles
    const uint64_t horizon = uint64_t{16} << below(9), pace = 1 + below(40);
    const uint64_t longest = 1 + below(below(8) == 0 ? 70 : 8);
    Ticks now = below(5) * ticks(1000), used = 0;
    for (int i = 0; i < 500; ++i) {
      if (below(3) != 0) now += below(pace) * kCycle + (has_parts ? below(kCycle) : 0);
      if (below(100) == 0) now += below(3 * horizon) * kCycle;
      const Ticks soonest = has_parts ? now : (now + kCycle - 1) / kCycle * kCycle;
      const bool is_odd = has_parts && below(50) == 0;
      const Ticks at = soonest + below(horizon) * kCycle + (is_odd ? below(kCycle) : 0);
      const Ticks length = (1 + below(longest)) * kCycle + (is_odd ? below(kCycle) : 0);
      REQUIRE(calendar.take(at, length, now) == plain.take(at, length, now));
      used += length;
    }
    CHECK(calendar.used() == used);
  }
}

TEST_CASE("a map of lines has what was put in") {
  const uint64_t with = seed();
  INFO("replay: GPUSIM_SEED=" << with);
  std::mt19937_64 random(with);
  LineMap<std::unique_ptr<uint64_t>> map;
  std::map<uint64_t, uint64_t> plain;
  CHECK(map.find(1) == nullptr);
  for (uint64_t i = 0; i < 100000; ++i) {
    const uint64_t key = random() % 3000 << (random() % 2 * 40);
    auto* const found = map.find(key);
    REQUIRE((found != nullptr) == plain.contains(key));
    if (found) REQUIRE(**found == plain[key]);
    if (found && random() % 2 == 0) {
      map.erase(found);
      plain.erase(key);
    } else {
      map[key] = std::make_unique<uint64_t>(i);
      plain[key] = i;
    }
  }
}

TEST_CASE("a set of lines tells new ones") {
  std::mt19937_64 random(1);
  LineSet set;
  std::set<uint64_t> plain;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t line = random() % 5000 + (random() % 3 << 41);
    REQUIRE(set.insert(line) == plain.insert(line).second);
  }
}

TEST_CASE("cores come by time, then by number") {
  for (const uint32_t cores : {1u, 2u, 3u, 64u, 100u}) {
    std::mt19937_64 random(cores);
    CoreQueue queue(cores);
    std::map<uint32_t, Ticks> plain;
    CHECK(queue.empty());
    for (int i = 0; i < 5000; ++i) {
      const auto core = static_cast<uint32_t>(random() % cores);
      if (random() % 3 == 0) {
        queue.take_out(core);
        plain.erase(core);
      } else {
        queue.put(core, plain[core] = random() % 50);
      }
      REQUIRE(queue.empty() == plain.empty());
      if (plain.empty()) continue;
      const auto first = std::min_element(plain.begin(), plain.end(), [](auto& a, auto& b) {
        return std::pair(a.second, a.first) < std::pair(b.second, b.first);
      });
      REQUIRE(queue.first() == first->second);
      REQUIRE(queue.first_core() == first->first);
    }
  }
}

TEST_CASE("sharers stay in the order in which they came") {
  std::mt19937_64 random(1);
  Sharers sharers;
  std::vector<uint32_t> plain;
  for (int i = 0; i < 20000; ++i) {
    const auto core = static_cast<uint32_t>(random() % 40);
    const bool has = std::find(plain.begin(), plain.end(), core) != plain.end();
    REQUIRE(sharers.has(core) == has);
    if (has) {
      sharers.erase(core);
      std::erase(plain, core);
    } else {
      sharers.push_back(core);
      plain.push_back(core);
    }
    if (random() % 500 == 0) {
      sharers.clear();
      plain.clear();
    }
    Sharers moved = std::move(sharers);
    sharers = std::move(moved);
    REQUIRE(std::vector(sharers.begin(), sharers.end()) == plain);
  }
}

TEST_CASE("a side thread does one thing after the other, and hands over what they throw") {
  int done = 0;
  {
    SideThread thread;
    thread.settle();
    for (int i = 1; i <= 100; ++i) {
      thread.start([&] { ++done; });
      thread.settle();
      CHECK(done == i);
    }
    thread.start([] { throw std::runtime_error("of the job"); });
    CHECK_THROWS_WITH(thread.settle(), "of the job");
    thread.settle();
    thread.start([&] { ++done; });
  }
  CHECK(done == 101);  // its end waits, too
}

}  // namespace gpusim::host::chip
