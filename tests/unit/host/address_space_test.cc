#include "host/linux/address_space.h"

#include <doctest/doctest.h>

namespace gpusim::host {
namespace {

constexpr uint64_t kStart = 0x10000, kLimit = 0x100000;

TEST_CASE("the program break maps whole pages and stays where it cannot go") {
  AddressSpace space(kStart, kLimit);
  CHECK_FALSE(space.set_break(0));
  CHECK(space.program_break() == kStart);
  auto change = space.set_break(kStart + 0xaf0);
  REQUIRE(change);
  CHECK(change->map == AddressRange{kStart, kStart + 0x1000});
  change = space.set_break(kStart + 0xb00);
  REQUIRE(change);
  CHECK(change->map.size() == 0);
  change = space.set_break(kStart + 1);
  REQUIRE(change);
  CHECK(change->unmap.empty());
  change = space.set_break(kStart);
  REQUIRE(change);
  CHECK(change->unmap == std::vector<AddressRange>{{kStart, kStart + 0x1000}});
  CHECK_FALSE(space.set_break(kLimit + 1));
  CHECK_FALSE(space.set_break(~uint64_t{0}));
}

TEST_CASE("mappings go downwards from the limit and fill gaps") {
  AddressSpace space(kStart, kLimit);
  CHECK(space.place(0x1000) == kLimit - 0x1000);
  CHECK(space.place(0x2000) == kLimit - 0x3000);
  CHECK(space.remove(kLimit - 0x1000, 0x1000).size() == 1);
  CHECK(space.place(0x1000) == kLimit - 0x1000);
  CHECK(space.place(0x1000, 0x50000) == 0x50000);
  CHECK(space.place(0x1000, 0x50000) != 0x50000);
  CHECK_FALSE(space.place(kLimit));
  CHECK_FALSE(space.place(~uint64_t{0xfff}));
  // The break cannot grow into a mapping.
  CHECK_FALSE(space.set_break(0x50001));
  CHECK(space.set_break(0x50000));
}

TEST_CASE("unmapping the middle leaves both ends") {
  AddressSpace space(kStart, kLimit);
  CHECK(space.can_place_at(0x40000, 0x5000));
  CHECK(space.place_at(0x40000, 0x5000).empty());
  const auto removed = space.remove(0x41000, 0x2000);
  REQUIRE(removed.size() == 1);
  CHECK(removed[0] == AddressRange{0x41000, 0x43000});
  CHECK(space.is_mapped(0x40000, 0x1000));
  CHECK_FALSE(space.is_mapped(0x40000, 0x2000));
  CHECK(space.is_mapped(0x43000, 0x2000));
  CHECK(space.place_at(0x40000, 0x5000).size() == 2);
  CHECK_FALSE(space.can_place_at(kLimit - 0x1000, 0x2000));
  CHECK_FALSE(space.can_place_at(kStart - 0x1000, 0x1000));
}

TEST_CASE("a mapping may take pages of the heap; the break stays, and shrinks over it") {
  AddressSpace space(kStart, kLimit);
  REQUIRE(space.set_break(kStart + 0x8000));
  CHECK(space.is_mapped(kStart, 0x8000));
  CHECK(space.can_place_at(kStart + 0x2000, 0x1000));
  CHECK(space.place_at(kStart + 0x2000, 0x1000) ==
        std::vector<AddressRange>{{kStart + 0x2000, kStart + 0x3000}});
  CHECK(space.program_break() == kStart + 0x8000);
  CHECK(space.is_mapped(kStart, 0x8000));
  space.remove(kStart + 0x5000, 0x1000);
  CHECK_FALSE(space.is_mapped(kStart, 0x8000));
  CHECK(space.mapped_bytes() == 0x7000);
  CHECK(space.set_break(kStart + 0x9000));  // above the hole
  const auto change = space.set_break(kStart + 0x4000);
  REQUIRE(change);
  CHECK(change->unmap == std::vector<AddressRange>{{kStart + 0x4000, kStart + 0x5000},
                                                   {kStart + 0x6000, kStart + 0x9000}});
  // A mapping above the break, which the heap reaches.
  CHECK(space.place_at(kStart + 0x6000, 0x1000).empty());
  CHECK_FALSE(space.set_break(kStart + 0x7000));
  CHECK(space.set_break(kStart + 0x6000));
  CHECK(space.place(0x1000) == kLimit - 0x1000);
}

TEST_CASE("room for code lies before the first break, and is given out from below") {
  constexpr uint64_t kBreak = kStart + 0x10000;
  AddressSpace space(kStart, kLimit, kBreak);
  CHECK(space.program_break() == kBreak);
  CHECK_FALSE(space.set_break(kBreak - 0x1000));
  CHECK(space.place_between(0x3000, kStart, kBreak) == kStart);
  CHECK(space.place_between(0x1000, kStart, kBreak) == kStart + 0x3000);
  CHECK(space.place(0x1000, kStart + 0x8000) == kStart + 0x8000);
  CHECK(space.place_between(0x5000, kStart, kBreak) == kStart + 0x9000);
  space.remove(kStart + 0x1000, 0x1000);
  CHECK(space.place_between(0x1000, kStart, kBreak) == kStart + 0x1000);
  CHECK_FALSE(space.place_between(0x8000, kStart, kBreak));
  CHECK_FALSE(space.place_between(0x1000, kBreak - 0x800, kBreak));
  CHECK(space.place_between(0x4000, kStart, kBreak) == kStart + 0x4000);
  REQUIRE(space.set_break(kBreak + 0x2000));
  CHECK(space.place_between(0x2000, kStart, kBreak) == kStart + 0xe000);  // up to the heap
  CHECK(space.set_break(kBreak + 0x3000));
  CHECK(space.place(0x1000) == kLimit - 0x1000);
}

}  // namespace
}  // namespace gpusim::host
