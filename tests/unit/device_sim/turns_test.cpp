// The policy by which lanes take turns, on lanes that are no more than a place each.
#include "device_sim/core/turns.h"

#include "device_sim/simd/turn_by_steps.h"
#include "device_sim/simd/turn_of_many.h"

#include <doctest/doctest.h>

#include <vector>

using namespace gpusim;

namespace {

// Places are ranks; all lanes are as deep in calls.
class FakeLanes {
 public:
  explicit FakeLanes(std::vector<uint32_t> places)
      : places_(std::move(places)), runnable_((uint64_t{1} << places_.size()) - 1) {}

  uint64_t runnable() const { return runnable_; }
  uint64_t active() const { return active_; }
  uint64_t key(uint32_t lane) const { return key_of(0, places_[lane]); }
  uint64_t least_key(uint64_t mask) const {
    uint64_t least = kNoKey;
    for (uint32_t lane = 0; lane < places_.size(); ++lane)
      if (mask >> lane & 1) least = std::min(least, key(lane));
    return least;
  }
  uint32_t activate(uint64_t key) {
    active_ = 0;
    for (uint32_t lane = 0; lane < places_.size(); ++lane)
      if ((runnable_ >> lane & 1) && places_[lane] == key_rank(key)) active_ |= uint64_t{1} << lane;
    return key_rank(key);
  }
  void rest() { active_ = 0; }
  uint32_t depth() const { return 0; }

  void move(uint64_t mask, uint32_t place) {
    for (uint32_t lane = 0; lane < places_.size(); ++lane)
      if (mask >> lane & 1) places_[lane] = place;
  }
  void end(uint64_t mask) {
    runnable_ &= ~mask;
    active_ &= ~mask;
  }

 private:
  std::vector<uint32_t> places_;
  uint64_t runnable_, active_ = 0;
};

// Lanes that spin at place 1 in blocks of `cost` instructions, with an access that synchronises in each
// if they poll, until the others, which stand at place 9, had their turn. Returns the instructions until
// then.
int64_t spin(int64_t cost, bool polls) {
  FakeLanes lanes({1, 1, 1, 9});
  Turns turns;
  int64_t instructions = 0;
  uint32_t at = schedule(turns, lanes);
  CHECK(at == 1);
  while (at != 9 && instructions < 1'000'000) {
    instructions += cost;
    turns.patience -= cost;
    if (polls) turns.charge_polls(1);
    if (!goes_on(turns, key_of(0, at), key_of(0, 9), lanes.depth())) at = schedule(turns, lanes);
  }
  return instructions;
}

}  // namespace

TEST_CASE("the set that comes first in the program runs first, and joins the next") {
  FakeLanes lanes({5, 3, 3, 8});
  Turns turns;
  CHECK(schedule(turns, lanes) == 3);
  CHECK(lanes.active() == 0b0110);
  CHECK(goes_on(turns, key_of(0, 4), key_of(0, 5), 0));
  CHECK_FALSE(goes_on(turns, key_of(0, 5), key_of(0, 5), 0));
  lanes.move(0b0110, 5);
  CHECK(schedule(turns, lanes) == 5);
  CHECK(lanes.active() == 0b0111);
  CHECK_FALSE(goes_on(turns, key_of(0, 9), key_of(0, 8), 0));
}

TEST_CASE("deeper calls go first") {
  CHECK(key_of(2, 100) < key_of(1, 3));
  CHECK(key_depth(key_of(7, 3)) == 7);
  CHECK(key_rank(key_of(7, 3)) == 3);
}

TEST_CASE("lanes that spin give others a turn when patience ends") {
  CHECK(spin(4, false) == kPatience);
  CHECK(spin(4, true) <= kPatience / kPollCost * 4);
}

TEST_CASE("lanes that split and join again and again give others a turn, too") {
  // A loop about an exclusive access: of two lanes one fails, and goes on at another place.
  FakeLanes lanes({1, 1, 9});
  Turns turns;
  int64_t instructions = 0;
  for (uint32_t at = schedule(turns, lanes); at != 9 && instructions < 1'000'000;) {
    instructions += 4;
    turns.patience -= 4;
    turns.charge_polls(1);
    if (lanes.active() == 0b11) {
      lanes.move(0b01, 2);
    } else {
      lanes.move(lanes.active(), 1);
    }
    at = schedule(turns, lanes);
  }
  CHECK(instructions <= 2 * kPatience / kPollCost * 4);
}

TEST_CASE("every set gets its turn, however many spin") {
  FakeLanes lanes({1, 2, 3, 4, 5, 6, 7, 8});
  Turns turns;
  uint32_t at = schedule(turns, lanes);
  uint64_t had_a_turn = 0;
  int64_t instructions = 0;
  while (had_a_turn != 0xff && instructions < 100 * kPatience) {
    had_a_turn |= lanes.active();
    instructions += 16;
    turns.patience -= 16;
    const uint64_t wait_key = lanes.least_key(lanes.runnable() & ~lanes.active());
    if (!goes_on(turns, key_of(0, at), wait_key, 0)) at = schedule(turns, lanes);
  }
  CHECK(had_a_turn == 0xff);
}

