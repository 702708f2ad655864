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
#include "host/chip/link_rows.h"
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

TEST_CASE("links of a row are taken as by a calendar each") {
  const uint64_t with = seed();
  INFO("replay: GPUSIM_SEED=" << with);
  std::mt19937_64 random(with);
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < 200; ++round) {
    constexpr uint32_t kRows = 3, kLinks = LinkRows::kLinks;
    const auto hop = static_cast<uint32_t>(1 + below(below(4) == 0 ? LinkRows::kMostHopCycles : 4));
    LinkRows rows(kRows, hop);
    std::vector<PlainCalendar> plain(size_t{kRows} * kLinks), later(plain.size());
    std::vector<uint64_t> used(plain.size());
    const uint64_t horizon = uint64_t{16} << below(10), pace = 1 + below(40);
    const uint64_t longest = 1 + below(below(8) == 0 ? 5000 : 8);
    uint64_t now = below(5) * 1000;
    for (int i = 0; i < 400; ++i) {
      if (below(3) != 0) now += below(pace);
      if (below(100) == 0) now += below(3 * horizon);
      const auto row = static_cast<uint32_t>(below(below(4) == 0 ? kRows : 1));
      const auto first = static_cast<uint32_t>(below(kLinks));
      const auto count = static_cast<uint32_t>(1 + below(kLinks - first));
      const auto cycles = static_cast<uint32_t>(1 + below(longest));
      const uint64_t at = now + below(horizon);
      std::vector<uint64_t> begins;
      const uint64_t last =
          rows.take(row, first, count, at, cycles, now, [&](uint32_t link, uint32_t n, uint64_t t) {
            REQUIRE(link == first + begins.size());
            for (uint32_t k = 0; k < n; ++k) begins.push_back(t + k * hop);
          });
      REQUIRE(begins.size() == count);
      REQUIRE(begins.back() == last);
      uint64_t asked = at;
      for (uint32_t k = 0; k < count; ++k) {
        const size_t link = row * kLinks + first + k;
        REQUIRE(begins[k] == plain[link].take(asked, cycles, now));
        asked = begins[k] + hop;
        used[link] += cycles;
      }
    }
    for (uint32_t row = 0; row < kRows; ++row)
      for (uint32_t link = 0; link < kLinks; ++link)
        CHECK(rows.used(row)[link] == used[row * kLinks + link]);
    // What is handed over is what was taken.
    rows.take_out(now, [&](uint32_t row, uint32_t link, uint64_t begin, uint64_t end) {
      REQUIRE(later[row * kLinks + link].take(begin, end - begin, now) == begin);
    });
    for (size_t link = 0; link < plain.size(); ++link)
      for (int i = 0; i < 20; ++i) {
        const uint64_t at = now + below(2 * horizon), cycles = 1 + below(3);
        REQUIRE(later[link].take(at, cycles, now) == plain[link].take(at, cycles, now));
      }
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
    if (random() % 8 != 0) continue;
    set.take_out(line);
    plain.erase(line);
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