TEST_CASE("turns after giving way are short at first, and longer each time") {
  FakeLanes lanes({1, 9});
  Turns turns;
  schedule(turns, lanes);
  int64_t before = 0;
  for (int i = 0; i < 4; ++i) {
    schedule_after_wait(turns, lanes);
    CHECK(turns.patience > before);
    before = turns.patience;
  }
  CHECK(before == kShortTurn << 3);
}

TEST_CASE("nobody is scheduled when nobody can run") {
  FakeLanes lanes({1, 1});
  Turns turns;
  schedule(turns, lanes);
  lanes.end(0b11);
  CHECK(schedule(turns, lanes) == kNoUop);
  CHECK(schedule_after_wait(turns, lanes) == kNoUop);
}

TEST_CASE("turns of many cores are short while one of them has most of the work") {
  simd::TurnOfMany turn;
  const uint64_t longest = turn.length();
  using Share = simd::TurnOfMany::Share;
  constexpr Share kEven = {1024 * 3, 6}, kUneven = {1024 * 3, 1024 * 2};  // that synchronise
  constexpr Share kOneHasMost = {1024 * 300, 1024 * 200};
  turn.note(1024, {1024 * 300, 600}, kUneven);
  turn.note(16, {16 * 300, 16 * 300}, {16 * 3, 16 * 3});  // too few
  turn.note(1024, {1024, 100}, kUneven);                  // too little
  turn.note(1024, kOneHasMost, kEven);                    // the others wait for it
  turn.note(1024, kOneHasMost, {0, 0});
  CHECK(turn.length() == longest);
  turn.note(1024, kOneHasMost, kUneven);
  const uint64_t shortest = turn.length();
  CHECK(shortest * 64 < longest);
  CHECK(turn.is_valid());
  CHECK(turn.length(1024, 1024) == shortest);
  CHECK(turn.length(1024, 256) == 4 * shortest);
  CHECK(turn.length(1024, 1) == longest);  // nobody else waits for a turn
  CHECK(turn.length(1, 2) == shortest);    // of another thread's cores
  int rounds = 0;
  for (; turn.length() < longest; ++rounds) turn.note(1024, {1024 * 300, 600}, kEven);
  CHECK(rounds > 16);
  turn.note(1024, {1024 * 300, 600}, kEven);
  CHECK(turn.length() == longest);
}

namespace {

// A group whose slots hold base + lane * stride.
struct Places {
  explicit Places(uint32_t width = 64) {
    group.width = width;
    group.slot_count = 4;
  }
  void set(uint32_t slot, uint64_t base, uint64_t stride) {
    group.kind[slot] = stride == 0 ? simd::kUniform : simd::kAffine;
    group.base[slot] = base;
    group.stride[slot] = stride;
  }
  simd::Group group;
};

// A turn of the group, after which its cores' elements of four bytes are `moved` bytes farther.
// Returns how long it was.
uint64_t run(simd::TurnBySteps& turn, Places& places, uint64_t moved, bool is_full = true) {
  const uint64_t length = turn.length(4096);
  const bool looks = turn.is_due();
  const simd::Neighbours before(places.group);
  places.set(1, places.group.base[1] + moved, 4);
  const simd::Neighbours after(places.group);
  turn.note(is_full, looks, looks && simd::TurnBySteps::is_far(before, after, length));
  return length;
}

}  // namespace

TEST_CASE("turns are short while neighbours step far over each other's elements") {
  simd::TurnBySteps turn;
  Places places;
  const uint64_t far = uint64_t{1} << 24;
  CHECK(run(turn, places, far) == 4096);
  CHECK(run(turn, places, far) == 4096);  // looked at
  for (int i = 0; i < 100; ++i) CHECK(run(turn, places, far) == 512);
  SUBCASE("back to where it was is far, too") {
    for (int i = 0; i < 100; ++i) CHECK(run(turn, places, 0 - far) == 512);
  }
  SUBCASE("until it waits") {
    CHECK(run(turn, places, far, false) == 512);
    CHECK(run(turn, places, far) == 4096);
    CHECK(run(turn, places, far) == 4096);
    CHECK(run(turn, places, far) == 512);
  }
  SUBCASE("until its steps are near, which is looked at now and then") {
    int turns = 0;
    while (run(turn, places, 512) == 512 && turns < 100) ++turns;
    CHECK(turns > 0);
    CHECK(turns <= 16);
    for (int i = 0; i < 100; ++i) CHECK(run(turn, places, 4096) == 4096);
  }
}

TEST_CASE("turns are long where nobody steps over neighbours' elements") {
  constexpr uint64_t kTurn = 4096, kMoved = uint64_t{1} << 24;
  const auto is_far = [](Places& places, uint32_t slot, uint64_t stride, uint64_t stride_after) {
    places.set(slot, 1000, stride);
    const simd::Neighbours before(places.group);
    places.set(slot, 1000 + kMoved, stride_after);
    return simd::TurnBySteps::is_far(before, simd::Neighbours(places.group), kTurn);
  };
  Places places;
  CHECK(is_far(places, 2, 1, 1));
  CHECK(is_far(places, 2, 8, 8));
  CHECK_FALSE(is_far(places, 2, 0, 0));    // one value for all
  CHECK_FALSE(is_far(places, 2, 64, 64));  // each core has a piece of its own
  CHECK_FALSE(is_far(places, 2, 4, 8));    // another array
  CHECK_FALSE(is_far(places, 3, 4, 0));
  Places alone(1);
  CHECK_FALSE(is_far(alone, 2, 4, 4));
}
